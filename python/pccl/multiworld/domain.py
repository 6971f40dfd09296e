"""The interface of a back-end: a world as a fault domain of its own, whose operations fly until they end."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import abc
from typing import Any, Optional, Sequence

from pccl.arguments import number
from pccl.multiworld.errors import Loss
from pccl.multiworld.flight import Flight, Receive
from pccl.multiworld.withdrawn import Taken, Withdrawn


class Domain(abc.ABC):
    """A world that exists.  Launches raise errors of their arguments; the flight reports every other failure, or it is raised."""

    def __init__(self, name: str, backend: str, rank: int, size: int) -> None:
        self.name = name
        self.backend = backend
        self.rank = rank
        self.size = size
        self._withdrawn = Withdrawn()

    def receive(self, tensor: Any, src: int) -> Receive:
        """`recv`, or the message of a receive from `src` that was withdrawn.  ValueError: that has another size or type than `tensor`."""
        return self._withdrawn.take(src, tensor) or self.recv(tensor, src)

    def withdraw(self, src: int, flight: Receive) -> bool:
        """Withdraws a receive; returns whether it ends soon.  Its message, if it has one all the same, is the next receive's from `src`."""
        if isinstance(flight, Taken):
            self._withdrawn.put_back(src, flight)
            return False
        return self._withdraw(src, flight)

    @abc.abstractmethod
    def send(self, tensor: Any, dst: int) -> Flight: ...

    @abc.abstractmethod
    def recv(self, tensor: Any, src: int) -> Receive: ...

    @abc.abstractmethod
    def _withdraw(self, src: int, flight: Receive) -> bool:
        """`withdraw` of what `recv` has returned."""

    @abc.abstractmethod
    def broadcast(self, tensor: Any, src: int) -> Flight: ...

    @abc.abstractmethod
    def all_reduce(self, tensor: Any, op: Any) -> Flight: ...

    @abc.abstractmethod
    def reduce(self, tensor: Any, dst: int, op: Any) -> Flight: ...

    @abc.abstractmethod
    def all_gather(self, tensors: Sequence[Any], tensor: Any) -> Flight: ...

    @abc.abstractmethod
    def gather(self, tensor: Any, gather_list: Optional[Sequence[Any]], dst: int) -> Flight: ...

    @abc.abstractmethod
    def scatter(self, tensor: Any, scatter_list: Optional[Sequence[Any]], src: int) -> Flight: ...

    @abc.abstractmethod
    def loss(self, error: Optional[BaseException] = None) -> Optional[Loss]:
        """Why the world has ended, given the error of an operation if there is one; None: it has not.  Never blocks."""

    @abc.abstractmethod
    def close(self) -> None:
        """Leaves the world, ends what is in flight, frees everything; blocks for a bounded time.  The second time nothing."""

    def check_rank(self, name: str, rank: int, other: bool = False) -> None:
        """ValueError: no rank of this world, or this one where it has to be another.  TypeError: no number."""
        rank = number("WorldCommunicator", name, rank)
        if not 0 <= rank < self.size:
            raise ValueError(f"pccl: {name} is {rank}; the ranks of {self.name} are 0 to {self.size - 1}")
        if other and rank == self.rank:
            raise ValueError(f"pccl: {name} is {rank}, which is this process itself; pass another rank of {self.name}")


class Formation(abc.ABC):
    """An attempt to bring a world up, within a time, in as many tries as that takes."""

    @abc.abstractmethod
    def begin(self) -> Flight:
        """Starts a try; blocks no longer than a name takes to be resolved, or a master to start."""

    @abc.abstractmethod
    def conclude(self, flight: Flight) -> Optional[Domain]:
        """The resulting world; None: try again.  Raises the reason why there is no world."""

    @abc.abstractmethod
    def abandon(self) -> None:
        """Gives it up, from any thread: what stands or is to stand is closed."""

    @abc.abstractmethod
    def left(self) -> float:
        """Seconds until its end."""
