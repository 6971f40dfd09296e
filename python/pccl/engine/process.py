"""State of a process or a thread: whether the library is initialised, and how launches and waits share time with signals."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import math
import os
import threading
import time
from typing import Any, NoReturn, Optional, Protocol

from pccl._native import lib
from pccl.errors import check, make_error
from pccl.types import Result

_initialised_in = 0

#: Python's signal handlers run in the main thread only, and only between two calls of C: so much of a wait is one call there.
MAIN_THREAD_SLICE_MS = 100


def initialise() -> None:
    """Initialises the library in this process, a forked child too."""
    global _initialised_in
    if _initialised_in != os.getpid():
        check(lib.pcclInit(), "pccl")
        _initialised_in = os.getpid()


def own_process(pid: int, function: str) -> None:
    """InvalidUsage: what was made in process `pid` is used in a child that was forked of it."""
    if os.getpid() != pid:
        text = f"this process was forked of process {pid}, whose communicator it is; make one here, or use it there"
        raise make_error(Result.INVALID_USAGE, function, text)


class Bound:
    """An object of this process alone: ending a copy would end the original in the other process."""

    __slots__ = ()

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"pccl: a {type(self).__name__} belongs to this process, and is neither copied nor pickled; make a new one")


def slice_ms(rest_ms: int) -> int:
    """How much of a wait of `rest_ms` (-1: endless) is one call of C in this thread."""
    if threading.current_thread() is not threading.main_thread():
        return rest_ms
    return MAIN_THREAD_SLICE_MS if rest_ms < 0 else min(rest_ms, MAIN_THREAD_SLICE_MS)


class Waitable(Protocol):
    """An event, or something like it."""

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Whether it has come before `timeout` seconds passed."""


class _Patience:
    """Around launches in this thread: how long each waits for its operation, and does this thread's share of it, before it returns."""

    __slots__ = ("_ms",)

    def __init__(self, milliseconds: int) -> None:
        self._ms = milliseconds

    def __enter__(self) -> None:
        lib.pcclSetCallPatience(self._ms)

    def __exit__(self, *_: object) -> None:
        lib.pcclSetCallPatience(0)


#: Around the launch of one operation that is waited for next: nobody is woken for a short one.  Not so long that a lock held around
#: the launch, or Ctrl-C, would suffer; the wait goes on where this ends.
awaited = _Patience(2)
#: Around launches that follow each other, inside of the former: each returns before its operation has ended.
at_once = _Patience(0)


def interruptible(name: str, function: Any, *arguments: Any, keep: Any = None) -> None:
    """A call of C that blocks and has no asynchronous form, made so that Ctrl-C ends the wait.  For the main thread, another thread makes
    the call.  This thread continues in C until the call has ended, and keeps the borrowed memory (`keep`) alive until then."""
    if threading.current_thread() is not threading.main_thread():
        check(function(*arguments), name)
        return
    errors: list[BaseException] = []
    ended = threading.Event()

    def run(_borrowed: Any) -> None:
        try:
            check(function(*arguments), name)
        except BaseException as error:  # noqa: B902 - raised below
            errors.append(error)
        finally:
            ended.set()

    threading.Thread(target=run, args=(keep,), name=f"pccl-{name}", daemon=True).start()
    wait_for(ended)
    if errors:
        raise errors[0]


def wait_for(event: Waitable, timeout: float = math.inf) -> None:
    """Until it is set, or `timeout` seconds passed; in slices, since a signal that comes just before the main thread sleeps, or meets
    another thread, wakes nobody."""
    until = time.monotonic() + timeout
    while not event.wait(MAIN_THREAD_SLICE_MS / 1000) and time.monotonic() < until:
        pass
