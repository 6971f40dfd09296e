"""Works beyond what the library takes at once: they wait here in the order of their calls, and are launched as earlier ones end.

The library lets 1,024 operations of a communicator be unfinished, 768 beside a window.  Sends, receives and collectives have a share of
that each, so that receives that are called first leave room for the sends that others wait for.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import threading
from collections import deque
from typing import Callable, NamedTuple, Optional, Protocol, Sequence

from pccl.engine.operation import Operation

_LOOK_FROM = 32  # operations from which on a launch looks whether some have ended; then at twice what is left


class Gate(Protocol):
    """What a work waits at before it is launched."""

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Whether it was opened before `timeout` seconds passed."""


class Work(Protocol):
    """What a face makes of a call."""

    @property
    def operations(self) -> Sequence[Operation]:
        """What it has launched."""

    def postpone(self, gate: Gate) -> None:
        """It is launched when that opens."""


class _Waiting(NamedTuple):
    work: Work
    launch: Callable[[], None]
    launched: threading.Event


class Backlog:
    """Of one share of a communicator, of which `most` operations are under way at once.  A `launch` raises nothing: its work is told."""

    def __init__(self, most: int) -> None:
        self._most = most
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
            self._look_at = min(max(_LOOK_FROM, 2 * self._count()), self._most)
        return self._count() < self._most

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
            while self._waiting and self._count() < self._most:
                work, launch, launched = self._waiting.popleft()
                launch()
                launched.set()
                self._entered(work)
            self._watch()
