"""How a world of a torch group begins: a store, the members' entries in it, then the group.

All of it blocks in torch, so a thread does it.  The thread repeats an attempt that fails before the timeout: it met a member of an older
world, or a member has gone meanwhile.  A member whose attempt failed says so in the store: the others leave their attempts, which could
not succeed, and begin again, too.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import atexit
import concurrent.futures
import contextlib
import datetime
import functools
import os
import socket
import threading
import time
from typing import Any, Callable, Optional

import torch
import torch.distributed

from pccl.errors import make_error
from pccl.multiworld.domain import Domain, Formation
from pccl.multiworld.groups import GroupDomain, await_on
from pccl.multiworld.lanes import GroupFlight
from pccl.multiworld.liveness import announce, announced
from pccl.types import Cause, Result

dist: Any = torch.distributed  # of which type checkers know half

_OPERATION_MINUTES = 30  # torch's own default: a receive that waits longer fails
_WORTH_A_TRY = 0.5       # seconds left, below which a formation is not tried again
_GROUP_LIMIT = datetime.timedelta(seconds=10)  # all are there when the group is made: then it does not take long, or somebody has gone
_REACH_SECONDS = 1.0     # that one connection to rank 0 may take to come
_PAUSE = 0.1             # seconds between two tries
_CLOSING_SECONDS = 5.0   # that the interpreter's end waits for what torch is at
_LOOK = 0.02             # and between two looks at the store
_OVER = "over"           # stands in the store of a try that has failed

#: What keeps nccl from ending the host process when a peer is lost.
_NCCL_ENVIRONMENT = {"TORCH_NCCL_ASYNC_ERROR_HANDLING": "2", "TORCH_NCCL_ENABLE_MONITORING": "0"}


class GroupFormation(Formation):
    """A store and a group, made by a thread, as often as that fails before its time: then somebody of an older world was met."""

    def __init__(
        self, name: str, rank: int, size: int, backend: str, addr: str, port: int, timeout: float, device: Any, stall: Optional[float]
    ) -> None:
        if port <= 0:
            raise ValueError(f"pccl: port is {port}; a world of {backend} needs one of its own, where rank 0 listens")
        self._name, self._rank, self._size, self._backend = name, rank, size, backend
        self._addr, self._port, self._stall = addr, port, stall
        if backend == "nccl" and not (dist.is_nccl_available() and torch.cuda.is_available()):
            raise ValueError("pccl: backend 'nccl' needs a torch that has it, and a GPU; pass 'pccl' or 'gloo'")
        self._device = torch.device("cpu" if backend == "gloo" else "cuda" if device is None else device)
        self._timeout = timeout
        self._until = time.monotonic() + timeout
        self._lock = threading.Lock()
        self._abandoned = False
        self._domain: Optional[GroupDomain] = None

    def left(self) -> float:
        return max(0.0, self._until - time.monotonic())

    def begin(self) -> GroupFlight:
        flight = GroupFlight(None, lambda _: None)
        self._start(f"connect {self._name}", lambda: self._connect(flight))
        return flight

    def _start(self, name: str, work: Callable[[], None]) -> None:
        """Has a thread do it, that the interpreter's end waits for."""

        def run() -> None:
            try:
                work()
            finally:
                _working.pop(thread, None)

        thread = threading.Thread(target=run, name=f"pccl-multiworld: {name}", daemon=True)
        _working[thread] = self
        thread.start()

    def conclude(self, flight: Any) -> Optional[Domain]:
        if flight.error is not None:
            text = self._missing(flight.error)
            raise make_error(Result.RANK_CONNECTION_LOST, "initialize_world", text, Cause.DEADLINE) from flight.error
        assert self._domain is not None
        return self._domain

    def abandon(self) -> None:
        with self._lock:
            self._abandoned = True
            domain = self._domain
        if domain is not None:
            domain.close()

    def _missing(self, error: BaseException) -> str:
        met = ""
        if getattr(error, "cause", None) is not Cause.CANCELLED:  # else torch is still at it
            met = " (" + str(error).partition("\n")[0] + ")"
        return (
            f"world {self._name}: not all of its {self._size} ranks have met at {self._addr}:{self._port}, where rank 0 listens, "
            f"in {self._timeout:g} s{met}; start those that are missing, or mend the address"
        )

    def _connect(self, flight: GroupFlight) -> None:
        while True:
            try:
                domain = self._tried()
                break
            except Exception as error:  # noqa: B902 - whatever torch makes of it
                if self._abandoned or self.left() < _WORTH_A_TRY:
                    flight.resolve(error.with_traceback(None))  # whoever keeps it keeps no store, and so no port
                    return
            time.sleep(_PAUSE)
        with self._lock:
            self._domain = domain
            abandoned = self._abandoned
        if abandoned:
            domain.close()
        flight.resolve(None)

    def _tried(self) -> GroupDomain:
        limit = datetime.timedelta(seconds=max(self.left(), _WORTH_A_TRY))
        store = self._store(self._rank == 0, limit)
        told = dist.PrefixStore(self._name, store)
        post = None
        try:
            if told.add(f"come/{self._rank}", 1) != 1:
                raise RuntimeError(f"pccl: at {self._addr}:{self._port} is the store of an older world {self._name}, which rank 0 has not left")
            post = announce(told, self._rank, self._addr, self._stall is not None)
            self._await_all(told)
            group = self._group_of_all(told, limit)
            return GroupDomain(self._name, self._backend, self._rank, self._size, store, group, self._device, post, self._stall or 0.0)
        except BaseException:
            with contextlib.suppress(Exception):  # the store has gone: they see that
                told.set(_OVER, "")
            if post is not None:
                post.socket.close()
            raise

    def _store(self, serve: bool, limit: datetime.timedelta) -> Any:
        if not serve:
            self._reach()
        return dist.TCPStore(self._addr, self._port, None, serve, limit, False)

    def _reach(self) -> None:
        """Until somebody listens: torch would not let itself be interrupted, and writes at length that nobody does."""
        while True:
            try:
                return socket.create_connection((self._addr, self._port), _REACH_SECONDS).close()
            except OSError:
                if self.left() == 0:
                    raise
            self._go_on()
            time.sleep(_LOOK)

    def _await_all(self, told: Any) -> None:
        """Until all ranks have announced themselves."""
        while not told.check([announced(rank) for rank in range(self._size)]):
            self._look(told)
            if self.left() == 0:
                missing = [rank for rank in range(self._size) if not told.check([announced(rank)])]
                raise RuntimeError(f"pccl: missing are the ranks {', '.join(map(str, missing))}")
            time.sleep(_LOOK)

    def _group_of_all(self, told: Any, limit: datetime.timedelta) -> Any:
        """The group; a thread makes it, over a connection of its own, since torch is at it for longer than it is told where a rank has gone."""
        store = dist.PrefixStore(self._name, self._store(False, limit))
        making: "concurrent.futures.Future[Any]" = concurrent.futures.Future()
        self._start(f"group of {self._name}", functools.partial(self._make, making, store, limit))
        try:
            while True:
                with contextlib.suppress(concurrent.futures.TimeoutError):
                    return making.result(_LOOK)
                self._look(told)
        finally:
            del making  # its error has this frame, and with that the store

    def _make(self, making: "concurrent.futures.Future[Any]", store: Any, limit: datetime.timedelta) -> None:
        try:
            group = self._group(store, min(limit, _GROUP_LIMIT))
        except Exception as error:  # noqa: B902 - whatever torch makes of it
            making.set_exception(error)
        else:
            making.set_result(group)

    def _look(self, told: Any) -> None:
        """RuntimeError: it is given up, here or since somebody's try has failed."""
        self._go_on()
        if told.check([_OVER]):
            raise RuntimeError(f"pccl: a rank has gone, or come again, while {self._name} began")

    def _go_on(self) -> None:
        """RuntimeError: it is given up here."""
        if self._abandoned:
            raise RuntimeError(f"pccl: the initialisation of {self._name} was given up")

    def _group(self, store: Any, limit: datetime.timedelta) -> Any:
        if self._backend == "gloo":
            group = dist.ProcessGroupGloo(store, self._rank, self._size, limit)
            group.set_timeout(datetime.timedelta(minutes=_OPERATION_MINUTES))
            return group
        for name, value in _NCCL_ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        with torch.cuda.device(self._device):
            group = dist.ProcessGroupNCCL(store, self._rank, self._size, dist.ProcessGroupNCCL.Options())
            await_on(self._device)(group.allreduce([torch.zeros(1, device=self._device)], dist.AllreduceOptions()))
        return group


def _end_all() -> None:
    """At the interpreter's end: a thread that is in torch then would take the process down with it."""
    for formation in list(_working.values()):
        formation.abandon()
    until = time.monotonic() + _CLOSING_SECONDS
    for thread in list(_working):
        thread.join(max(0.0, until - time.monotonic()))


_working: dict[threading.Thread, GroupFormation] = {}
atexit.register(_end_all)
