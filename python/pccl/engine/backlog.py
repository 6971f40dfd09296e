"""Works beyond what the library takes at once: they wait here in the order of their calls, and are launched as earlier ones end.

The library lets 1,024 operations of a communicator be unfinished, 768 beside a window.  Sends, receives and collectives have a share of
that each, so that receives that are called first leave room for the sends that others wait for.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any, Callable, NamedTuple, Optional, Protocol, Sequence, Union

from pccl.engine.completion import step_aside
from pccl.engine.operation import Operation
from pccl.engine.process import wait_for

#: Operations of a share that are under way at once, of three shares.
MOST = 300
_LOOK_FROM = 32  # operations from which on a launch looks whether some have ended; then at twice what is left


class Gate(Protocol):
    """A condition that a work waits for before it is launched."""

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Whether it was opened before `timeout` seconds passed."""


class Work(Protocol):
    """The object that an API makes of a call."""

    @property
    def launched(self) -> bool:
        """Whether all of its operations are, or will not be."""

    def launch(self, room: int) -> Sequence[Operation]:
        """Launches the next operations, at most `room`, and returns them.  Raises nothing: a wait for the work reports errors."""

    def postpone(self, gate: Gate) -> None:
        """It is launched when that opens."""

    def tell(self) -> None:
        """After a launch: notifies the registered callbacks of the outcome.  Called without a lock."""


class _Waiting(NamedTuple):
    work: Work
    launched: threading.Event


class Backlog:
    """Of one share of a communicator, of which `most` operations are under way at once.  Nobody is called back with its lock held."""

    def __init__(self, most: int, entered: Optional[Callable[[Operation], None]] = None) -> None:
        """`entered` is told of each operation that is under way."""
        self._most = most
        self._entered = entered
        self._lock = threading.Lock()
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
                unwatched = self._unwatched()
        if room:
            launched = work.launch(room)
            with self._lock:
                self._enter(launched)
                if not work.launched:
                    self._postpone(work)
                unwatched = self._unwatched()
        self._watch(unwatched)
        if room:
            work.tell()

    def start(self, launch: Callable[[], Operation]) -> "Pending":
        """The same with one operation.  Raises what `launch` does, if it is called now."""
        work = Queued(launch)
        self.submit(work)
        return work.begun() or work

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
        """The operations in progress, and some that may have ended."""
        with self._lock:
            return [*self._flying, *self._watched]

    def _unwatched(self) -> list[Operation]:
        """Where something waits, the completion thread is to tell of each end: the operations of which it does not yet."""
        if not self._waiting:
            return []
        flying, self._flying = self._flying, []
        self._watched += flying
        return flying

    def _watch(self, operations: Sequence[Operation]) -> None:
        for operation in operations:
            operation.when_done(self._pump)

    def _pump(self, _: Operation) -> None:
        """One has ended: launches what there is room for."""
        begun: list[Work] = []
        with self._lock:
            self._watched = [operation for operation in self._watched if not operation.ended]
            while self._waiting and self._count() < self._most:
                work, launched = self._waiting[0]
                self._enter(work.launch(self._most - self._count()))
                if work.launched:
                    self._waiting.popleft()
                    launched.set()
                    begun.append(work)
            unwatched = self._unwatched()
        self._watch(unwatched)
        for work in begun:
            work.tell()


class Queued:
    """An operation that is launched in its turn, with the interface of `Operation`.  If it is cancelled before, it is launched anyway,
    so that its end is reported to the other members."""

    def __init__(self, launch: Callable[[], Operation]) -> None:
        self.launched = False
        self._launch = launch
        self._lock = threading.Lock()
        self._gate: Optional[Gate] = None
        self._operation: Optional[Operation] = None
        self._refused: Optional[Exception] = None
        self._callbacks: list[Callable[[Any], None]] = []
        self._cancelled = False

    # -- For its backlog --

    def launch(self, room: int) -> Sequence[Operation]:
        operation: Optional[Operation] = None
        refused: Optional[Exception] = None
        try:
            operation = self._launch()
        except Exception as error:
            refused = error
        with self._lock:
            self._operation, self._refused, self.launched = operation, refused, True
            cancelled = self._cancelled
        if operation is None:
            return ()
        if cancelled:
            operation.cancel()
        return (operation,)

    def postpone(self, gate: Gate) -> None:
        self._gate = gate

    def tell(self) -> None:
        with self._lock:
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            self.when_done(callback)

    def begun(self) -> Optional[Operation]:
        """The operation, if it was launched at once; raises why it could not be."""
        if self._gate is None and self._refused is not None:
            raise self._refused
        return self._operation

    # -- As an operation --

    @property
    def error(self) -> Optional[Exception]:
        """How it failed, or why it could not be launched."""
        return self._refused if self._operation is None else self._operation.error

    def done(self) -> bool:
        """Whether it has ended."""
        return self._refused is not None or (self._operation is not None and self._operation.done())

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits until it has ended, or `timeout` seconds passed; returns whether it has.  Its error is raised."""
        until = None if timeout is None else time.monotonic() + timeout
        if not self.launched and self._gate is not None:
            step_aside()
            if timeout is None:
                wait_for(self._gate)
            elif not self._gate.wait(timeout):
                return False
        if self._refused is not None:
            raise self._refused
        assert self._operation is not None
        return self._operation.wait(None if until is None else max(0.0, until - time.monotonic()))

    def cancel(self) -> None:
        """Asks for its end."""
        with self._lock:
            self._cancelled = True
            operation = self._operation
        if operation is not None:
            operation.cancel()

    def when_done(self, callback: Callable[[Any], None]) -> None:
        """Has `callback` called with this when it has ended."""
        with self._lock:
            if not self.launched:
                self._callbacks.append(callback)
                return
        if self._operation is None:
            callback(self)
        else:
            self._operation.when_done(lambda _: callback(self))


#: An operation, or one that waits for its turn.
Pending = Union[Operation, Queued]
