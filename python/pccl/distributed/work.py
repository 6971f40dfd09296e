"""A Work: torch's handle of a call, over one or several operations of the engine.

A thread that waits drives the operations in C.  The engine's completion thread handles futures, and results that have to be copied.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import contextlib
import itertools
import threading
import time
from datetime import timedelta
from typing import Any, Callable, Iterable, Iterator, Literal, NamedTuple, Optional, Sequence

import torch
import torch.distributed as dist

from pccl.distributed.tensors import Finish
from pccl.distributed.weak import twin
from pccl.engine import Operation, World
from pccl.engine.backlog import Gate
from pccl.engine.completion import step_aside
from pccl.engine.untraced import untraced
from pccl.errors import PCCLError

#: What has room of its own among what may be under way at once.
Share = Literal["collectives", "sends", "receives", "reconfigurations"]


class Call(NamedTuple):
    """A collective or message, ready to be launched in a world under a deadline (seconds; None: the group's)."""

    launch: Callable[[World, Optional[float]], Iterable[Operation]]  #: not a list: launched one by one, as they are asked for
    value: Any                #: of the future
    finish: Finish = None     #: after success: copies out
    opts: Any = None          #: torch's: timeout, asyncOp
    share: Share = "collectives"


class Refused(Exception):
    """Calls could not be made here, because of `error`, and have kept their places among the others'."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


def keep_place(world: World, error: Exception) -> Sequence[Operation]:
    """Takes the place of a collective that could not be called because of `error`, unless the library has heard of it.

    Without that the others would take this rank's next collective for it.  Returns the operation to wait for, if there is one.
    """
    operation: Optional[Operation] = None
    if not getattr(error, "_of_library", False):
        with contextlib.suppress(PCCLError):  # the world has ended
            operation = world.refuse()
    return () if operation is None else (operation,)


def _told(_: "Work", error: Exception) -> Exception:
    """Of a work that has ended, which refers to its group no longer."""
    return error


def _nobody(_: "Work") -> str:
    return ""


@untraced
class Work(dist.Work):
    """`wait` raises the error; `get_future` delivers it.  Success is success of all its operations, an error that of the first that has one."""

    def __init__(self, failed: Callable[["Work", Exception], Exception], waits: Callable[["Work"], str] = _nobody) -> None:
        """`failed` is told how it fails, and returns what to raise; `waits` tells for whom it waits, as a part of a sentence."""
        super().__init__()
        self._failed = failed
        self._waits = waits
        self._lock = threading.Lock()
        self._call: Optional[Call] = None
        self._gate: Optional[Gate] = None              # that it waits at before it is launched
        self._is_told = False                          # the completion thread sees to its end
        self._start: Callable[[], Iterable[Operation]] = tuple
        self._world: Optional[World] = None            # in which it is launched
        self._rest: Optional[Iterator[Operation]] = None  # of its operations, which are launched as they are asked for
        self._operations: list[Operation] = []
        self.launched = False                          #: all of them
        self._mistake: Optional[Exception] = None      # one could not be
        self._left: Optional[int] = None               # operations that the completion thread has not told of yet; None: it tells nothing
        self._over = False
        self._error: Optional[Exception] = None
        self._value: Any = []
        self._raw: Any = None
        self._future: Any = None

    # -- What a group does with it --

    def prepare(self, call: Call) -> None:
        """It is this call's."""
        self._call = call
        self._value = call.value

    def begin(self, world: World, deadline: Optional[float], told: bool) -> None:
        """It may be launched; if `told`, the completion thread sees to its end."""
        call = self._call
        assert call is not None
        self._start = lambda: call.launch(world, deadline)
        self._world = world
        self._is_told = told and call.finish is not None

    def launch(self, room: int) -> Sequence[Operation]:
        """Launches the next operations of the call, as many as there is `room` for; returns them.  `launched`, if they are the last ones."""
        new: list[Operation] = []
        last = True
        try:
            if self._rest is None:
                start = self._start()
                if isinstance(start, list):
                    new = start
                self._rest = iter(() if new else start)
            if not new:
                new.extend(itertools.islice(self._rest, room))
                last = len(new) < room
        except Refused as refusal:
            self._mistake = refusal.error
        except Exception as error:  # noqa: B902 - whatever it is, it is raised by wait, never by a call inside of a backward pass
            if self.share == "collectives" and self._world is not None:
                new.extend(keep_place(self._world, error))
            self._mistake = error
        with self._lock:
            self._operations += new
            self.launched = last or self._mistake is not None
        return new

    def tell(self) -> None:
        """After a launch: ends it if nothing could be launched.  Otherwise the completion thread handles its end, if a callback needs it."""
        if self.launched and self._mistake is not None and not self._operations:
            self.end(self._mistake)
        elif self.launched and (self._raw is not None or self._is_told):
            self._tell()

    @property
    def opts(self) -> Any:
        """torch's options of the call."""
        return None if self._call is None else self._call.opts

    @property
    def share(self) -> Share:
        """Its call's, before it is launched."""
        assert self._call is not None
        return self._call.share

    @property
    def operations(self) -> Sequence[Operation]:
        """The operations that it has launched."""
        return self._operations

    @property
    def name(self) -> str:
        """Of its operations; "" before they are launched."""
        return self._operations[0].name if self._operations else ""

    def postpone(self, gate: Gate) -> None:
        """It is launched when that opens: its group has come to be, or there is room for it."""
        self._gate = gate

    def end(self, error: Optional[Exception] = None) -> None:
        """It has ended so; results are copied out once."""
        if error is not None and not self._over:
            error = self._failed(self, error)
        with self._lock:
            if self._over:
                return
            if error is None and self._call is not None and self._call.finish is not None:
                try:
                    self._call.finish()
                except Exception as mistake:  # noqa: B902
                    error = self._failed(self, mistake)
            self._error = None if error is None else error.with_traceback(None)
            self._over = True
            self._call = None
            self._failed = _told
            self._waits = _nobody
            raw = self._raw
        if raw is not None:
            self._resolve(raw)

    def drive(self, timeout: Optional[float] = None) -> bool:
        """Waits for the end, in C once it is launched; whether it has come.  Raises nothing of the operations."""
        until = None if timeout is None else time.monotonic() + timeout
        gate: Optional[Gate] = None
        while not self.launched and not self._over and self._gate not in (None, gate):
            gate = self._gate
            assert gate is not None
            step_aside()
            if not gate.wait(None if until is None else max(0.0, until - time.monotonic())):
                return False
        for operation in self._operations:
            try:
                if not operation.wait(None if until is None else max(0.0, until - time.monotonic())):
                    return False
            except Exception as failure:  # noqa: B902 - its end is told below
                failure.__traceback__ = None  # which has this frame, and those of the callers: a cycle
                if operation.error is None:
                    self.end(failure)
                    return True
        self.end(self._outcome())
        return True

    def _outcome(self) -> Optional[Exception]:
        """The first error of its operations, but for those that only keep a place; then why one could not be called."""
        failed = (operation.error for operation in self._operations if operation.error is not None and operation.name != "refuse")
        return next(failed, self._mistake)

    # -- What torch asks of it --

    def wait(self, timeout: Optional[timedelta] = None) -> bool:
        """Waits, `timeout` at most (0, and below: without limit).  Raises how it failed; TimeoutError: it goes on."""
        seconds = timeout.total_seconds() if timeout is not None else 0.0
        if not self._over and not self.drive(seconds if seconds > 0 else None):
            raise TimeoutError(f"pccl: timed out after {seconds:g} s{self._waits(self)}; the operation goes on, wait again")
        if self._error is not None:
            raise twin(self._error)
        return True

    def synchronize(self) -> None:
        self.wait()

    def is_completed(self) -> bool:
        if not self._over and self.launched and all(operation.done() for operation in self._operations):
            self.drive()
        return self._over

    def is_success(self) -> bool:
        return self.is_completed() and self._error is None

    def exception(self) -> Optional[Exception]:
        return self._error

    def result(self) -> Any:
        self.wait()
        return self._value

    def _source_rank(self) -> int:
        """The rank in the group that a message came from."""
        self.wait()
        return self._operations[0].source

    def get_future(self) -> Any:
        """Completed by the completion thread.  Callbacks run there."""
        with self._lock:
            if self._future is None:
                self._raw = torch.futures.Future()
                self._future = self._raw.then(lambda raw: raw.value())  # a stored exception becomes a real one, which DDP needs
                over, launched = self._over, self.launched
            else:
                over = launched = False
            future = self._future
        if over:
            self._resolve(self._raw)
        else:
            step_aside()  # where a callback asks for one, it may wait for it
            if launched:
                self._tell()
        return future

    # -- The completion thread --

    def _tell(self) -> None:
        operations = self._operations
        with self._lock:
            if self._left is not None:
                return
            self._left = len(operations)
        if not operations:
            self.end(self._mistake)
        for operation in operations:
            operation.when_done(self._told)

    def _told(self, _: Operation) -> None:
        with self._lock:
            assert self._left is not None
            self._left -= 1
            if self._left:
                return
        self.end(self._outcome())

    def _resolve(self, raw: Any) -> None:
        if self._error is None:
            raw.set_result(self._value)
        else:
            raw.set_exception(self._error)
