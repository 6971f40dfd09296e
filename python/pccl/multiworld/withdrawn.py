"""Messages that met a withdrawn receive: the next receive from the same rank takes them, so that none is lost.

A receive can be withdrawn in the same instant as its message arrives, and torch's groups cannot withdraw one.  Then the receive stays
here with its memory, and the next receive from that rank copies the message from there.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import threading
from collections import deque
from typing import Any, Callable, NamedTuple, Optional

from pccl.multiworld.flight import Flight
from pccl.multiworld.memory import Land, copy_into, extent


class _Kept(NamedTuple):
    flight: Flight
    memory: Any  # where its message is, or will be


class Taken:
    """A receive that takes over a withdrawn one."""

    def __init__(self, kept: _Kept, land: Land) -> None:
        self.kept = kept
        self.memory = kept.memory
        self.land = land

    @property
    def error(self) -> Optional[BaseException]:
        return self.kept.flight.error

    def when_done(self, callback: Callable[[], None]) -> None:
        self.kept.flight.when_done(callback)

    def wait(self, timeout: Optional[float] = None) -> bool:
        return self.kept.flight.wait(timeout)

    def cancel(self) -> None:
        self.kept.flight.cancel()


class Withdrawn:
    """The withdrawn receives of one world, by the rank of their sender, in the order of their calls."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._kept: dict[int, deque[_Kept]] = {}

    def keep(self, src: int, flight: Flight, memory: Any) -> None:
        """Keeps a receive; the next one from `src` takes it over."""
        with self._lock:
            self._kept.setdefault(src, deque()).append(_Kept(flight, memory))

    def put_back(self, src: int, taken: Taken) -> None:
        """The receive that took it over has been withdrawn, too: it is the first one again."""
        with self._lock:
            self._kept.setdefault(src, deque()).appendleft(taken.kept)

    def take(self, src: int, tensor: Any) -> Optional[Taken]:
        """The first one from `src`, which lands in `tensor`; None: there is none.  ValueError: `tensor` has another size or type."""
        with self._lock:
            waiting = self._kept.get(src)
            if not waiting:
                return None
            memory = waiting[0].memory
            if extent(memory) != extent(tensor):
                count, kind = extent(memory)
                raise ValueError(
                    f"pccl: tensor has {extent(tensor)}, but the cancelled receive from rank {src} has a message of {count} elements of "
                    f"{kind}; receive that first, into a tensor of its size and type"
                )
            kept = waiting.popleft()
        return Taken(kept, None if memory is tensor else lambda: copy_into(tensor, memory))
