"""How the ranks of a communicator become a world: rank 0 tells the others, by a store, which master and under which name.

What it tells stands under a number that each attempt counts up, and each attempt's world has a name of its own: a job that was started
anew, or a name that is used again, never meets its own past.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import fcntl
import hashlib
import json
import os
import secrets
import socket
import struct
import time
from typing import Mapping, NamedTuple, Optional

from pccl.comms import environment
from pccl.comms.store import POLL_SECONDS, Store, opened
from pccl.engine import World
from pccl.engine import bootstrap
from pccl.engine.bootstrap import reachable_host
from pccl.errors import MasterConnectionFailed, OperationTimeout, RankConnectionLost

#: How long a rank, for which there is nothing where a record says, waits for a newer record.
_STALE_SECONDS = 20.0
_SIOCGIFADDR = 0x8915

_used: set[str] = set()                    # worlds that this process was in, or tried to be in
_counts: dict[str, int] = {}               # attempts by communicator's name, where a store cannot count


class Record(NamedTuple):
    """What rank 0 tells."""

    master: str
    world: str


def listening_host(hints: Mapping[str, str]) -> str:
    """The address of this host at which others reach what this process starts."""
    host = hints.get("hostname") or environment.text("TORCHCOMM_GLOO_HOSTNAME")
    if host:
        return host
    interface = hints.get("interface") or environment.text("TORCHCOMM_GLOO_INTERFACE")
    if interface:
        return _interface_address(interface)
    return reachable_host(environment.text("MASTER_ADDR"))


def _interface_address(name: str) -> str:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            answer = fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, struct.pack("256s", name.encode()[:15]))
        except OSError as error:
            raise RuntimeError(f"interface {name} has no IPv4 address: {error.strerror}; name another in hint interface") from None
    return socket.inet_ntoa(answer[20:24])


def own_master(hints: Mapping[str, str], shared: bool = False) -> str:
    """A master's "host:port": PCCL_MASTER, else one that this process starts, or has started.

    `shared`: all processes of a job on this host come to the same one, without telling each other.
    """
    named = environment.text("PCCL_MASTER")
    if named:
        return named
    host = listening_host(hints)
    port = 0
    if shared and environment.text("MASTER_PORT"):
        job = f"{os.getuid()} {environment.text('MASTER_ADDR')} {environment.text('MASTER_PORT')} {environment.text('TORCHELASTIC_RUN_ID')}"
        port = 20000 + int.from_bytes(hashlib.sha256(job.encode()).digest()[:4], "big") % 12000
    return bootstrap.own_master(host, port)


def create_world(name: str, rank: int, size: int, store: object, seconds: float, hints: Mapping[str, str]) -> tuple[World, Record]:
    """Collective of `size` ranks: the connected world, at most after `seconds`.  RuntimeError: there is none, and why."""
    until = time.monotonic() + seconds
    if size == 1:
        record = _new_record(hints)
        return _entered(record, rank, size, until), record
    with opened(store, rank, until) as place:
        return _lead(place, name, size, until, hints) if rank == 0 else _follow(place, name, rank, size, until)


def _lead(place: Store, name: str, size: int, until: float, hints: Mapping[str, str]) -> tuple[World, Record]:
    record = _new_record(hints)
    place.set(_key(name, _number(place, name)), json.dumps(record))
    return _entered(record, 0, size, until), record


def _follow(place: Store, name: str, rank: int, size: int, until: float) -> tuple[World, Record]:
    seen = 0
    failed: Optional[Exception] = None
    stale_until = until
    if place.add(_key(name), 0) is None:
        record = Record(*json.loads(_told(place, name, _number(place, name), until)))
        return _entered(record, rank, size, until), record
    while True:
        number = place.add(_key(name), 0) or 0
        now = time.monotonic()
        if number <= seen:
            if now >= min(until, stale_until):
                raise failed or TimeoutError("rank 0 has told the store no master")
            time.sleep(POLL_SECONDS)
            continue
        seen = number
        record = Record(*json.loads(_told(place, name, number, until)))
        if record.world in _used:
            continue
        try:
            world = _connected(place, name, number, record, rank, size, until)
        except OperationTimeout:
            raise
        except (MasterConnectionFailed, RankConnectionLost) as error:  # perhaps the past's: its master has gone, or its rank 0
            failed, stale_until = error, time.monotonic() + _STALE_SECONDS
            continue
        if world is not None:
            return world, record


def _told(place: Store, name: str, number: object, until: float) -> str:
    try:
        return place.get(_key(name, number), until - time.monotonic())
    except Exception as error:  # of any store
        raise TimeoutError(f"rank 0 has told the store no master: {error}") from None


def _connected(place: Store, name: str, number: int, record: Record, rank: int, size: int, until: float) -> Optional[World]:
    """The world of that record; None: there is a newer one meanwhile."""
    _used.add(record.world)
    world = _world(record, rank, size, until)
    try:
        entering = world.connect_async()
        while not entering.wait(0.25):
            if time.monotonic() >= until + 5.0:
                raise TimeoutError("the master gives no word")
            try:
                newer = (place.add(_key(name), 0) or 0) > number
            except Exception:  # rank 0 has closed it: it is in, and so is everybody
                newer = False
            if newer:
                world.destroy()
                return None
        return world
    except BaseException:
        world.destroy()
        raise


def _entered(record: Record, rank: int, size: int, until: float) -> World:
    _used.add(record.world)
    world = _world(record, rank, size, until)
    try:
        world.connect()
    except BaseException:
        world.destroy()
        raise
    return world


def _world(record: Record, rank: int, size: int, until: float) -> World:
    rest = max(0.1, until - time.monotonic())
    world = World(record.master, name=record.world, size=size, rank=rank, formation_timeout=rest)
    world.set_connect_timeout(min(rest, 10.0))
    return world


def _new_record(hints: Mapping[str, str]) -> Record:
    return Record(own_master(hints), f"comms/{secrets.token_hex(16)}")


def _number(place: Store, name: str) -> str:
    """This attempt's number; where a store cannot count, this process's, in a series of its own."""
    number = place.add(_key(name), 1)
    return f"uncounted {next_number(name)}" if number is None else str(number)


def next_number(name: str) -> int:
    """How many times this process has come to that name, this one included: as many as the others."""
    _counts[name] = _counts.get(name, 0) + 1
    return _counts[name]


def _key(name: str, number: object = None) -> str:
    return f"pccl/comms/{name}/" + ("attempts" if number is None else f"attempt {number}")


