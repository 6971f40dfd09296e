"""An operation in flight: any thread may wait for it, or the completion thread reports its end.  Its buffers are kept until then."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import math
import threading
import time
from typing import TYPE_CHECKING, Any, Callable, NamedTuple, Optional

from pccl._native import ffi, lib
from pccl.arguments import length_of_time
from pccl.engine import completion
from pccl.engine.process import own_process, slice_ms
from pccl.errors import PCCLError, check, error_of, last_error, make_error
from pccl.types import Cause, ErrorClass, Result

if TYPE_CHECKING:
    from pccl.engine.world import World

_LONGEST_SECONDS = 1e6  # of one call of C, as none is left for ever to a number that C has not


class OperationInfo(NamedTuple):
    """The traffic of a successful operation: members of the view that committed it, payload bytes sent and received here."""

    world_size: int  #: members of the view that committed it
    tx_bytes: int    #: payload that was sent
    rx_bytes: int    #: payload that was received


class Operation:
    """A call that was launched; its buffers are borrowed until it has ended.

    `info` is its traffic, after success; `error` is its failure; `source` is the rank that sent the message.  The object and its buffers
    stay alive without a reference until the operation has ended and its end was read.  A wait, `done`, a callback, the world's next
    votes and the world's end read it.
    """

    __slots__ = ("name", "world", "info", "error", "timeout", "until", "_handle", "_keep", "_source", "_lock", "_ended", "_callbacks", "__weakref__")

    #: The handle's type, and the library's calls that take it.
    _handle_type = "pcclAsyncOp_t *"
    _wait_in_c = lib.pcclWaitAsync
    _spend_in_c = lib.pcclAwaitAsync
    _cancel_in_c = lib.pcclCancelAsync
    _attach_in_c = lib.pcclQueueAttach

    def __init__(self, world: "World", name: str, handle: Any, keep: Any, source: Any = None) -> None:
        self.name = name
        self.world = world
        self.info: Optional[OperationInfo] = None
        self.error: Optional[PCCLError] = None
        self.timeout: Optional[float] = None  #: seconds that it had, when it was launched
        self.until = math.inf  #: when these are over, by the monotonic clock
        self._handle = handle
        self._keep = keep
        self._source = source
        self._lock = threading.Lock()
        self._ended = False
        self._callbacks: Optional[list[Callable[["Operation"], None]]] = None  # None: the completion thread does not know it

    def done(self) -> bool:
        """Whether it has ended; asks, and does not wait."""
        return self._ended or self._look(0)

    @property
    def ended(self) -> bool:
        """Whether its end has been seen here; does not ask."""
        return self._ended

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits until it has ended, or `timeout` seconds passed; returns whether it has.  Its error is raised; any number of times."""
        if not self._ended and not self._wait(timeout):
            return False
        if self.error is not None:
            raise self.error
        return True

    def cancel(self) -> None:
        """Asks all of its members to give it up; it ends as it would have, if it was complete."""
        own_process(self.world.pid, self.name)
        with self._lock:
            if not self._ended:
                check(self._cancel_in_c(self._handle), self.name)

    @property
    def source(self) -> int:
        """The rank that a message came from, as ranks counted when its receive was called.  RuntimeError: none has come."""
        if self._source is None or not self._ended or self.error is not None:
            raise RuntimeError(f"pccl: {self.name} has received nothing")
        return int(self._source[0])

    def when_done(self, callback: Callable[["Operation"], None]) -> None:
        """Has the completion thread call `callback` with this operation when it has ended; at once, here, if it has."""
        with self._lock:
            if not self._ended:
                if self._callbacks is None:
                    completion.attach(self, self._attach_in_c, self._handle)
                    self._callbacks = []
                self._callbacks.append(callback)
                return
        callback(self)

    # -- The end, seen by whichever thread first --

    def _wait(self, timeout: Optional[float]) -> bool:
        completion.step_aside()
        until = None if timeout is None else time.monotonic() + length_of_time(timeout)
        while True:
            rest = -1 if until is None else max(0, int(min(until - time.monotonic(), _LONGEST_SECONDS) * 1000 + 0.999))
            if self._look(slice_ms(rest)):
                return True
            if until is not None and time.monotonic() >= until:
                return False

    def _look(self, timeout_ms: int) -> bool:
        own_process(self.world.pid, self.name)
        over = ffi.new("pcclCompletion_t *")
        done = ffi.new("bool *")
        result = self._wait_in_c(self._handle, timeout_ms, over, done)
        if result != lib.pcclSuccess:
            error = last_error(result, self.name)
            with self._lock:
                if self._ended:  # another thread has seen it meanwhile, and has spent the handle
                    return True
                if self.world.handle is not None:
                    raise error
                self._conclude(_gone(self.name))  # it was launched while another thread destroyed the communicator
            self.world._forget(self)
            return True
        if done[0]:
            self._end(over)
        return bool(done[0])

    def _end(self, over: Any) -> None:
        """It has ended so: spends the handle, and lets go of what was borrowed."""
        with self._lock:
            if self._ended:
                return
            self._spend_in_c(self._handle, ffi.NULL)  # stores the source of a message
            if over.result == lib.pcclSuccess:
                info = over.info
                self.info = OperationInfo(info.local_world_size, info.tx_bytes, info.rx_bytes)
            self._conclude(None if over.result == lib.pcclSuccess else error_of(over.error, over.result, self.name))
        self.world._forget(self)

    def _conclude(self, error: Optional[PCCLError]) -> None:
        self.error = error
        self._keep = None
        self._ended = True

    def _delivered(self, over: Any) -> None:
        """In the completion thread: calls back, without a lock."""
        self._end(over)
        with self._lock:
            callbacks, self._callbacks = self._callbacks, None
        for callback in callbacks or ():
            completion.run(callback, self)


def _gone(name: str) -> PCCLError:
    error = make_error(Result.MASTER_CONNECTION_FAILED, name, "the communicator was destroyed meanwhile; make a new one", Cause.LEFT)
    error.error_class = ErrorClass.REJOIN
    return error
