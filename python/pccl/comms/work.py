"""Work: an operation that was issued, by any back-end."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import threading
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Callable, Optional

from pccl.comms.options import TimeoutLike, as_seconds

if TYPE_CHECKING:
    from pccl.comms.communicator import TorchComm


class WorkStatus(IntEnum):
    """Where a work stands."""

    NOT_STARTED = 0
    INPROGRESS = 1
    COMPLETED = 2
    TIMEDOUT = 3
    ERROR = 4


_OVER = (WorkStatus.COMPLETED, WorkStatus.TIMEDOUT, WorkStatus.ERROR)
EVENTS = ("start", "end", "before_wait", "after_wait")


class OperationError(RuntimeError):
    """An operation failed.  `reason`: "timed_out", "network", "aborted" or "internal"; the cause (`__cause__`) is the back-end's error, of
    which `pccl` tells cause, peer and phase."""

    def __init__(self, text: str, reason: str = "internal") -> None:
        super().__init__(text)
        self.reason = reason


class TorchWork:
    """The result of every operation.  It continues without a reference to it, and keeps its tensors until it has ended.

    Works made by Python back-ends are of this class, or of their own with a `wait`.
    """

    __module__ = "pccl.comms"

    def __init__(self) -> None:
        self._comm: Optional["TorchComm"] = None
        self._name = "work"
        self._async = True
        self._status = WorkStatus.NOT_STARTED
        self._error: Optional[BaseException] = None
        self._inner: Any = None
        self._keep: Any = None
        self._lock = threading.RLock()
        self._ending = threading.RLock()
        self._callbacks: dict[str, list[Callable[["TorchWork"], None]]] = {}
        self._checks: list[Callable[[], None]] = []
        self._watched = False
        self._python_made = True
        self._place = 0  # among the collectives of the communicator; 0: it is none

    # -- For programs --

    def is_completed(self) -> bool:
        """Whether it has succeeded; asks, and does not wait."""
        self._ended()
        ordered = not self._place or self._comm is None or self._comm._order.reached(self)
        return self._status is WorkStatus.COMPLETED and ordered

    def status(self) -> WorkStatus:
        """Where it stands."""
        self.is_completed()
        return self._status

    def wait(self, timeout: TimeoutLike = None) -> None:
        """Waits until it has ended.  Its error is raised, each time.  TimeoutError: it goes on after `timeout`; wait again."""
        seconds = as_seconds(timeout)
        self._fire("before_wait")
        try:
            if self._place and self._comm is not None:
                self._comm._order.reach(self, seconds)
            if self._status is WorkStatus.INPROGRESS:
                self._wait(seconds)
            if self._place and self._comm is not None:
                self._comm._order.sweep()
        finally:
            self._fire("after_wait")
        with self._ending:
            self._raise()

    def wait_blocking(self, timeout: TimeoutLike = None) -> None:
        """As `wait`, which blocks on CPU anyway."""
        if self._comm is not None and self._async and not self._comm._mask.wait_blocking:
            raise RuntimeError(f"waitBlocking not implemented for back-end {self._comm.get_backend()}")
        self.wait(timeout)

    def exception(self) -> Optional[BaseException]:
        """Its error, when it has ended with one."""
        return self._error

    def _set_status(self, status: WorkStatus) -> None:
        """Of a work that a Python back-end made."""
        if not self._python_made:
            raise RuntimeError("_set_status is only supported on Python-created work objects")
        self._status = WorkStatus(status)

    def register_callback(self, event: str, callback: Callable[["TorchWork"], None]) -> None:
        """Has `callback` called with this work: "start", "end" (once), "before_wait", "after_wait"; at once if that has been."""
        if event not in EVENTS:
            raise ValueError(f"event {event!r} is none of {', '.join(EVENTS)}")
        if not callable(callback):
            raise TypeError(f"callback is {callback!r}, a {type(callback).__name__}; pass a function")
        with self._lock:
            been = (event == "start" and self._status is not WorkStatus.NOT_STARTED) or (event == "end" and self._status in _OVER)
            if not been:
                self._callbacks.setdefault(event, []).append(callback)
        if been:
            callback(self)
        elif event == "end":
            self._watch()

    # -- Issued, ended --

    def _begin(self, comm: "TorchComm", name: str, async_op: bool, python_made: bool, keep: Any) -> None:
        self._comm, self._name, self._async, self._python_made, self._keep = comm, name, async_op, python_made, keep

    def _issued(self, inner: Any) -> None:
        """The back-end has taken it: None, it is done; else something with a `wait`."""
        self._status = WorkStatus.INPROGRESS
        self._fire("start")
        if inner is None:
            self._settle(None)
            return
        self._inner = inner
        if self._callbacks.get("end") or (self._comm is not None and self._comm._watches):
            self._watch()

    def _watch(self) -> None:
        """Has the end told of, where the back-end can, without a lock."""
        with self._lock:
            inner, watched = self._inner, self._watched
            tell = getattr(inner, "when_done", None)
            self._watched = watched or tell is not None
        if tell is not None and not watched:
            tell(lambda over: self._end(over.wait))

    def _ended(self) -> bool:
        """Whether it has ended by itself, well or not."""
        if self._status is WorkStatus.INPROGRESS:
            inner = self._inner
            ask = getattr(inner, "is_completed", None)
            if ask is not None and ask():
                self._end(inner.wait)
        return self._status in _OVER

    def _finish(self, seconds: Optional[float]) -> None:
        """Waits for its end, well or not.  TimeoutError: it goes on."""
        if self._status is WorkStatus.INPROGRESS:
            self._wait(seconds)

    def _wait(self, seconds: Optional[float]) -> None:
        inner = self._inner
        if inner is None:
            return
        if seconds is None:
            self._end(inner.wait)
            return
        waits = getattr(inner, "wait_for", None)
        if waits is None:
            raise RuntimeError(f"{self._name}: wait timeout not supported by this back-end; wait without one")
        if not waits(seconds):
            raise TimeoutError(f"{self._name} still goes on after {seconds} s; wait again")
        self._end(inner.wait)

    def _end(self, outcome: Callable[[], Any]) -> None:
        """It has ended, or is about to: `outcome` waits, and raises its error."""
        error: Optional[BaseException] = None
        try:
            outcome()
        except Exception as failed:  # any: it is raised by each wait
            error = failed
        self._settle(error)

    def _settle(self, error: Optional[BaseException]) -> None:
        with self._ending:  # who sees the end second goes on when all has been done about it
            self._settle_once(error)

    def _settle_once(self, error: Optional[BaseException]) -> None:
        with self._lock:
            if self._status in _OVER:
                return
            comm = self._comm
            if error is not None and comm is not None:
                error = comm._translate(self._name, error)
            self._error = error
            reason = getattr(error, "reason", None)
            self._inner = self._keep = None
            self._status = (
                WorkStatus.COMPLETED if error is None else WorkStatus.TIMEDOUT if reason == "timed_out" else WorkStatus.ERROR
            )
        self._fire("end")
        if error is not None and comm is not None:
            comm._work_failed(self._name, error)

    def _fire(self, event: str) -> None:
        with self._lock:
            callbacks = list(self._callbacks.get(event, ()))
            if event in ("start", "end"):
                self._callbacks.pop(event, None)
        for callback in callbacks:
            callback(self)

    def _raise(self) -> None:
        if self._error is not None:
            raise self._error
        if self._status is WorkStatus.COMPLETED:
            for check in self._checks:
                check()
