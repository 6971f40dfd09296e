"""Operations of torch's groups as flights, and the threads that wait for those that do not tell of their ends."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import queue
import threading
from typing import Any, Callable, Optional

from pccl.engine.process import wait_for
from pccl.errors import make_error
from pccl.multiworld.memory import Land
from pccl.types import Cause, Result


class GroupFlight:
    """An operation that ends when somebody resolves it, or the program gives it up."""

    def __init__(self, land: Land, landed: Callable[["GroupFlight"], None], memory: Any = None) -> None:
        self.land = land
        self.memory = memory
        self.error: Optional[BaseException] = None
        self._landed = landed
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._callbacks: list[Callable[[], None]] = []

    def resolve(self, error: Optional[BaseException]) -> None:
        """It has ended so; what is said later does not count."""
        with self._lock:
            if self._ended.is_set():
                return
            self.error = error
            callbacks, self._callbacks = self._callbacks, []
            self._ended.set()
        self._landed(self)
        for callback in callbacks:
            callback()

    def when_done(self, callback: Callable[[], None]) -> None:
        with self._lock:
            if not self._ended.is_set():
                self._callbacks.append(callback)
                return
        callback()

    def wait(self, timeout: Optional[float] = None) -> bool:
        if timeout is not None:
            return self._ended.wait(timeout)
        wait_for(self._ended)
        return True

    def cancel(self) -> None:
        """Gives it up for this program; torch cannot withdraw it, and has its tensors until it ends or the world does."""
        text = "cancelled here; torch's groups cannot withdraw an operation, so that its tensors are borrowed until the world ends"
        self.resolve(make_error(Result.RANK_CONNECTION_LOST, "cancel", text, Cause.CANCELLED))


class Lane(threading.Thread):
    """A thread that waits for works in the order of their launches."""

    def __init__(self, name: str, await_work: Callable[[Any], None], failed: Callable[[BaseException], None]) -> None:
        super().__init__(name=f"pccl-multiworld: {name}", daemon=True)
        self._works: queue.SimpleQueue[Optional[tuple[Any, GroupFlight]]] = queue.SimpleQueue()
        self._await_work = await_work
        self._failed = failed
        self.start()

    def wait_for(self, work: Any, flight: GroupFlight) -> None:
        """Resolves the flight as the work ends."""
        self._works.put((work, flight))

    def end(self) -> None:
        """The thread ends by itself, when the work does that it waits for."""
        self._works.put(None)

    def run(self) -> None:
        """Until `end`."""
        while (waiting := self._works.get()) is not None:
            work, flight = waiting
            try:
                self._await_work(work)
            except Exception as error:  # noqa: B902 - whatever torch makes of it
                self._failed(error)
                flight.resolve(error)
            else:
                flight.resolve(None)
            del waiting, work, flight
