"""Worlds of PCCL's own: each a world of a given size at a master, which ends with its first loss.

Ranks are static.  A world that has ended may be created again under its name at once, by the remaining members and the replacements of
the lost ones.  If no master listens at the given address, rank 0 starts one, as a separate process.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import atexit
import contextlib
import socket
import threading
import time
import weakref
from typing import Any, Callable, Optional, Sequence

from pccl._native import lib
from pccl.engine import ANY_RANK, Operation, World
from pccl.engine.backlog import MOST, Backlog, Pending
from pccl.engine.bootstrap import spawn_master
from pccl.errors import PCCLError, RankConnectionLost
from pccl.multiworld.domain import Domain, Formation
from pccl.multiworld.flight import Flight, Receive
from pccl.multiworld.errors import Loss
from pccl.multiworld.memory import Land, apart, check_list, joined, readable, writable
from pccl.types import Cause, ErrorClass, ReduceOp, Result

_WORTH_A_TRY = 0.2  # seconds left, below which a formation is not tried again

_MASTER_SECONDS = 1.0  # that members who have lost one wait for a master that is gone as well, often with the same host: the world is over

_ANEW = (Cause.MASTER_LOST, Cause.MASTER_UNREACHABLE, Cause.EXCLUDED)  # of the master: it is gone, or this process was silent for too long

_UNNAMED = "multiworld"  # the world of the name "", at the master: that one's own is another kind of world

_TORCH_OPS = {
    "SUM": ReduceOp.SUM, "AVG": ReduceOp.AVG, "PRODUCT": ReduceOp.PROD, "MIN": ReduceOp.MIN, "MAX": ReduceOp.MAX,
    "BAND": ReduceOp.BIT_AND, "BOR": ReduceOp.BIT_OR, "BXOR": ReduceOp.BIT_XOR,
}


class NativeFlight:
    """An operation of the engine, and where its results go."""

    __slots__ = ("operation", "land", "memory")

    def __init__(self, operation: Pending, land: Land = None, memory: Any = None) -> None:
        self.operation = operation
        self.land = land
        self.memory = memory

    @property
    def error(self) -> Optional[BaseException]:
        return self.operation.error

    def when_done(self, callback: Callable[[], None]) -> None:
        self.operation.when_done(lambda _: callback())

    def wait(self, timeout: Optional[float] = None) -> bool:
        try:
            return self.operation.wait(timeout)
        except Exception as error:
            if error is not self.operation.error:
                raise
            return True

    def cancel(self) -> None:
        self.operation.cancel()


class NativeDomain(Domain):
    """A world of the engine."""

    def __init__(self, name: str, world: World, master: str, rank: int, size: int) -> None:
        super().__init__(name, "pccl", rank, size)
        self.master = master
        self._world = world
        self._ranks = {member.id: member.key for member in world.members()}
        self._loss: Optional[Loss] = None
        self._sends, self._receives, self._collectives = Backlog(MOST), Backlog(MOST), Backlog(MOST)
        _open.add(self)

    def send(self, tensor: Any, dst: int) -> Flight:
        self.check_rank("dst", dst, other=True)
        memory = readable(tensor)
        return NativeFlight(self._sends.start(lambda: self._world.send(memory, dst, self.rank)))

    def recv(self, tensor: Any, src: int) -> Receive:
        """The engine lets a receive from any rank be withdrawn alone, but not one from a named rank.  So the tag names the sender."""
        self.check_rank("src", src, other=True)
        place = writable(tensor)
        return NativeFlight(self._receives.start(lambda: self._world.receive(place.memory, ANY_RANK, src)), place.land, place.memory)

    def _withdraw(self, src: int, flight: Receive) -> bool:
        def keep_what_came() -> None:
            if flight.error is None:
                memory = joined([flight.memory]) if flight.land is None else flight.memory
                self._withdrawn.keep(src, flight, memory)

        flight.when_done(keep_what_came)
        flight.cancel()
        return True

    def broadcast(self, tensor: Any, src: int) -> Flight:
        self.check_rank("src", src)
        place = writable(tensor)
        if src == self.rank:
            return self._collective(lambda: self._world.broadcast(place.memory, place.memory, src))
        return self._collective(lambda: self._world.broadcast(None, place.memory, src), place.land)

    def all_reduce(self, tensor: Any, op: Any) -> Flight:
        place, how = writable(tensor), native_op(op)
        return self._collective(lambda: self._world.all_reduce(place.memory, place.memory, how), place.land)

    def reduce(self, tensor: Any, dst: int, op: Any) -> Flight:
        self.check_rank("dst", dst)
        how = native_op(op)
        if dst != self.rank:
            memory = readable(tensor)
            return self._collective(lambda: self._world.reduce(memory, None, dst, how))
        place = writable(tensor)
        return self._collective(lambda: self._world.reduce(place.memory, place.memory, dst, how), place.land)

    def all_gather(self, tensors: Sequence[Any], tensor: Any) -> Flight:
        place, memory = apart(check_list("tensors", tensors, tensor, self.size)), readable(tensor)
        return self._collective(lambda: self._world.all_gather(memory, place.memory), place.land)

    def gather(self, tensor: Any, gather_list: Optional[Sequence[Any]], dst: int) -> Flight:
        self.check_rank("dst", dst)
        memory = readable(tensor)
        if dst != self.rank:
            return self._collective(lambda: self._world.gather(memory, None, dst))
        place = apart(check_list("gather_list", gather_list, tensor, self.size))
        return self._collective(lambda: self._world.gather(memory, place.memory, dst), place.land)

    def scatter(self, tensor: Any, scatter_list: Optional[Sequence[Any]], src: int) -> Flight:
        self.check_rank("src", src)
        parts = joined(check_list("scatter_list", scatter_list, tensor, self.size)) if src == self.rank else None
        place = writable(tensor)
        return self._collective(lambda: self._world.scatter(parts, place.memory, src), place.land)

    def _collective(self, launch: Callable[[], Operation], land: Land = None) -> Flight:
        return NativeFlight(self._collectives.start(launch), land)

    def loss(self, error: Optional[BaseException] = None) -> Optional[Loss]:
        if self._loss is None:
            end = self._asked()
            if end is None and isinstance(error, PCCLError) and _tells_the_end(error):
                end = error
            if end is not None:
                self._loss = self._told(end, error if isinstance(error, PCCLError) else end)
        return self._loss

    def _told(self, end: PCCLError, first: PCCLError) -> Loss:
        """The loss that ended the world, as `end` says it, and as the operation that met it first."""
        peer = self._ranks.get(end.peer)
        text = end.text.partition(": ")[2] or str(end)
        age = round(first.age * 1000, 3) if first.age else None
        return Loss(text if peer is None else f"lost rank {peer}: {text}", end.cause, peer, first.phase, age)

    def _asked(self) -> Optional[PCCLError]:
        """What the engine says of the world itself."""
        try:
            self._world.me
        except PCCLError as error:
            return error
        return None

    def close(self) -> None:
        if self._loss is None:
            self._loss = Loss("it was removed here", Cause.LEFT, None, "", None)
        self._world.destroy()
        _open.discard(self)

    def leave(self) -> None:
        """Tells the other members that this one leaves; does not wait, and frees nothing."""
        with contextlib.suppress(PCCLError):  # it is over, or belongs to the process that this one was forked from
            self._world.leave()


def _leave_all() -> None:
    """At the interpreter's end: to take torch apart can take seconds, and the other members would wait for that."""
    for domain in list(_open):
        domain.leave()


