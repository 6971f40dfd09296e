"""The worlds that a process belongs to, brought up and taken down one by one.

The manager has no thread of its own and needs no event loop to be made: coroutines run in whatever loop awaits them.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import asyncio
import logging
import sys
import threading
import time
from typing import Any, Optional

from pccl.arguments import number, seconds, text
from pccl.multiworld import waiting
from pccl.multiworld.communicator import WorldCommunicator
from pccl.multiworld.domain import Domain, Formation
from pccl.multiworld.native import NativeDomain, NativeFormation

__all__ = ["WorldManager"]

_UNNAMED = '""'  # the name that a world has without one, in errors

_log = logging.getLogger("pccl.multiworld")

_GRACE = 1.0             # seconds that a formation has beyond its end, to say who is missing
_CLOSING_SECONDS = 10.0  # `cleanup` waits no longer for what is being closed


def _checked_stall(function: str, value: Any) -> float:
    """A stall time in seconds.  ValueError: too short for heartbeats.  TypeError: no number."""
    stall = seconds(function, "stall", value)
    if stall < 0.05:
        raise ValueError(f"pccl: {function}: stall is {stall} s; pass at least 0.05")
    return stall


class WorldManager:
    """Worlds of this process, each a fault domain of its own; `communicator` has their operations.

    `stall` is the silence in seconds after which a member counts as lost, of the worlds initialised here; a closed socket counts at
    once.  With `enable_monitor=False` silence is what it is to the back-end: 10 s for "pccl", nothing for "gloo" and "nccl".
    """

    def __init__(self, enable_monitor: bool = True, *, stall: float = 3.0) -> None:
        stall = _checked_stall("WorldManager", stall)
        self._stall = stall if enable_monitor else None
        self._lock = threading.Lock()
        self._forming: dict[str, Optional[Domain]] = {}  # None: not yet connected
        self._closing: set[threading.Thread] = set()
        self._masters: dict[str, int] = {}               # native worlds by their master
        self._communicator = WorldCommunicator(self)

    @property
    def communicator(self) -> WorldCommunicator:
        """The operations of all worlds."""
        return self._communicator

    async def initialize_world(
        self,
        world_name: str,
        rank: int,
        world_size: int,
        backend: str = "gloo",
        addr: str = "127.0.0.1",
        port: int = -1,
        timeout: float = 30,
        device: Any = None,
        *,
        stall: Optional[float] = None,
    ) -> None:
        """Returns when all `world_size` members of the world are connected.

        `backend` is "pccl", "gloo" or "nccl".  For "pccl" a master listens at `addr` and `port`, -1 its usual one: one for any number
        of worlds, which rank 0 starts there if nobody listens.  For the others rank 0 listens at `addr` and `port`, one for each
        world.  `device` is what an "nccl" world forms its communicator with.  `stall` takes the place of the manager's.

        ValueError: a wrong argument, or a world of that name exists.  After `timeout` seconds an error that says who is missing; the
        name is free then.  Cancelled, it gives the attempt up, and the name is free.
        """
        self._claim(world_name)
        loop = asyncio.get_running_loop()
        formation: Optional[Formation] = None
        try:
            asked = (world_name, rank, world_size, backend, addr, port, timeout, device, stall)
            formation = await loop.run_in_executor(None, self._formation, *asked)
            while True:
                flight = await loop.run_in_executor(None, formation.begin)
                limit = loop.call_later(formation.left() + _GRACE, flight.cancel)
                try:
                    await waiting.settled(flight)
                finally:
                    limit.cancel()
                domain = await loop.run_in_executor(None, formation.conclude, flight)
                if domain is not None:
                    break
        except BaseException:
            try:
                if formation is not None:
                    await asyncio.shield(loop.run_in_executor(None, formation.abandon))
            finally:
                self._free(world_name)
            raise
        self._formed(world_name, domain)

    def initialize_world_blocking(
        self,
        world_name: str,
        rank: int,
        world_size: int,
        backend: str = "gloo",
        addr: str = "127.0.0.1",
        port: int = -1,
        timeout: float = 30,
        device: Any = None,
        *,
        stall: Optional[float] = None,
    ) -> None:
        """As `initialize_world`, for threads."""
        self._claim(world_name)
        formation: Optional[Formation] = None
        try:
            formation = self._formation(world_name, rank, world_size, backend, addr, port, timeout, device, stall)
            domain = None
            while domain is None:
                flight = formation.begin()
                if not flight.wait(formation.left() + _GRACE):
                    flight.cancel()
                    flight.wait()
                domain = formation.conclude(flight)
        except BaseException:
            try:
                if formation is not None:
                    formation.abandon()
            finally:
                self._free(world_name)
            raise
        self._formed(world_name, domain)

    def add_world(self, world_name: str, backend: str) -> None:
        """Registers a world that is connected, which `initialize_world` does.  ValueError: none is, or the name is taken."""
        self._communicator.add_world(world_name, backend)

    def remove_world(self, world_name: str) -> None:
        """Leaves it: what waits in it ends, here and at its other members, and its name is free.  ValueError: there is none."""
        self._communicator.remove_world(world_name)

    def cleanup(self) -> None:
        """Flushes standard output, leaves all worlds, and returns when everything is closed, after 10 s at the latest."""
        sys.stdout.flush()
        for name in self._communicator.worlds():
            try:
                self._communicator.remove_world(name)
            except ValueError:
                pass  # it has just ended
        until = time.monotonic() + _CLOSING_SECONDS
        with self._lock:
            closing = list(self._closing)
        for thread in closing:
            thread.join(max(0.0, until - time.monotonic()))

    # -- From the first call to a world --

    def _formation(
        self, name: str, rank: int, size: int, backend: str, addr: str, port: int, timeout: float, device: Any, stall: Optional[float]
    ) -> Formation:
        numbers = (("rank", rank), ("world_size", size), ("port", port))
        rank, size, port = (number("initialize_world", what, value) for what, value in numbers)
        if size < 1:
            raise ValueError(f"pccl: world_size is {size}; a world has one rank at least")
        if not 0 <= rank < size:
            raise ValueError(f"pccl: rank is {rank}; the ranks of a world of {size} are 0 to {size - 1}")
        text("initialize_world", "addr", addr)
        timeout = seconds("initialize_world", "timeout", timeout)
        stall = self._stall if stall is None else _checked_stall("initialize_world", stall)
        if backend == "pccl":
            formation = NativeFormation(name, rank, size, addr, port, timeout, stall)
            with self._lock:
                formation.master_is_there = formation.master in self._masters
            return formation
        if backend in ("gloo", "nccl"):
            from pccl.multiworld.group_formation import GroupFormation

            return GroupFormation(name, rank, size, backend, addr, port, timeout, device, stall)
        raise ValueError(f"pccl: backend is {backend!r}; pass 'pccl', 'gloo' or 'nccl'")

    def _claim(self, name: str) -> None:
        """Takes the name.  ValueError: a world of that name exists, or is being initialised.  TypeError: it is no str."""
        text("initialize_world", "world_name", name)
        taken = not self._communicator.is_broken(name)
        with self._lock:
            if not taken and name not in self._forming:
                self._forming[name] = None
                return
        raise ValueError(f"World {name or _UNNAMED} already exists.")

    def _free(self, name: str) -> None:
        with self._lock:
            self._forming.pop(name, None)

    def _formed(self, name: str, domain: Domain) -> None:
        with self._lock:
            self._forming[name] = domain
            if isinstance(domain, NativeDomain):
                self._masters[domain.master] = self._masters.get(domain.master, 0) + 1
        try:
            self.add_world(name, domain.backend)
        except BaseException:
            self._close(domain)
            raise
        finally:
            self._free(name)
        _log.info("world %s: rank %d of %d is connected, by %s", name, domain.rank, domain.size, domain.backend)

    def _connected(self, name: str, backend: str) -> Domain:
        with self._lock:
            domain = self._forming.get(name)
        if domain is None or domain.backend != backend:
            raise ValueError(f"World {name} is not connected by {backend}; initialize_world connects it and adds it.")
        return domain

    # -- The end of a world --

    def _close(self, domain: Domain) -> None:
        """Closes it beside the caller, who may be an event loop: to leave frozen members takes some seconds."""
        _log.info("world %s: closing", domain.name)
        if isinstance(domain, NativeDomain):
            with self._lock:
                self._masters[domain.master] -= 1
                if self._masters[domain.master] == 0:
                    del self._masters[domain.master]

        def close() -> None:
            try:
                domain.close()
            finally:
                with self._lock:
                    self._closing.discard(thread)

        thread = threading.Thread(target=close, name=f"pccl-multiworld: close {domain.name}", daemon=True)
        with self._lock:
            self._closing.add(thread)
        thread.start()
