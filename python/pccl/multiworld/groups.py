"""Worlds of torch's own process groups: each a store and a group as objects, beside all global tables of torch.

Collectives of gloo report their ends themselves.  One thread for each direction of each pair waits for gloo's messages, and for all
operations of nccl.  It starts with the first such message and ends with its world.  Every outcome is checked.  Any failure at run time
ends the world, since a torch group is not usable after one.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import atexit
import datetime
import threading
import time
from typing import Any, Callable, Optional, Sequence

import torch
import torch.distributed

from pccl.buffers import as_buffer
from pccl.multiworld.domain import Domain
from pccl.multiworld.errors import Loss
from pccl.multiworld.flight import Flight, Receive
from pccl.multiworld.lanes import GroupFlight, Lane
from pccl.multiworld.liveness import Liveness, Post
from pccl.multiworld.memory import Land, check_list, is_array, is_tensor, writable
from pccl.types import Cause, ReduceOp

dist: Any = torch.distributed  # of which type checkers know half

Way = tuple[str, int]  # what works of one order have in common: "send" or "receive" and a rank

_CLOSING_SECONDS = 5.0
_TAG_OF_NOBODY = 2**31 - 1

_OPS = {
    ReduceOp.SUM: "SUM", ReduceOp.AVG: "AVG", ReduceOp.PROD: "PRODUCT", ReduceOp.MIN: "MIN", ReduceOp.MAX: "MAX",
    ReduceOp.BIT_AND: "BAND", ReduceOp.BIT_OR: "BOR", ReduceOp.BIT_XOR: "BXOR",
}
_INTEGERS = {torch.int8, torch.uint8, torch.bool, torch.int32, torch.int64}
_GLOO_TYPES = {torch.float32, torch.float64, torch.float16, torch.bfloat16, *_INTEGERS}


class GroupDomain(Domain):
    """A world on a torch process group."""

    def __init__(
        self, name: str, backend: str, rank: int, size: int, store: Any, group: Any, device: Any, post: Optional[Post], stall: float
    ) -> None:
        super().__init__(name, backend, rank, size)
        self._store = store
        self._group: Any = group
        self._device = device
        self._lock = threading.Lock()
        self._flying: set[GroupFlight] = set()
        self._lanes: dict[Way, Lane] = {}
        self._loss: Optional[Loss] = None
        self._tearing: Optional[threading.Thread] = None
        self._closed = False
        self._liveness: Optional[Liveness] = None
        if post is not None:
            self._liveness = Liveness(name, dist.PrefixStore(name, store), post, rank, size, stall, self._break)
        _open.add(self)

    def send(self, tensor: Any, dst: int) -> Flight:
        self.check_rank("dst", dst, other=True)
        used, _ = self._place(tensor, collective=False)
        return self._launch(lambda group: group.send([used], dst, 0), lane=("send", dst))

    def recv(self, tensor: Any, src: int) -> Receive:
        self.check_rank("src", src, other=True)
        place = writable(tensor, any_device=self.backend == "nccl")
        used, _ = self._place(place.memory, collective=False)
        return self._launch(lambda group: group.recv([used], src, 0), place.land, ("receive", src), place.memory)

    def _withdraw(self, src: int, flight: Receive) -> bool:
        self._withdrawn.keep(src, flight, flight.memory)
        return False

    def broadcast(self, tensor: Any, src: int) -> Flight:
        self.check_rank("src", src)
        options = dist.BroadcastOptions()
        options.rootRank, options.rootTensor = src, 0
        used, land = self._place(tensor)
        return self._launch(lambda group: group.broadcast([used], options), land)

    def all_reduce(self, tensor: Any, op: Any) -> Flight:
        options = dist.AllreduceOptions()
        used, land = self._place(tensor)
        options.reduceOp = self._op(op, used)
        return self._launch(lambda group: group.allreduce([used], options), land)

    def reduce(self, tensor: Any, dst: int, op: Any) -> Flight:
        self.check_rank("dst", dst)
        options = dist.ReduceOptions()
        used, land = self._place(tensor)
        options.reduceOp, options.rootRank, options.rootTensor = self._op(op, used), dst, 0
        if dst != self.rank:  # the group uses it as room for parts of sums
            used, land = used.clone(), None
        return self._launch(lambda group: group.reduce([used], options), land)

    def all_gather(self, tensors: Sequence[Any], tensor: Any) -> Flight:
        used, _ = self._place(tensor)
        parts, land = self._places(check_list("tensors", tensors, tensor, self.size))
        return self._launch(lambda group: group.allgather([parts], [used]), land)

    def gather(self, tensor: Any, gather_list: Optional[Sequence[Any]], dst: int) -> Flight:
        self.check_rank("dst", dst)
        options = dist.GatherOptions()
        options.rootRank = dst
        used, _ = self._place(tensor)
        if dst != self.rank:
            return self._launch(lambda group: group.gather([], [used], options))
        parts, land = self._places(check_list("gather_list", gather_list, tensor, self.size))
        return self._launch(lambda group: group.gather([parts], [used], options), land)

    def scatter(self, tensor: Any, scatter_list: Optional[Sequence[Any]], src: int) -> Flight:
        self.check_rank("src", src)
        options = dist.ScatterOptions()
        options.rootRank = src
        used, land = self._place(tensor)
        if src != self.rank:
            return self._launch(lambda group: group.scatter([used], [], options), land)
        parts, _ = self._places(check_list("scatter_list", scatter_list, tensor, self.size))
        return self._launch(lambda group: group.scatter([used], [parts], options), land)

    def loss(self, error: Optional[BaseException] = None) -> Optional[Loss]:
        with self._lock:
            return self._loss

    def close(self) -> None:
        with self._lock:
            closed, self._closed = self._closed, True
        if closed:
            return
        self._over(Loss("it was removed here", Cause.LEFT, None, "", None))
        self._tear()
        with self._lock:
            lanes, self._lanes = self._lanes, {}
            group, self._group, self._store = self._group, None, None
        del group  # without the lock: gloo waits for its threads, of which one may be telling of an end, and needs it
        for lane in lanes.values():
            lane.end()
        until = time.monotonic() + _CLOSING_SECONDS
        for thread in (self._tearing, self._liveness, *lanes.values()):
            if thread is not None:
                thread.join(max(0.0, until - time.monotonic()))
        _open.discard(self)

    # -- Launching --

    def _place(self, memory: Any, collective: bool = True) -> Any:
        """A contiguous tensor on the memory, and what brings results from it."""
        used, land = writable(memory, any_device=self.backend == "nccl")
        if is_tensor(used):
            tensor = used
        elif is_array(used):
            tensor = torch.from_numpy(used)
        else:
            tensor = torch.frombuffer(used, dtype=as_buffer(used).datatype.to_torch_dtype())
        if collective and self.backend == "gloo" and tensor.dtype not in _GLOO_TYPES:
            raise ValueError(f"pccl: gloo has no collectives of {tensor.dtype}; convert the tensor")
        return tensor, land

    def _places(self, memories: Sequence[Any]) -> tuple[list[Any], Callable[[], None]]:
        places = [self._place(memory) for memory in memories]

        def land() -> None:
            for _, arrive in places:
                if arrive is not None:
                    arrive()

        return [tensor for tensor, _ in places], land

    def _op(self, op: Any, tensor: Any) -> Any:
        """torch's operator, given that or PCCL's.  ValueError: gloo has it not, for this type."""
        named = getattr(dist.ReduceOp, _OPS[op]) if isinstance(op, ReduceOp) else op
        name = getattr(getattr(named, "op", named), "name", "")
        if name not in _OPS.values():
            raise ValueError(f"pccl: op is {op!r}; pass a ReduceOp of pccl or torch.distributed: {', '.join(_OPS.values())}")
        if self.backend == "gloo" and (name == "AVG" or name[0] == "B" and tensor.dtype not in _INTEGERS):
            raise ValueError(f"pccl: gloo has no {name} of {tensor.dtype}; sum up and divide, convert the tensor, or take backend 'pccl'")
        return named

    def _launch(self, call: Callable[[Any], Any], land: Land = None, lane: Optional[Way] = None, memory: Any = None) -> GroupFlight:
        flight = GroupFlight(land, self._landed, memory)
        with self._lock:
            if self._loss is not None or self._group is None:
                raise RuntimeError(f"pccl: {self.name} is over")
            self._flying.add(flight)
            try:
                work = call(self._group)
            except (TypeError, ValueError, NotImplementedError):
                self._flying.discard(flight)
                raise
            except RuntimeError as error:
                failed: Optional[RuntimeError] = error
            else:
                failed = None
                if lane is None and self.backend == "nccl":
                    lane = ("collective", self.rank)
                if lane is not None:
                    self._lane(lane).wait_for(work, flight)
        if failed is not None:
            self._failed(failed, lane)
            flight.resolve(failed)
        elif lane is None:
            work.get_future().add_done_callback(lambda future: self._told(future, flight))
        return flight

    def _lane(self, key: Way) -> Lane:
        lane = self._lanes.get(key)
        if lane is None:
            await_work = _await_message if self.backend == "gloo" else await_on(self._device)
            lane = self._lanes[key] = Lane(f"{self.name}: {key[0]} {key[1]}", await_work, lambda error: self._failed(error, key))
        return lane

    def _told(self, future: Any, flight: GroupFlight) -> None:
        """In a thread of torch's: a collective has ended, and may have failed."""
        try:
            future.value()
        except Exception as error:  # noqa: B902 - whatever torch makes of it
            self._failed(error, None)
            flight.resolve(error)
        else:
            flight.resolve(None)

    def _landed(self, flight: GroupFlight) -> None:
        with self._lock:
            self._flying.discard(flight)

    # -- The end --

    def _failed(self, error: BaseException, lane: Optional[Way]) -> None:
        text = str(error).partition("\n")[0]
        peer = None if lane is None or lane[0] == "collective" else lane[1]
        text = text if peer is None else f"lost rank {peer}: {text}"
        self._break(Loss(text, Cause.LINK_LOST, peer, "" if lane is None else lane[0], None))

    def _break(self, loss: Loss) -> None:
        """The world is over; from any thread, one of the group's own as well, which must not be the one that frees it."""
        tearing = threading.Thread(target=self._tear, name=f"pccl-multiworld: tear {self.name}", daemon=True)
        self._over(loss, tearing)

    def _over(self, loss: Loss, tearing: Optional[threading.Thread] = None) -> None:
        """The first time: starts `tearing`, and ends all that waits in the world."""
        with self._lock:
            if self._loss is not None:
                return
            self._loss = loss
            if self._liveness is not None:
                self._liveness.end(loss)  # before the others see connections close
            if tearing is not None:
                self._tearing = tearing
                tearing.start()
            flying = list(self._flying)
        for flight in flying:
            flight.resolve(RuntimeError(f"pccl: {self.name} is over: {loss.text}"))

    def _tear(self) -> None:
        """Closes all connections of the group, so that all that waits in them ends, here and at others.  gloo's own abort does not; a
        wait that is too long does."""
        with self._lock:
            group = self._group
        try:
            if self.backend == "nccl":
                group.abort()
            elif self.size > 1:
                group.recv([torch.zeros(1)], 1 if self.rank == 0 else 0, _TAG_OF_NOBODY).wait(datetime.timedelta(milliseconds=1))
        except Exception:  # noqa: B902 - it is torn
            pass


def _close_all() -> None:
    """At the interpreter's end: a thread that is in torch then would take the process down with it."""
    for domain in list(_open):
        domain.close()


_open: set[GroupDomain] = set()
atexit.register(_close_all)


def _await_message(work: Any) -> None:
    """gloo's messages: returns, or raises, when the work has ended."""
    work.wait()


def await_on(device: Any) -> Callable[[Any], None]:
    """nccl's works: the same, when the device has done them."""

    def await_work(work: Any) -> None:
        with torch.cuda.device(device):
            work.wait()
            torch.cuda.current_stream().synchronize()
        if work.is_completed() and (error := work.exception()) is not None:
            raise RuntimeError(str(error))

    return await_work