_open: "weakref.WeakSet[NativeDomain]" = weakref.WeakSet()
atexit.register(_leave_all)


class NativeFormation(Formation):
    """The creation of a world of a given size.  It is repeated if it fails before its timeout, since a member was lost meanwhile."""

    def __init__(self, name: str, rank: int, size: int, addr: str, port: int, timeout: float, stall: Optional[float]) -> None:
        self._name, self._rank, self._size = name, rank, size
        self._host, self._port = addr, port if port > 0 else lib.CCOIP_PROTOCOL_PORT_MASTER
        self.master = f"[{addr}]:{self._port}" if ":" in addr else f"{addr}:{self._port}"
        self._until = time.monotonic() + timeout
        self._stall = stall
        self.master_is_there = False  #: this process has a world at it, so that it is, unless it has died
        self._lock = threading.Lock()
        self._abandoned = False
        self._world: Optional[World] = None

    def left(self) -> float:
        return max(0.0, self._until - time.monotonic())

    def begin(self) -> NativeFlight:
        if self._rank == 0 and not (self.master_is_there and _listens(self._host, self._port)):
            spawn_master(self._host, self._port)
        left = max(self.left(), _WORTH_A_TRY)
        world = World(
            self.master, name=self._name or _UNNAMED, size=self._size, rank=self._rank, formation_timeout=left, stall=self._stall
        )
        world.set_connect_timeout(left)
        world.set_master_loss_timeout(_MASTER_SECONDS)
        with self._lock:
            self._world = world
            if not self._abandoned:
                return NativeFlight(world.connect_async())
        world.destroy()
        raise RuntimeError(f"pccl: the initialisation of {self._name} was given up")

    def conclude(self, flight: Any) -> Optional[Domain]:
        world = self._world
        assert world is not None
        error = flight.error
        if error is None:
            try:
                return NativeDomain(self._name, world, self.master, self._rank, self._size)
            except PCCLError as over:  # somebody was lost as it had begun
                error = over
        world.destroy()
        again = isinstance(error, RankConnectionLost) or isinstance(error, PCCLError) and error.cause in _ANEW
        if again and self.left() > _WORTH_A_TRY:
            return None
        if self._rank != 0 and isinstance(error, PCCLError) and error.cause is Cause.MASTER_UNREACHABLE:
            error.text += "; rank 0 starts one there as it initialises the world: has it, with the same addr and port?"
        raise error

    def abandon(self) -> None:
        with self._lock:
            self._abandoned = True
            world = self._world
        if world is not None:
            world.destroy()


def native_op(op: Any) -> ReduceOp:
    """PCCL's operator, given that or torch's.  ValueError: it is neither, or one that PCCL has not."""
    if isinstance(op, ReduceOp):
        return op
    found = _TORCH_OPS.get(getattr(getattr(op, "op", op), "name", ""))
    if found is None:
        raise ValueError(f"pccl: op is {op!r}; pass a ReduceOp of pccl or torch.distributed: {', '.join(_TORCH_OPS)}")
    return found


def _listens(host: str, port: int) -> bool:
    """Whether somebody does there: to find that out is less than to start a master."""
    try:
        socket.create_connection((host, port), _MASTER_SECONDS).close()
    except OSError:
        return False
    return True


def _tells_the_end(error: PCCLError) -> bool:
    """Whether an operation's error says by itself that its world is over."""
    return error.error_class is ErrorClass.REJOIN or error.result is Result.MASTER_CONNECTION_FAILED
