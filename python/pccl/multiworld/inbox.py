"""Receives from several worlds at once, of which the first to come is taken and the others stay posted.

A receive that was outrun stays posted: the next call finds it, and messages that came meanwhile are taken in the order of their arrival.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import threading
from typing import Any, Callable, Optional

from pccl.multiworld.domain import Domain
from pccl.multiworld.flight import Flight

Key = tuple[str, int]


class Posted:
    """A receive of one world that waits to be taken."""

    def __init__(self, domain: Domain, tensor: Any, flight: Flight) -> None:
        self.domain = domain
        self.tensor = tensor
        self.flight = flight


class Inbox:
    """The posted receives of a process, by world and source."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._posted: dict[Key, Posted] = {}
        self._ended: dict[Key, Posted] = {}  # of these, in the order of their ends
        self._watchers: dict[Callable[[], None], frozenset[Key]] = {}

    def post(self, key: Key, domain: Domain, tensor: Any) -> None:
        """Posts a receive where none is.  ValueError: one is, with another tensor."""
        with self._lock:
            posted = self._posted.get(key)
            if posted is not None and posted.domain is domain:
                if posted.tensor is not tensor:
                    name, src = key
                    raise ValueError(f"pccl: a receive from rank {src} of {name} is posted with another tensor; pass that until it comes")
                return
            self._drop(key)
            posted = self._posted[key] = Posted(domain, tensor, domain.receive(tensor, key[1]))
        posted.flight.when_done(lambda: self._has_ended(key, posted))

    def take(self, keys: frozenset[Key], watcher: Optional[Callable[[], None]] = None) -> Optional[Posted]:
        """The one of these that ended first; None if none has: then `watcher` is called, in some thread, when one may have."""
        with self._lock:
            for key, posted in self._ended.items():
                if key in keys:
                    self._drop(key)
                    return posted
            if watcher is not None:
                self._watchers[watcher] = keys
        return None

    def forget(self, watcher: Callable[[], None]) -> None:
        """Calls it no more."""
        with self._lock:
            self._watchers.pop(watcher, None)

    def drop(self, name: str) -> None:
        """Forgets what was posted in the world of that name; who waits for it looks again."""
        with self._lock:
            told = []
            for key in [key for key in self._posted if key[0] == name]:
                self._drop(key)
                told += self._watching(key)
        for watcher in told:
            watcher()

    def _watching(self, key: Key) -> list[Callable[[], None]]:
        return [watcher for watcher, keys in self._watchers.items() if key in keys]

    def _drop(self, key: Key) -> None:
        self._posted.pop(key, None)
        self._ended.pop(key, None)

    def _has_ended(self, key: Key, posted: Posted) -> None:
        with self._lock:
            if self._posted.get(key) is not posted:
                return
            self._ended[key] = posted
            told = self._watching(key)
        for watcher in told:
            watcher()
