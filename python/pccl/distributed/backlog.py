"""Works beyond what the library takes at once: they wait here in the order of their calls, and are launched as earlier ones end.

The library lets 1,024 operations of a communicator be unfinished.  Sends, receives and collectives have a share of that each, so that
receives that are called first leave room for the sends that others wait for.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import threading
from collections import deque
from typing import Callable, NamedTuple, get_args

from pccl.distributed.work import Share, Work
from pccl.engine import Operation

#: Operations of a share that are under way at once.
MOST = 300
_LOOK_FROM = 32  # operations from which on a launch looks whether some have ended; then at twice what is left


class _Waiting(NamedTuple):
    work: Work
    launch: Callable[[], None]
    launched: threading.Event


class Backlog:
    """Of one share of a group."""

    def __init__(self) -> None:
        self._lock = threading.RLock()  # what a work's callback calls comes in here again
        self._flying: list[Operation] = []
        self._watched: list[Operation] = []  # under way too; the completion thread tells of their ends
        self._waiting: deque[_Waiting] = deque()
        self._look_at = _LOOK_FROM

    def submit(self, work: Work, launch: Callable[[], None]) -> None:
        """Launches it now, or when those before it have been and there is room."""
        with self._lock:
            if self._waiting or not self._has_room():
                launched = threading.Event()
                work.postpone(launched)
                self._waiting.append(_Waiting(work, launch, launched))
                self._watch()
                return
        launch()
        with self._lock:
            self._entered(work)
            self._watch()

    def _count(self) -> int:
        return len(self._flying) + len(self._watched)

    def _has_room(self) -> bool:
        if self._count() >= self._look_at:
            self._flying = [operation for operation in self._flying if not operation.done()]
            self._watched = [operation for operation in self._watched if not operation.ended]
            self._look_at = min(max(_LOOK_FROM, 2 * self._count()), MOST)
        return self._count() < MOST

    def _entered(self, work: Work) -> None:
        self._flying.extend(operation for operation in work.operations if not operation.ended)

    def _watch(self) -> None:
        """Where something waits, the completion thread is to tell of each end."""
        if not self._waiting:
            return
        flying, self._flying = self._flying, []
        self._watched += flying
        for operation in flying:
            operation.when_done(self._pump)

    def _pump(self, _: Operation) -> None:
        """One has ended: launches what there is room for."""
        with self._lock:
            self._watched = [operation for operation in self._watched if not operation.ended]
            while self._waiting and self._count() < MOST:
                work, launch, launched = self._waiting.popleft()
                launch()
                launched.set()
                self._entered(work)
            self._watch()


def backlogs() -> dict[Share, Backlog]:
    """Those of one world."""
    return {share: Backlog() for share in get_args(Share)}
