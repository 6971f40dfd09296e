"""Reconfiguration: the processes that become the next members, of all that have a handle, and the world that they form.

The world's name is a hash of the attempt's uuid and the sorted handles; the master lets it be formed once.  In it each member
first tells all others whether it has used the uuid before, so all reach the same outcome.  The old world is left only after that.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import hashlib
import secrets
import time
from typing import Any, Mapping, Optional

from pccl._native import ffi, lib
from pccl.comms import bootstrap
from pccl.engine import World
from pccl.engine.meeting import Record, world_of
from pccl.engine.told import first_who
from pccl.errors import PCCLError, check
from pccl.types import Cause

_PREFIX = "pccl"
_OWN = "own"  # of masters that a member has started


def library_version() -> str:
    """Of the library that runs: "1.2.3"."""
    version = ffi.new("int *")
    check(lib.pcclGetVersion(version), "pcclGetVersion")
    return f"{version[0] // 10000}.{version[0] // 100 % 100}.{version[0] % 100}"


class Membership:
    """This process's place among those that may be members together: its handle, which is new after each success."""

    def __init__(self, hints: Mapping[str, str]) -> None:
        self.hints = dict(hints)
        self.where: Optional[Record] = None  #: of the communicator as it is; None before the first
        self._nonce = secrets.token_hex(12)
        self._uuid: Optional[int] = None
        self._uuids: set[int] = set()
        self._handle = ""

    def handle(self) -> str:
        """master, nonce, last uuid, and whether a member has started the master; one is started where none is known."""
        if not self._handle:
            if self.where is None:
                master, own = bootstrap.master_of(self.hints, shared=True)
                self.where = Record(master, "", own)
            last = "" if self._uuid is None else str(self._uuid)
            self._handle = f"{_PREFIX};{self.where.master};{self._nonce};{last};{_OWN if self.where.own else ''}"
        return self._handle

    def formed(self, uuid: int, handles: Any, seconds: float) -> tuple[World, int, int]:
        """The connected world of all whose handles these are, this process's rank, and their number; or what was goes on."""
        if isinstance(uuid, bool) or not isinstance(uuid, int) or not -(2**63) <= uuid < 2**63:
            raise RuntimeError(f"reconfigure: uuid {uuid!r} is none; pass a whole number of 64 bits that was not used before")
        listed = sorted(handles) if isinstance(handles, (set, frozenset)) else list(handles)
        where = _check(listed, self.handle())
        if any(handle.split(";")[3] == str(uuid) for handle in listed):  # alike at all: they see the same handles
            raise RuntimeError(f"reconfigure: uuid {uuid} was already used by a member; pass another")
        rank, size = listed.index(self.handle()), len(listed)
        text = "\n".join([str(uuid), *sorted(listed)])
        had = uuid in self._uuids
        until = time.monotonic() + seconds
        where = where._replace(world="again/" + hashlib.sha256(text.encode()).hexdigest()[:48])
        world = world_of(where, size=size, rank=rank, once=True, formation_timeout=seconds)
        world.set_connect_timeout(min(seconds, 10.0))
        try:
            entering = world.connect_async()
            if not entering.wait(seconds + 2.0):  # the master ends it in time, if it can be reached
                raise TimeoutError(f"reconfigure: operation timed out after {seconds} s")
            who = first_who(world, had, size, until)
            if who is not None:
                raise RuntimeError(f"reconfigure: uuid {uuid} was already used by the member at position {who}; pass another")
        except PCCLError as error:
            world.destroy()
            if error.cause is Cause.NAME_USED:
                raise RuntimeError(f"reconfigure: uuid {uuid} was already used with these handles; pass another") from error
            if had and error.cause is Cause.DEADLINE:
                raise RuntimeError(f"reconfigure: uuid {uuid} was already used here, and others have not come; pass another") from error
            raise
        except BaseException:
            world.destroy()
            raise
        self.where, self._uuid, self._handle = where, uuid, ""
        self._uuids.add(uuid)
        return world, rank, size


def _check(handles: list[Any], own: str) -> Record:
    """The master of the first handle that names one.  RuntimeError: a handle is none, stands there twice, or this process's does not."""
    for handle in handles:
        if not isinstance(handle, str) or handle.count(";") != 4 or not handle.startswith(_PREFIX + ";"):
            raise RuntimeError(f"reconfigure: Invalid handle {handle!r}; pass what get_init_handle returns")
    if len(set(handles)) != len(handles):
        raise RuntimeError("reconfigure: a handle stands twice in the list; handles must be unique")
    if own not in handles:
        raise RuntimeError("reconfigure: this process is not part of the new communicator: its handle is not among init_handles")
    for handle in handles:
        _, master, _, _, whose = handle.split(";")
        if master:
            return Record(master, "", whose == _OWN)
    raise RuntimeError("reconfigure: no handle names a master; set PCCL_MASTER to a running ccoip_master's host:port")
