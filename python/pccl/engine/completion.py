"""The completion thread: one for a process, from the first operation that wants to be told of on.

It waits in C, without the interpreter's lock, for whatever ends in any world, and calls back in that order.  It ends with the
interpreter; a forked child begins anew.
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
    """A queue with its thread, and the operations that are attached to it, by cookie."""

    def __init__(self) -> None:
        queue = ffi.new("pcclCompletionQueue_t **")
        check(lib.pcclCreateCompletionQueue(queue), "pcclCreateCompletionQueue")
        self.queue = queue[0]
        self.attached: dict[int, "Operation"] = {}
        self.stopped = False
        self.thread = threading.Thread(target=self._serve, name="pccl-completions", daemon=True)
        self.thread.start()

    def _serve(self) -> None:
        ended = ffi.new(f"pcclCompletion_t[{_BATCH}]")
        count = ffi.new("size_t *")
        while not self.stopped:
            check(lib.pcclQueueWait(self.queue, ended, _BATCH, -1, count), "pcclQueueWait")
            for i in range(count[0]):
                operation = self.attached.pop(ended[i].cookie)
                run(operation._delivered, ended[i])
                del operation

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
        check(result, "pcclQueueAttach")


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
