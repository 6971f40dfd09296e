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
    def launched(self) -> bool:
        """Whether all of its operations are, or will not be."""

    def launch(self, room: int) -> Sequence[Operation]:
        """Launches the next ones, as many as there is `room` for, and returns them.  Raises nothing: whoever waits for the work is told."""

    def postpone(self, gate: Gate) -> None:
        """It is launched when that opens."""


class _Waiting(NamedTuple):
    work: Work
    launched: threading.Event


class Backlog:
    """Of one share of a communicator, of which `most` operations are under way at once."""

    def __init__(self, most: int, entered: Optional[Callable[[Operation], None]] = None) -> None:
        """`entered` is told of each operation that is under way."""
        self._most = most
        self._entered = entered
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
            self._look_at = min(max(_LOOK_FROM, 2 * self._count()), self._most)
        return max(0, self._most - self._count())

    def _enter(self, operations: Sequence[Operation]) -> None:
        for operation in operations:
            if not operation.ended:
                self._flying.append(operation)
                if self._entered is not None:
                    self._entered(operation)

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
            while self._waiting and self._count() < self._most:
                work, launched = self._waiting[0]
                self._enter(work.launch(self._most - self._count()))
                if work.launched:
                    self._waiting.popleft()
                    launched.set()
            self._watch()
