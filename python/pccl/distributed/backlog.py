"""Works beyond what the library takes at once: they wait here in the order of their calls, and are launched as earlier ones end.

The library lets 1,024 operations of a communicator be unfinished.  Sends, receives and collectives have a share of that each, so that
receives that are called first leave room for the sends that others wait for.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import threading
from collections import deque
from typing import Callable, NamedTuple, Sequence, get_args

from pccl.distributed.work import Share, Work
from pccl.engine import Operation

#: Operations of a share that are under way at once.
MOST = 300
_LOOK_FROM = 32  # operations from which on a launch looks whether some have ended; then at twice what is left


class _Waiting(NamedTuple):
    work: Work
    launched: threading.Event


class Backlog:
    """Of one share of a group."""

    def __init__(self, entered: Callable[[Operation], None]) -> None:
        """`entered` is told of each operation that is under way."""
        self._told = entered
        self._lock = threading.RLock()  # what a work's callback calls comes in here again
        self._flying: list[Operation] = []
        self._watched: list[Operation] = []  # under way too; the completion thread tells of their ends
        self._waiting: deque[_Waiting] = deque()
        self._look_at = _LOOK_FROM

    def submit(self, work: Work) -> None:
        """Launches it now, or when those before it have been and there is room; one of many operations piece by piece."""
        with self._lock:
            room = 0 if self._waiting else self._room()
            if not room:
                self._postpone(work)
                self._watch()
                return
        launched = work.launch(room)
        with self._lock:
            self._enter(launched)
            if not work.launched:
                self._postpone(work)
            self._watch()

    def _postpone(self, work: Work) -> None:
        launched = threading.Event()
        work.postpone(launched)
        self._waiting.append(_Waiting(work, launched))

    def _count(self) -> int:
        return len(self._flying) + len(self._watched)

    def _room(self) -> int:
        if self._count() >= self._look_at:
            self._flying = [operation for operation in self._flying if not operation.done()]
            self._watched = [operation for operation in self._watched if not operation.ended]
            self._look_at = min(max(_LOOK_FROM, 2 * self._count()), MOST)
        return max(0, MOST - self._count())

    def _enter(self, operations: Sequence[Operation]) -> None:
        for operation in operations:
            if not operation.ended:
                self._flying.append(operation)
                self._told(operation)

    def flying(self) -> list[Operation]:
        """What is under way, and some that may have ended."""
        with self._lock:
            return [*self._flying, *self._watched]

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
                work, launched = self._waiting[0]
                self._enter(work.launch(MOST - self._count()))
                if work.launched:
                    self._waiting.popleft()
                    launched.set()
            self._watch()


def backlogs(entered: Callable[[Operation], None]) -> dict[Share, Backlog]:
    """Those of one world."""
    return {share: Backlog(entered) for share in get_args(Share)}
