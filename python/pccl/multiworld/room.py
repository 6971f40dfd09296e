"""Operations beyond what a world of the engine takes at once: they wait here in the order of their calls, and are launched as others end.

The library lets 1,024 operations of a communicator be unfinished.  Sends, receives and collectives have a share of that each, so that
receives that are called first leave room for the sends that others wait for.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import functools
import threading
from collections import deque
from typing import Callable, Optional

from pccl.engine.process import wait_for
from pccl.multiworld.domain import Flight
from pccl.multiworld.memory import Land

_MOST = 300      # operations of a share that are under way at once
_LOOK_FROM = 32  # operations from which on a launch looks whether some have ended; then at twice what is left

Launch = Callable[[], Flight]


class Postponed:
    """A flight that begins later.  Cancelled before that it is launched all the same, for its end to be told to the other members."""

    def __init__(self, launch: Launch) -> None:
        self._launch = launch
        self._lock = threading.Lock()
        self._launched = threading.Event()
        self._flight: Optional[Flight] = None
        self._refused: Optional[BaseException] = None
        self._callbacks: list[Callable[[], None]] = []
        self._cancelled = False

    @property
    def land(self) -> Land:
        return None if self._flight is None else self._flight.land

    @property
    def error(self) -> Optional[BaseException]:
        return self._refused if self._flight is None else self._flight.error

    def when_done(self, callback: Callable[[], None]) -> None:
        with self._lock:
            if not self._launched.is_set():
                self._callbacks.append(callback)
                return
        self._tell(callback)

    def wait(self, timeout: Optional[float] = None) -> bool:
        if timeout is None:
            wait_for(self._launched)
        elif not self._launched.wait(timeout):
            return False
        return self._flight is None or self._flight.wait(timeout)

    def cancel(self) -> None:
        with self._lock:
            self._cancelled = True
            flight = self._flight
        if flight is not None:
            flight.cancel()

    def begin(self) -> Optional[Flight]:
        """Launches it; None: that was refused, and `error` says why.  Whoever calls this calls `tell` later, without a lock."""
        flight: Optional[Flight] = None
        try:
            flight = self._launch()
        except Exception as error:
            self._refused = error
        with self._lock:
            self._flight = flight
            self._launched.set()
            cancelled = self._cancelled
        if flight is not None and cancelled:
            flight.cancel()
        return flight

    def tell(self) -> None:
        """Has those called back who came before it began."""
        with self._lock:
            callbacks, self._callbacks = self._callbacks, []
        for callback in callbacks:
            self._tell(callback)

    def _tell(self, callback: Callable[[], None]) -> None:
        if self._flight is None:
            callback()
        else:
            self._flight.when_done(callback)


class Room:
    """For one share of a world's operations.  Nobody is called back with its lock held."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._flying: set[Flight] = set()
        self._watched: set[Flight] = set()  # of these; the completion thread tells of their ends
        self._waiting: deque[Postponed] = deque()
        self._look_at = _LOOK_FROM

    def launch(self, launch: Launch) -> Flight:
        """Launches it now, or when those before it have been and there is room."""
        postponed: Optional[Postponed] = None
        with self._lock:
            if self._waiting or not self._has_room():
                postponed = Postponed(launch)
                self._waiting.append(postponed)
                unwatched = self._unwatched()
        if postponed is not None:
            self._watch(unwatched)
            return postponed
        flight = launch()
        with self._lock:
            self._flying.add(flight)
            unwatched = self._unwatched()
        self._watch(unwatched)
        return flight

    def _has_room(self) -> bool:
        if len(self._flying) >= self._look_at:
            self._flying = {flight for flight in self._flying if not flight.wait(0)}
            self._watched &= self._flying
            self._look_at = min(max(_LOOK_FROM, 2 * len(self._flying)), _MOST)
        return len(self._flying) < _MOST

    def _unwatched(self) -> set[Flight]:
        """Where something waits, each end is to be told of: those of which none is yet."""
        if not self._waiting:
            return set()
        new = self._flying - self._watched
        self._watched |= new
        return new

    def _watch(self, flights: set[Flight]) -> None:
        for flight in flights:
            flight.when_done(functools.partial(self._ended, flight))

    def _ended(self, flight: Flight) -> None:
        """One has: launches what there is room for."""
        begun = []
        with self._lock:
            self._flying.discard(flight)
            self._watched.discard(flight)
            while self._waiting and len(self._flying) < _MOST:
                postponed = self._waiting[0]
                launched = postponed.begin()
                self._waiting.popleft()
                begun.append(postponed)
                if launched is not None:
                    self._flying.add(launched)
            unwatched = self._unwatched()
        self._watch(unwatched)
        for postponed in begun:
            postponed.tell()
