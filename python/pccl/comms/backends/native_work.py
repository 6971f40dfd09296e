"""The native back-end's works: an operation of the engine, and what is to be done with its memory when it has ended."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import threading
import time
from typing import Any, Callable, Optional, Sequence

from pccl.engine.backlog import Pending


class NativeWork:
    """`after` runs once after success, `undo` once after an error, before the end is reported."""

    def __init__(
        self, operation: Pending, after: Optional[Callable[[], None]], undo: Optional[Callable[[], None]], async_op: bool
    ) -> None:
        self.operation = operation
        self._after, self._undo = after, undo
        self._lock = threading.Lock()
        if after is not None and async_op:  # is_completed may be all that is asked
            operation.when_done(lambda _: self._finish())

    def is_completed(self) -> bool:
        """Whether it has ended."""
        if not self.operation.done():
            return False
        self._finish()
        return True

    def wait_for(self, seconds: float) -> bool:
        """Waits so long; whether it has ended, well or not."""
        try:
            if not self.operation.wait(seconds):
                return False
        except Exception:
            if not self.operation.done():
                raise
        self._finish()
        return True

    def wait(self) -> None:
        """Waits until it has ended; raises its error."""
        try:
            self.operation.wait()
        finally:
            self._finish()

    def when_done(self, callback: Callable[["NativeWork"], None]) -> None:
        """Has `callback` called with this work when it has ended."""

        def told(_: Pending) -> None:
            self._finish()
            callback(self)

        self.operation.when_done(told)

    def _finish(self) -> None:
        if self._after is None and self._undo is None or not self.operation.done():
            return
        with self._lock:
            chosen = self._after if self.operation.error is None else self._undo
            if chosen is not None:
                chosen()
            self._after = self._undo = None


class CombinedWork:
    """Several works as one, which ends when all of them have ended.  Its error is the first one's in their order.

    `after` runs once, after the success of all of them, before the end is reported.
    """

    def __init__(self, works: Sequence[Any], after: Optional[Callable[[], None]] = None) -> None:
        self.works = list(works)
        self._after = after
        self._lock = threading.Lock()
        if after is not None:  # the program may never ask
            self.when_done(lambda _: None)

    def is_completed(self) -> bool:
        """Whether all have ended."""
        completed = all([work.is_completed() for work in self.works])
        if completed:
            self._finish()
        return completed

    def wait_for(self, seconds: float) -> bool:
        """Waits so long."""
        until = time.monotonic() + seconds
        ended = all(work.wait_for(max(0.0, until - time.monotonic())) for work in self.works)
        if ended:
            self._finish()
        return ended

    def wait(self) -> None:
        """Waits for all, then raises the first error."""
        first: Optional[Exception] = None
        for work in self.works:
            try:
                work.wait()
            except Exception as error:
                first = first or error
        if first is not None:
            raise first
        self._finish()

    def when_done(self, callback: Callable[["CombinedWork"], None]) -> None:
        """Has `callback` called when the last has ended."""
        lock, left = threading.Lock(), [len(self.works) or 1]

        def one(_: Any) -> None:
            with lock:
                left[0] -= 1
                last = left[0] == 0
            if last:
                self._finish()
                callback(self)

        if not self.works:
            self._finish()
            callback(self)
        for work in self.works:
            work.when_done(one)

    def _finish(self) -> None:
        with self._lock:
            after, self._after = self._after, None
            if after is not None and all(work.operation.error is None for work in self.works):
                after()
