"""How the ranks of a group find each other: over torch's store, which carries the master's address and the name of the world, nothing else.

The store is asked, never waited in: a wait would keep other threads out of it.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import concurrent.futures
import json
import os
import threading
import time
from typing import Any, Callable, Optional, TypeVar

from torch.distributed.distributed_c10d import PrefixStore

from pccl.distributed.deadlines import GRACE
from pccl.distributed.options import Options
from pccl.engine import World, bootstrap
from pccl.engine.bootstrap import reachable_host
from pccl.engine.meeting import Record, connected, follow, lead, world_of
from pccl.errors import PCCLError, make_error
from pccl.types import Cause, Result

_T = TypeVar("_T")
_REACH = 10.0  # seconds that a master has to answer, or as many as there are


class _Board:
    """A store of torch as a board: numbers are counted up by `add`."""

    def __init__(self, store: Any, until: float) -> None:
        self._store = store
        self._until = until

    def post(self, record: Record) -> None:
        self._asked(lambda: self._store.set(_key(self._store.add("incarnation", 1)), json.dumps(record)))

    def newest(self, known: int) -> int:
        return self._asked(lambda: self._newest(known))

    def read(self, number: int) -> Record:
        return Record(*json.loads(self._asked(lambda: self._store.get(_key(number)))))

    def _newest(self, known: int) -> int:
        while self._store.check([_key(known + 1)]):
            known += 1
        return known

    def _asked(self, ask: Callable[[], _T]) -> _T:
        """In a thread, as torch waits for ever where the process that serves the store is frozen."""
        answer: "concurrent.futures.Future[_T]" = concurrent.futures.Future()
        threading.Thread(target=_answer, args=(answer, ask), name="pccl-store", daemon=True).start()
        concurrent.futures.wait([answer], max(0.0, self._until + GRACE - time.monotonic()))
        if not answer.done():
            text = "timed out: the store gives no answer; look whether the process that serves it runs, which is rank 0's or the launcher's"
            raise make_error(Result.RANK_CONNECTION_LOST, "init_process_group", text, Cause.DEADLINE)
        try:
            return answer.result()
        finally:
            del answer  # its error has this frame


def _answer(answer: "concurrent.futures.Future[_T]", ask: Callable[[], _T]) -> None:
    try:
        said = ask()
    except Exception as error:  # noqa: B902 - of any store
        answer.set_exception(error)
    else:
        answer.set_result(said)


def _key(incarnation: int) -> str:
    return f"incarnation/{incarnation}"


def meet(store: Any, rank: int, size: int, timeout: float, options: Options) -> tuple[World, Record]:
    """The world of a group, connected, within `timeout` seconds.  PCCLError: why not, naming ranks that are missing."""
    try:
        return _met(store, rank, size, timeout, options)
    except PCCLError as error:
        if error.cause is Cause.DEADLINE and "timed out after" not in error.text:
            error.text = f"timed out after {timeout:g} s: {error.text}"
        raise


def _met(store: Any, rank: int, size: int, timeout: float, options: Options) -> tuple[World, Record]:
    until = time.monotonic() + timeout

    def enter(record: Record) -> World:
        return _world(record, rank, size, max(0.001, until - time.monotonic()), options)

    if options.world:
        where = Record(options.master, options.world)
        return connected(enter(where)), where
    if rank == 0:
        given = given_master(options)
        return lead(_Board(store, until), given or own_master(store), not given, "torch-", enter)
    return follow(_Board(store, until), rank, until, enter, _nobody(timeout))


def _world(where: Record, rank: int, size: int, timeout: float, options: Options) -> World:
    """Not connected."""
    if options.join:
        world = world_of(where, size=size, rank=rank, join=True, lanes=options.lanes, stall=options.stall)
    else:
        world = world_of(
            where, size=size, rank=rank, loss_rule=options.loss_rule, formation_timeout=timeout, lanes=options.lanes, stall=options.stall
        )
    world.set_connect_timeout(min(timeout, _REACH))
    return world


def given_master(options: Options) -> str:
    """The one that the program or the environment names, or ""."""
    return options.master or bootstrap.named_master()


def own_master(store: Any) -> str:
    """A master of this process's own, at an address that is reachable from every process that can reach the store."""
    towards = os.environ.get("MASTER_ADDR") or _host_of(store)
    port = os.environ.get("PCCL_MASTER_PORT", "0")
    if not (port.isdecimal() and int(port) < 65536):
        raise ValueError(f"pccl: PCCL_MASTER_PORT is {port!r}; set it to a port, 0 to 65535, or not at all")
    return bootstrap.own_master(reachable_host(towards), int(port), elsewhere=False)


def _host_of(store: Any) -> Optional[str]:
    while isinstance(store, PrefixStore):
        store = store.underlying_store
    return getattr(store, "host", None)


def _nobody(timeout: float) -> PCCLError:
    text = f"timed out after {timeout:g} s: rank 0 has not said in the store where the master is; look whether it runs"
    return make_error(Result.RANK_CONNECTION_LOST, "init_process_group", text, Cause.DEADLINE)
