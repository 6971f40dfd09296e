"""PyTorch's reconfigure contract: a group whose members, and their ranks, are named anew by a list of handles, as often as one likes.

A handle tells a master's address, the group's own number, and the uuid of its last reconfiguration, so that an old one is not taken for
a new one.  All members of the new set call with the same uuid and handles, and nobody else: the world's name is made of these.  In it
each first tells all others whether it has had that uuid before, so all come to the same end, though one alone knows why.  The old world
is left after that; when it does not come to it, all is as before.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import hashlib
import secrets
import time
from datetime import timedelta
from typing import Any, Collection, NamedTuple, Optional

from torch.distributed import distributed_c10d

from pccl.distributed.options import Options
from pccl.engine import World
from pccl.engine.meeting import Record, world_of
from pccl.engine.told import first_who
from pccl.errors import PCCLError, make_error
from pccl.types import Cause, Result

_UUIDS = range(-(2**63), 2**63)
_OWN = "own"


class Handle(NamedTuple):
    """Where a process's group is to be found, as others pass it on."""

    master: str
    number: str
    uuid: str   #: "" before the first reconfiguration
    own: str    #: `_OWN`: this process has started the master; "": it was given one

    def __str__(self) -> str:
        return f"pccl|{'|'.join(self)}"


class Wish(NamedTuple):
    """The fields of torch's ReconfigureOptions."""

    uuid: int
    handles: Collection[str]
    timeout: Optional[timedelta] = None
    hints: Optional[dict[str, str]] = None


class Place(NamedTuple):
    """Where this process is in the new group."""

    where: Record
    rank: int
    size: int


def first_handle(given_master: str) -> Handle:
    """The handle of a process's group before its first reconfiguration.  If no master is given, it is found when it is needed."""
    return Handle(given_master, secrets.token_hex(16), "", "" if given_master else _OWN)


def place_of(own: Handle, wish: Any) -> Place:
    """In a list ranks are positions, in a set the order of the texts.  RuntimeError: nothing has happened."""
    _check(wish)
    texts = sorted(wish.handles) if isinstance(wish.handles, (set, frozenset)) else list(wish.handles)
    handles = [_parsed(text) for text in texts]
    if len(set(texts)) != len(texts):
        raise _mistake("handles must be unique, and one is there twice")
    if own not in handles:
        raise _mistake("this process's own handle is missing, so it is not part of the new group; ask it for its handle anew")
    name = hashlib.sha256("\n".join([str(wish.uuid), *sorted(texts)]).encode(errors="surrogatepass")).hexdigest()[:40]
    return Place(Record(handles[0].master, f"reconfigured-{name}", handles[0].own == _OWN), handles.index(own), len(handles))


def _check(wish: Any) -> None:
    if not isinstance(wish.uuid, int) or wish.uuid not in _UUIDS:
        raise _mistake(f"uuid {wish.uuid!r} is not a number of 64 bits with a sign; pass one")
    if not isinstance(wish.handles, (list, tuple, set, frozenset)) or not all(isinstance(handle, str) for handle in wish.handles):
        raise _mistake(f"handles are {wish.handles!r:.80}; pass a list, or a set, of what get_reconfigure_handle() gives")
    if wish.timeout is not None and not (isinstance(wish.timeout, timedelta) and wish.timeout >= timedelta()):
        raise _mistake(f"timeout is {wish.timeout!r}; pass a timedelta that is not negative, or None for the group's")


def world_at(place: Place, uuid: int, had: bool, timeout: timedelta, options: Options) -> World:
    """The new world, connected; `had`: this group has had that uuid.  PCCLError: it has not come to be, at any member."""
    until = time.monotonic() + timeout.total_seconds()
    world = world_of(
        place.where, size=place.size, rank=place.rank, loss_rule=options.loss_rule, formation_timeout=timeout.total_seconds(),
        lanes=options.lanes, stall=options.stall,
    )
    try:
        world.set_connect_timeout(timeout.total_seconds())
        world.connect()
        who = first_who(world, had, place.size, until)
        if who is not None:
            raise _used(uuid, f"by the member at position {who}")
    except PCCLError as error:
        world.destroy()
        if had and error.cause is Cause.DEADLINE:
            raise _used(uuid, "here, and others have not come") from error
        if error.cause is Cause.KICKED:
            raise _mistake(f"another member has these handles in another order; pass the same list, or the same set, at all: {error.text}") from error
        raise
    except BaseException:
        world.destroy()
        raise
    return world


def _used(uuid: int, where: str) -> PCCLError:
    return make_error(Result.INVALID_USAGE, "reconfigure", f"uuid {uuid} was already used, {where}; pass a fresh one", Cause.NAME_USED)


def one_backend(group: Any) -> None:
    """RuntimeError: torch has been asked for another backend beside this one in the group."""
    config = distributed_c10d._world.pg_backend_config.get(group, "")
    if len({pair.rpartition(":")[2] for pair in config.split(",")}) > 1:
        raise _mistake(f"ProcessGroup reconfigure APIs do not support process groups with multiple backends; this one is of {config}, make one of pccl")


def not_begun() -> PCCLError:
    text = "the group has not been initialized: call reconfigure() with the handles of its members"
    return make_error(Result.INVALID_USAGE, "process group", text)


def _parsed(text: str) -> Handle:
    parts = text.split("|")
    if len(parts) != 5 or parts[0] != "pccl" or not all(parts[1:3]) or parts[4] not in ("", _OWN):
        raise _mistake(f"{text[:80]!r} is an invalid reconfigure handle; pass what get_reconfigure_handle() gives")
    return Handle(*parts[1:])


def _mistake(text: str) -> PCCLError:
    return make_error(Result.INVALID_ARGUMENT, "reconfigure", text)
