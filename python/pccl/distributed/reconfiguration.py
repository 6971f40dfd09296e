"""PyTorch's reconfigure contract: a group whose members, and their ranks, are named anew by a list of handles, as often as one likes.

A handle tells a master's address (or none), the group's own number, and the uuid of its last reconfiguration, so that an old one is not
taken for a new one.  All members of the new set call with the same uuid and handles, and nobody else: the world's name is made of these,
and begins once only.  The old world is left after the new one has begun; when it does not, all is as before.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any, Collection, NamedTuple, Optional

from pccl.distributed.options import Options
from pccl.distributed.rendezvous import Whereabouts
from pccl.engine import World
from pccl.errors import MasterConnectionFailed, PCCLError, make_error
from pccl.types import Cause, Result


class Handle(NamedTuple):
    """Where a process's group is to be found, as others pass it on."""

    master: str
    number: str
    uuid: str   #: "" before the first reconfiguration

    def __str__(self) -> str:
        return f"pccl|{self.master}|{self.number}|{self.uuid}"


class Wish(NamedTuple):
    """What torch's ReconfigureOptions tells."""

    uuid: int
    handles: Collection[str]
    timeout: Optional[timedelta] = None
    hints: Optional[dict[str, str]] = None


class Place(NamedTuple):
    """Where this process is in the new group."""

    where: Whereabouts
    rank: int
    size: int


def place_of(own: Handle, wish: Any) -> Place:
    """In a list ranks are positions, in a set the order of the texts.  RuntimeError: nothing has happened."""
    texts = sorted(wish.handles) if isinstance(wish.handles, (set, frozenset)) else list(wish.handles)
    handles = [_parsed(text) for text in texts]
    if len(set(texts)) != len(texts):
        raise _mistake("handles must be unique, and one is there twice")
    if own not in handles:
        raise _mistake("this process's own handle is missing, so it is not part of the new group; ask it for its handle anew")
    if str(wish.uuid) in {handle.uuid for handle in handles}:
        raise used(wish.uuid)
    master = next((handle.master for handle in handles if handle.master), None)
    if master is None:
        raise _mistake("no handle tells a master's address; set PCCL_MASTER at one member at least")
    text = "\n".join([str(wish.uuid), *sorted(texts)])
    return Place(Whereabouts(master, f"reconfigured-{hashlib.sha256(text.encode()).hexdigest()[:40]}"), handles.index(own), len(handles))


def world_at(place: Place, uuid: int, timeout: timedelta, options: Options) -> World:
    """The new world, connected.  PCCLError: it has not come to be, at any member."""
    world = World(
        place.where.master, name=place.where.name, size=place.size, rank=place.rank, loss_rule=options.loss_rule, once=True,
        formation_timeout=timeout.total_seconds(), lanes=options.lanes, stall=options.stall,
    )
    try:
        world.set_connect_timeout(timeout.total_seconds())
        world.connect()
    except BaseException as error:
        world.destroy()
        if isinstance(error, MasterConnectionFailed) and error.cause is Cause.NAME_USED:
            raise used(uuid) from error
        raise
    return world


def used(uuid: int) -> PCCLError:
    return make_error(Result.INVALID_USAGE, "reconfigure", f"uuid {uuid} was already used; pass a fresh one", Cause.NAME_USED)


def not_begun() -> PCCLError:
    text = "the group has not been initialized: call reconfigure() with the handles of its members"
    return make_error(Result.INVALID_USAGE, "process group", text)


def _parsed(text: str) -> Handle:
    parts = text.split("|")
    if len(parts) != 4 or parts[0] != "pccl" or not parts[2]:
        raise _mistake(f"{text[:80]!r} is an invalid handle of this backend; pass what get_reconfigure_handle() gives")
    return Handle(*parts[1:])


def _mistake(text: str) -> PCCLError:
    return make_error(Result.INVALID_ARGUMENT, "reconfigure", text)
