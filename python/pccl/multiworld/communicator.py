"""Operations in named worlds, each a coroutine: in place, with ranks of the world, and with an exception if the world has ended.

Every coroutine checks the outcome: it returns after success only.  The first call that finds a world ended removes it.  Its name is
free then, and nothing of it is left.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import asyncio
import functools
import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Callable, Optional, Sequence, TypeVar, Union

from pccl.arguments import number
from pccl.engine import awaited
from pccl.engine.process import wait_for
from pccl.multiworld import waiting
from pccl.multiworld.domain import Domain
from pccl.multiworld.errors import BrokenWorldException
from pccl.multiworld.flight import Flight, Receive
from pccl.multiworld.inbox import Inbox
from pccl.types import ReduceOp

if TYPE_CHECKING:
    from pccl.multiworld.manager import WorldManager

__all__ = ["DEFAULT_WORLD_NAME", "BrokenWorldException", "WorldCommunicator"]

DEFAULT_WORLD_NAME = ""

Call = Callable[[Domain], Flight]
Result = TypeVar("Result")
Sources = Union[int, Mapping[str, int]]


class WorldCommunicator:
    """The operations of all worlds of a `WorldManager`; from any thread, and any number of event loops.

    Tensors are torch's, numpy arrays, or anything with a buffer; a tensor that is not contiguous is copied.  All of these calls raise
    BrokenWorldException if the world has ended or no world has this name, and ValueError for a wrong argument.  They raise
    `pccl.errors.PCCLError` for an operation that failed while its world continues: a member cancelled it, or members disagree in it.
    Cancelling a task cancels its operation on all of its members; a receive alone is withdrawn (`recv`).  The forms that end in
    ``_blocking`` wait in the calling thread.
    """

    def __init__(self, world_manager: "WorldManager") -> None:
        self._manager = world_manager
        self._lock = threading.Lock()
        self._domains: dict[str, Domain] = {}
        self._inbox = Inbox()

    # -- Worlds --

    def add_world(self, world_name: str, backend: str) -> None:
        """Registers a world that the manager has connected.  ValueError: there is one of that name, or none was connected."""
        domain = self._manager._connected(world_name, backend)
        with self._lock:
            if self._domains.setdefault(world_name, domain) is not domain:
                raise ValueError(f"World {world_name} already exists.")
        self._inbox.drop(world_name)

    def remove_world(self, world_name: str) -> None:
        """Leaves it: what waits in it ends, here and at its other members, and its name is free.  ValueError: there is none."""
        with self._lock:
            domain = self._domains.pop(world_name, None)
        if domain is None:
            raise ValueError(f"World {world_name} does not exist.")
        self._inbox.drop(world_name)
        self._manager._close(domain)

    def is_broken(self, world_name: str) -> bool:
        """Whether the world has ended; True also if no world has this name.  Does not wait."""
        with self._lock:
            domain = self._domains.get(world_name)
        if domain is None:
            return True
        loss = domain.loss()
        if loss is not None:
            self._over(domain)
        return loss is not None

    def worlds(self) -> list[str]:
        """The names of all worlds, including ended worlds whose end was not noticed yet."""
        with self._lock:
            return list(self._domains)

    # -- Operations --

    async def send(self, tensor: Any, dst: int, world_name: str = DEFAULT_WORLD_NAME) -> None:
        """Sends `tensor` to rank `dst`; returns when that has it."""
        await self._run(world_name, lambda domain: domain.send(tensor, dst))

    async def recv(self, tensor: Any, src: int, world_name: str = DEFAULT_WORLD_NAME) -> None:
        """Receives from rank `src` into `tensor`, which is as large as what was sent.

        A cancelled receive loses no message: the send that it would have met waits for the next receive from `src`.  So
        ``asyncio.wait_for(communicator.recv(tensor, src), 1)`` in a loop polls.  With "pccl" a message that is on its way already is the
        exception: it is cancelled at its sender, too, whose ``send`` raises a PCCLError of cause CANCELLED.
        """
        domain = self._domain(world_name)
        flight = self._launched(domain, lambda: domain.receive(tensor, src))
        await waiting.settled(flight, lambda: domain.withdraw(src, flight))
        self._concluded(domain, flight)

    async def recv_any(self, tensors: Mapping[str, Any], src: Sources) -> str:
        """Receives from the world in which a message arrives first, and returns the name of this world.

        `tensors` has a tensor for each world.  `src` is the sender's rank, one for all worlds or one for each.  The receives of the other
        worlds stay posted, and borrow their tensors until a later call returns their world.  No message is lost, even if the task
        is cancelled.  BrokenWorldException names the first world found broken: call again without it.
        """
        loop = asyncio.get_running_loop()
        while True:
            future: asyncio.Future[None] = loop.create_future()
            watcher = functools.partial(waiting.tell, loop, future)
            came = self._first(tensors, src, watcher)
            if came is not None:
                return came
            try:
                await future
            finally:
                self._inbox.forget(watcher)

    async def broadcast(self, tensor: Any, src: int, world_name: str = DEFAULT_WORLD_NAME) -> None:
        """Copies `tensor` of rank `src` into everybody's."""
        await self._run(world_name, lambda domain: domain.broadcast(tensor, src))

    async def all_reduce(self, tensor: Any, op: Any = ReduceOp.SUM, world_name: str = DEFAULT_WORLD_NAME) -> None:
        """Reduces `tensor` of all into everybody's; `op` is a ReduceOp of torch.distributed or of pccl."""
        await self._run(world_name, lambda domain: domain.all_reduce(tensor, op))

    async def reduce(self, tensor: Any, dst: int, op: Any = ReduceOp.SUM, world_name: str = DEFAULT_WORLD_NAME) -> None:
        """The same into rank `dst`'s alone."""
        await self._run(world_name, lambda domain: domain.reduce(tensor, dst, op))

    async def all_gather(self, tensors: Sequence[Any], tensor: Any, world_name: str = DEFAULT_WORLD_NAME) -> None:
        """Copies `tensor` of each rank into everybody's `tensors`, by rank."""
        await self._run(world_name, lambda domain: domain.all_gather(tensors, tensor))

    async def gather(
        self, tensor: Any, gather_list: Optional[Sequence[Any]] = None, dst: int = 0, world_name: str = DEFAULT_WORLD_NAME
    ) -> None:
        """The same into the list of rank `dst` alone; others pass None."""
        await self._run(world_name, lambda domain: domain.gather(tensor, gather_list, dst))

    async def scatter(
        self, tensor: Any, scatter_list: Optional[Sequence[Any]] = None, src: int = 0, world_name: str = DEFAULT_WORLD_NAME
    ) -> None:
        """Copies element r of rank `src`'s list into rank r's `tensor`; others pass None."""
        await self._run(world_name, lambda domain: domain.scatter(tensor, scatter_list, src))

    # -- The same for threads --

    def send_blocking(self, tensor: Any, dst: int, world_name: str = DEFAULT_WORLD_NAME) -> None:
        """`send` for threads: no coroutine, waits here."""
        self._run_blocking(world_name, lambda domain: domain.send(tensor, dst))

    def recv_blocking(self, tensor: Any, src: int, world_name: str = DEFAULT_WORLD_NAME) -> None:
        """`recv` for threads: no coroutine, waits here."""
        domain = self._domain(world_name)
        with awaited:
            flight = self._launched(domain, lambda: domain.receive(tensor, src))
        waiting.wait(flight, lambda: domain.withdraw(src, flight))
        self._concluded(domain, flight)

    def recv_any_blocking(self, tensors: Mapping[str, Any], src: Sources) -> str:
        """`recv_any` for threads: no coroutine, waits here."""
        while True:
            came = threading.Event()
            name = self._first(tensors, src, came.set)
            if name is not None:
                return name
            try:
                wait_for(came)
            finally:
                self._inbox.forget(came.set)

    def broadcast_blocking(self, tensor: Any, src: int, world_name: str = DEFAULT_WORLD_NAME) -> None:
        """`broadcast` for threads: no coroutine, waits here."""
        self._run_blocking(world_name, lambda domain: domain.broadcast(tensor, src))

    def all_reduce_blocking(self, tensor: Any, op: Any = ReduceOp.SUM, world_name: str = DEFAULT_WORLD_NAME) -> None:
        """`all_reduce` for threads: no coroutine, waits here."""
        self._run_blocking(world_name, lambda domain: domain.all_reduce(tensor, op))

    def reduce_blocking(self, tensor: Any, dst: int, op: Any = ReduceOp.SUM, world_name: str = DEFAULT_WORLD_NAME) -> None:
        """`reduce` for threads: no coroutine, waits here."""
        self._run_blocking(world_name, lambda domain: domain.reduce(tensor, dst, op))

    def all_gather_blocking(self, tensors: Sequence[Any], tensor: Any, world_name: str = DEFAULT_WORLD_NAME) -> None:
        """`all_gather` for threads: no coroutine, waits here."""
        self._run_blocking(world_name, lambda domain: domain.all_gather(tensors, tensor))

    def gather_blocking(
        self, tensor: Any, gather_list: Optional[Sequence[Any]] = None, dst: int = 0, world_name: str = DEFAULT_WORLD_NAME
    ) -> None:
        """`gather` for threads: no coroutine, waits here."""
        self._run_blocking(world_name, lambda domain: domain.gather(tensor, gather_list, dst))

    def scatter_blocking(
        self, tensor: Any, scatter_list: Optional[Sequence[Any]] = None, src: int = 0, world_name: str = DEFAULT_WORLD_NAME
    ) -> None:
        """`scatter` for threads: no coroutine, waits here."""
        self._run_blocking(world_name, lambda domain: domain.scatter(tensor, scatter_list, src))

    # -- From launch to outcome --

    async def _run(self, name: str, call: Call) -> None:
        domain = self._domain(name)
        flight = self._launched(domain, lambda: call(domain))
        await waiting.settled(flight)
        self._concluded(domain, flight)

    def _run_blocking(self, name: str, call: Call) -> None:
        domain = self._domain(name)
        with awaited:
            flight = self._launched(domain, lambda: call(domain))
        waiting.wait(flight)
        self._concluded(domain, flight)

    def _domain(self, name: str) -> Domain:
        with self._lock:
            domain = self._domains.get(name)
        if domain is None:
            if not isinstance(name, str):
                raise TypeError(f"pccl: world_name is {name!r}, a {type(name).__name__}; pass the name of a world, a str")
            missing = "there is no such world here" if name else 'no world_name was passed, and no world is named "" here'
            remedy = "initialise it" if name else "pass the name of a world"
            raise BrokenWorldException(name, f"{missing}: it was never initialised, or has ended; {remedy}")
        return domain

    def _launched(self, domain: Domain, launch: Callable[[], Result]) -> Result:
        try:
            return launch()
        except (TypeError, ValueError):
            raise
        except RuntimeError as error:
            self._raise(domain, error)
            raise

    def _concluded(self, domain: Domain, flight: Flight) -> None:
        error = flight.error
        if error is not None:
            self._raise(domain, error)
            raise error
        if flight.land is not None:
            flight.land()

    def _raise(self, domain: Domain, error: BaseException) -> None:
        """BrokenWorldException if the world is over; else nothing."""
        loss = domain.loss(error)
        if loss is not None:
            self._over(domain)
            raise BrokenWorldException.of(domain.name, loss) from error

    def _over(self, domain: Domain) -> None:
        """Frees the name of a world that is over, and all that it has."""
        with self._lock:
            first = self._domains.get(domain.name) is domain
            if first:
                del self._domains[domain.name]
        if first:
            self._manager._close(domain)

    # -- Several worlds --

    def _first(self, tensors: Mapping[str, Any], src: Sources, watcher: Callable[[], None]) -> Optional[str]:
        """The world whose receive has ended first, with its outcome; None: none has, `watcher` will be called."""
        if not tensors:
            raise ValueError("pccl: tensors is empty; pass one for each world to receive in")
        if not isinstance(src, Mapping):
            src = dict.fromkeys(tensors, number("recv_any", "src", src))
        unnamed = [name for name in tensors if name not in src]
        if unnamed:
            raise ValueError(f"pccl: src has no rank for {', '.join(unnamed)}; pass one for each world of tensors, or one for all")
        keys = {name: (name, src[name]) for name in tensors}
        wanted = frozenset(keys.values())
        came = self._inbox.take(wanted)
        if came is None:
            for name, key in keys.items():
                domain = self._domain(name)
                self._launched(domain, functools.partial(self._inbox.post, key, domain, tensors[name]))
            came = self._inbox.take(wanted, watcher)
        if came is None:
            return None
        self._concluded(came.domain, came.flight)
        return came.domain.name
