"""How the ranks of a communicator become a world: rank 0 tells the others, by a store, which master and under which name.

Where the store cannot count, attempts have no numbers, and each process counts those of a name by itself: the others have to, too.
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
from typing import Mapping

from pccl.comms import environment
from pccl.comms.store import Store, opened
from pccl.engine import World, bootstrap
from pccl.engine.bootstrap import reachable_host
from pccl.engine.meeting import Record, connected, follow, lead, world_of

_SIOCGIFADDR = 0x8915
_PREFIX = "comms/"  # of worlds' names

_counts: dict[str, int] = {}  # attempts by communicator's name, where a store cannot count


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
            raise RuntimeError(f"interface {name} has no IPv4 address: {error.strerror}; name another in hint interface, or TORCHCOMM_GLOO_INTERFACE") from None
    return socket.inet_ntoa(answer[20:24])


def master_of(hints: Mapping[str, str], shared: bool = False) -> tuple[str, bool]:
    """A master's "host:port": PCCL_MASTER, else, and True, one that this process starts, or has started.

    `shared`: all processes of a job on this host come to the same one, without telling each other.
    """
    named = bootstrap.named_master()
    if named:
        return named, False
    host = listening_host(hints)
    port = 0
    if shared and environment.text("MASTER_PORT"):
        job = f"{os.getuid()} {environment.text('MASTER_ADDR')} {environment.text('MASTER_PORT')} {environment.text('TORCHELASTIC_RUN_ID')}"
        port = 20000 + int.from_bytes(hashlib.sha256(job.encode()).digest()[:4], "big") % 12000
    return bootstrap.own_master(host, port), True


class _Board:
    """A store as a board: attempts of a communicator's name, counted up by `add`, or by this process where the store cannot count."""

    def __init__(self, place: Store, name: str, until: float) -> None:
        self._place, self._name, self._until = place, name, until

    def post(self, record: Record) -> None:
        number = self._place.add(_key(self._name), 1)
        self._place.set(_key(self._name, self.uncounted() if number is None else number), json.dumps(record))

    def newest(self, known: int) -> int:
        return max(known, self._place.count(_key(self._name)) or 0)

    def read(self, number: object) -> Record:
        try:
            return Record(*json.loads(self._place.get(_key(self._name, number), self._until - time.monotonic())))
        except Exception as error:  # of any store
            raise TimeoutError(f"rank 0 has told the store no master: {error}") from None

    def counts(self) -> bool:
        return self._place.count(_key(self._name)) is not None

    def uncounted(self) -> str:
        return f"uncounted {next_number(self._name)}"


def create_world(name: str, rank: int, size: int, store: object, seconds: float, hints: Mapping[str, str]) -> tuple[World, Record]:
    """Collective of `size` ranks: the connected world, at most after `seconds`.  RuntimeError: there is none, and why."""
    until = time.monotonic() + seconds

    def enter(record: Record) -> World:
        rest = max(0.1, until - time.monotonic())
        world = world_of(record, size=size, rank=rank, formation_timeout=rest)
        world.set_connect_timeout(min(rest, 10.0))
        return world

    if size == 1:
        master, own = master_of(hints)
        record = Record(master, _PREFIX + secrets.token_hex(16), own)
        return connected(enter(record)), record
    with opened(store, rank, until) as place:
        board = _Board(place, name, until)
        if rank == 0:
            return lead(board, *master_of(hints), _PREFIX, enter)
        if not board.counts():
            record = board.read(board.uncounted())
            return connected(enter(record)), record
        return follow(board, rank, until, enter, TimeoutError("rank 0 has told the store no master"))


def next_number(name: str) -> int:
    """How many times this process has come to that name, this one included: as many as the others."""
    _counts[name] = _counts.get(name, 0) + 1
    return _counts[name]


def _key(name: str, number: object = None) -> str:
    return f"pccl/comms/{name}/" + ("attempts" if number is None else f"attempt {number}")
