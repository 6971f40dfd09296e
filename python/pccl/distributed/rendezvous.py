"""How the ranks of a group find each other: the store carries the master's address and the name of the world, and nothing else.

Rank 0 counts the incarnation up (`Store.add`) and writes both under that number, with a name that nobody had before.  A store may outlive a
job: another rank that comes early finds what a past rank 0 wrote.  It tries that, which leads to nobody, and looks meanwhile for a
newer number; so a job that was started again never meets its own past.  The store is asked, never waited in: a wait would keep other
threads out of it.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import os
import time
import uuid
from typing import Any, NamedTuple, Optional

from torch.distributed.distributed_c10d import PrefixStore

from pccl.distributed.options import Options
from pccl.engine import World, bootstrap
from pccl.engine.bootstrap import reachable_host
from pccl.errors import PCCLError, make_error
from pccl.types import Cause, Result

_FIRST_LOOK, _LONGEST_LOOK = 0.005, 0.2  # seconds between two questions to the store
_PAST = 30.0  # how long a number that was there before this rank may turn out to be of the past, once it has led nowhere


class Whereabouts(NamedTuple):
    """Where a group's world is."""

    master: str
    name: str


def world_of(where: Whereabouts, rank: int, size: int, timeout: float, options: Options) -> World:
    """The world, not connected."""
    if options.join:
        return World(where.master, name=where.name, size=size, rank=rank, join=True, lanes=options.lanes, stall=options.stall)
    return World(
        where.master, name=where.name, size=size, rank=rank, loss_rule=options.loss_rule, formation_timeout=timeout, lanes=options.lanes,
        stall=options.stall,
    )


def meet(store: Any, rank: int, size: int, timeout: float, options: Options) -> tuple[World, Whereabouts]:
    """The world of a group, connected, within `timeout` seconds.  PCCLError: why not, naming ranks that are missing."""
    if options.world:
        where = Whereabouts(options.master, options.world)
        return _connected(world_of(where, rank, size, timeout, options)), where
    if rank == 0:
        where = Whereabouts(given_master(options) or own_master(store), f"torch-{uuid.uuid4().hex}")
        store.set(_key(store.add("incarnation", 1)), f"{where.master} {where.name}")
        return _connected(world_of(where, rank, size, timeout, options)), where
    return _find(store, rank, size, timeout, options)


def given_master(options: Options) -> str:
    """The one that the program or the environment names, or ""."""
    return options.master or os.environ.get("PCCL_MASTER", "")


def own_master(store: Any) -> str:
    """A master of this process's own, at an address at which whoever can reach the store can reach it."""
    towards = os.environ.get("MASTER_ADDR") or _host_of(store)
    return bootstrap.own_master(reachable_host(towards), int(os.environ.get("PCCL_MASTER_PORT", "0")), elsewhere=False)


def _host_of(store: Any) -> Optional[str]:
    while isinstance(store, PrefixStore):
        store = store.underlying_store
    return getattr(store, "host", None)


def _key(incarnation: int) -> str:
    return f"incarnation/{incarnation}"


def _connected(world: World) -> World:
    try:
        world.connect()
    except BaseException:
        world.destroy()
        raise
    return world


def _find(store: Any, rank: int, size: int, timeout: float, options: Options) -> tuple[World, Whereabouts]:
    """By what rank 0 has written last."""
    until = time.monotonic() + timeout
    past = _newest(store, 0)  # may be of the past; what comes later is not
    incarnation = past or _newer(store, 0, until)
    failure: PCCLError = _nobody(timeout)
    while incarnation:
        master, name = store.get(_key(incarnation)).decode().split(" ")
        where = Whereabouts(master, name)
        world = world_of(where, rank, size, max(0.001, until - time.monotonic()), options)
        try:
            if incarnation > past:
                return _connected(world), where
            if _connected_before(world, store, incarnation):
                return world, where
        except PCCLError as error:
            if incarnation > past:
                raise
            failure = error
            until = min(until, time.monotonic() + _PAST)
        world.destroy()
        incarnation = _newer(store, incarnation, until)
    raise failure


def _connected_before(world: World, store: Any, incarnation: int) -> bool:
    """Whether the world has begun; given up when something newer is written.  PCCLError: it will not begin."""
    operation = world.connect_async()
    look = _FIRST_LOOK
    while not operation.wait(look):
        look = min(look * 1.5, _LONGEST_LOOK)
        if _newest(store, incarnation) > incarnation:
            return False
    return True


def _newer(store: Any, known: int, until: float) -> int:
    """The next number that something is written under; 0: none until then."""
    look = _FIRST_LOOK
    while (newest := _newest(store, known)) == known:
        if time.monotonic() >= until:
            return 0
        time.sleep(look)
        look = min(look * 1.5, _LONGEST_LOOK)
    return newest


def _newest(store: Any, known: int) -> int:
    """The highest number that something is written under, which is `known` at least."""
    while store.check([_key(known + 1)]):
        known += 1
    return known


def _nobody(timeout: float) -> PCCLError:
    text = f"timed out: rank 0 has not said in the store, for {timeout:g} s, where the master is; look whether it runs"
    return make_error(Result.RANK_CONNECTION_LOST, "init_process_group", text, Cause.DEADLINE)
