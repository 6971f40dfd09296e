"""The order of a communicator's collectives: they end in the order of their issue, and later ones read the results of earlier ones.

The engine has many in progress at once.  A wait for one includes the collectives before it.  A collective may touch memory that an
earlier one still writes, or write memory that it still reads: it is issued when the earlier one has ended.  Messages have an order of
their own, by pairs.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import collections
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from pccl.comms.tensors import extents_of

if TYPE_CHECKING:
    from pccl.comms.work import TorchWork

_Extents = list[tuple[int, int]]


#: Collectives of one communicator that are under way at once; the next is issued when the first has ended.
MOST = 256


class _Issued(NamedTuple):
    work: "TorchWork"
    place: int
    reads: _Extents
    writes: _Extents


class Order:
    """Of one communicator."""

    def __init__(self) -> None:
        self._issued: collections.deque[_Issued] = collections.deque()
        self._count = 0
        self._lock = threading.Lock()

    def prepare(self, fields: dict[str, Any]) -> tuple[_Extents, _Extents]:
        """Before a collective is issued: waits for those whose memory it must not meet; returns what it reads and writes."""
        self.sweep()
        while len(self._issued) >= MOST:
            self._issued[0].work._finish(None)
            self.sweep()
        reads, writes = extents_of(fields.get("input")), extents_of(fields.get("output", fields.get("tensor")))
        with self._lock:
            issued = list(self._issued)
        for one in issued:
            if _meet(writes, one.writes) or _meet(writes, one.reads) or _meet(reads, one.writes):
                one.work._finish(None)
        return reads, writes

    def enter(self, work: "TorchWork", extents: tuple[_Extents, _Extents]) -> None:
        """It was issued."""
        with self._lock:
            self._count += 1
            work._place = self._count
            self._issued.append(_Issued(work, self._count, *extents))

    def reach(self, work: "TorchWork", seconds: Optional[float]) -> None:
        """Waits for those before it, well or not.  TimeoutError: they go on after `seconds`."""
        until = None if seconds is None else time.monotonic() + seconds
        while True:
            first = self._sweep(work._place)
            if first is None:
                return
            first._finish(None if until is None else max(until - time.monotonic(), 0.0))

    def reached(self, work: "TorchWork") -> bool:
        """Whether all before it have ended."""
        return self._sweep(work._place) is None

    def sweep(self) -> None:
        """Forgets what has ended; so that a communicator with nothing under way goes with its last reference."""
        self._sweep(None)

    def _sweep(self, place: Optional[int]) -> Optional["TorchWork"]:
        """Forgets what has ended, from the first on; returns the first that goes on before that place."""
        while True:
            with self._lock:
                if not self._issued:
                    return None
                first = self._issued[0]
            if not first.work._ended():
                return first.work if place is not None and first.place < place else None
            with self._lock:
                if self._issued and self._issued[0] is first:
                    self._issued.popleft()


def _meet(some: _Extents, others: _Extents) -> bool:
    return any(first < end and begin < last for first, last in some for begin, end in others)
