"""The completion thread: one for a process, started by the first operation that has a callback.

It waits in C, without the interpreter's lock, for operations that end in any world, and calls back in that order.  A callback that
waits keeps its thread, and another thread takes over.  The thread ends with the interpreter; a forked child starts its own.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import atexit
import itertools
import os
import sys
import threading
from typing import TYPE_CHECKING, Any, Callable, Optional

from pccl._native import ffi, lib
from pccl.errors import check

if TYPE_CHECKING:
    from pccl.engine.operation import Operation

_BATCH = 64


class _Completions:
    """A queue with the thread that serves it, and the operations that are attached to it, by cookie."""

    def __init__(self) -> None:
        queue = ffi.new("pcclCompletionQueue_t **")
        check(lib.pcclCreateCompletionQueue(queue), "when_done")
        self.queue = queue[0]
        self.attached: dict[int, "Operation"] = {}
        self.stopped = False
        self._ended = ffi.new(f"pcclCompletion_t[{_BATCH}]")
        self._count = ffi.new("size_t *")
        self._next = 0  # of the ended ones to tell of
        self.hand_over()

    def hand_over(self) -> None:
        """Has a new thread serve, which goes on where the one before it is."""
        self.thread = threading.Thread(target=self._serve, name="pccl-completions", daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        while self._tell() and not self.stopped:
            check(lib.pcclQueueWait(self.queue, self._ended, _BATCH, -1, self._count), "when_done")
            self._next = 0

    def _tell(self) -> bool:
        """Calls back for all that have ended; whether it is still this thread that serves."""
        while self._next < self._count[0]:
            over = self._ended[self._next]
            self._next += 1
            operation = self.attached.pop(over.cookie)
            run(operation._delivered, over)
            del operation
            if self.thread is not threading.current_thread():
                return False
        return True

    def stop(self) -> None:
        self.stopped = True
        lib.pcclQueueWake(self.queue)
        self.thread.join()
        lib.pcclDestroyCompletionQueue(self.queue)


_cookies = itertools.count(1)
_lock = threading.Lock()
_completions: Optional[_Completions] = None


def attach(operation: "Operation", attach_in_c: Any, handle: Any) -> None:
    """Has the thread deliver the operation when it has ended; `attach_in_c` is the library's call for handles of its type."""
    global _completions
    with _lock:
        if _completions is None:
            _completions = _Completions()
        completions = _completions
    cookie = next(_cookies)
    completions.attached[cookie] = operation
    result = attach_in_c(completions.queue, handle, cookie)
    if result != lib.pcclSuccess:
        completions.attached.pop(cookie, None)
        check(result, "when_done")


def step_aside() -> None:
    """Called before a callback waits, or may wait.  Another thread serves from here on, so that the awaited operation can be reported."""
    completions = _completions
    if completions is not None and completions.thread is threading.current_thread():
        completions.hand_over()


def run(callback: Callable[[Any], None], argument: Any) -> None:
    """Calls a callback, whose exceptions are its own: they go where those of threads go."""
    try:
        callback(argument)
    except BaseException:  # noqa: B902 - the thread goes on, whatever it is
        threading.excepthook(threading.ExceptHookArgs((*sys.exc_info(), threading.current_thread())))


def _stop() -> None:
    global _completions
    with _lock:
        completions, _completions = _completions, None
    if completions is not None:
        completions.stop()


def _forget_in_child() -> None:
    global _completions, _lock
    _lock = threading.Lock()
    _completions = None


atexit.register(_stop)
os.register_at_fork(after_in_child=_forget_in_child)
