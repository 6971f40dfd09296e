"""Signs of life beside a torch group, which has none: small datagrams between all members of a world, five in each stall time.

A member that is silent for the stall time is lost.  A member whose host reports a closed port is lost at once: its process is gone.
A member that has lost another one reports it to the others before it leaves, even if their own sockets still work.  A member that
leaves in order reports that.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import secrets
import socket
import threading
import time
from typing import Any, Callable, NamedTuple, Optional

from pccl.engine.bootstrap import reachable_host
from pccl.multiworld.errors import Loss
from pccl.types import Cause

_TOKEN_BYTES = 16
_RANK_BYTES = 4
_LONGEST = 64  # bytes of a datagram
_ALIVE, _LEFT, _LOST = b"a", b"l", b"o"  # the last with the rank that is
_UNWATCHED = "-"


class Post(NamedTuple):
    """Where a member hears."""

    socket: socket.socket
    token: bytes


def announce(store: Any, rank: int, towards: str, watched: bool) -> Optional[Post]:
    """Writes to the store where this member receives signs of life, before there is a group; None: it has no monitor."""
    post = None
    said = _UNWATCHED
    if watched:
        host = reachable_host(towards)
        hearing = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
        hearing.bind(("::" if ":" in host else "", 0))
        post = Post(hearing, secrets.token_bytes(_TOKEN_BYTES))
        said = f"{host} {hearing.getsockname()[1]} {post.token.hex()}"
    store.set(announced(rank), said)
    return post


def announced(rank: int) -> str:
    """The key at which that member says so."""
    return f"alive/{rank}"


class Liveness(threading.Thread):
    """The signs of life of one world: a thread; `broke` is called in it, once, if the world has ended."""

    def __init__(self, name: str, store: Any, post: Post, rank: int, size: int, stall: float, broke: Callable[[Loss], None]) -> None:
        super().__init__(name=f"pccl-multiworld: signs of life of {name}", daemon=True)
        self._post, self._rank, self._stall, self._broke = post, rank, stall, broke
        self._peers: dict[int, tuple[socket.socket, bytes]] = {}  # by rank: connected to it, what it wants to hear
        for other in range(size):
            said = store.get(announced(other)).decode()
            if other != rank and said != _UNWATCHED:
                host, port, token = said.split()
                sending = socket.socket(post.socket.family, socket.SOCK_DGRAM)
                sending.connect((host, int(port)))
                self._peers[other] = sending, bytes.fromhex(token)
        self._heard = dict.fromkeys(self._peers, time.monotonic())
        self._told: Optional[Loss] = None  # by another, of a third
        self._ending = threading.Lock()  # nobody closes what another is still speaking by
        self._ended = False
        self.start()

    def end(self, why: Loss) -> None:
        """Has the thread end, and the others know why, as far as that is known here; never blocks."""
        said = _LEFT if why.cause is Cause.LEFT else b"" if why.peer is None else _LOST + why.peer.to_bytes(_RANK_BYTES, "big")
        with self._ending:
            if self._ended:
                return
            for other in self._peers if said else ():
                self._say(other, said)
            self._ended = True
        try:
            with socket.socket(self._post.socket.family, socket.SOCK_DGRAM) as own:
                own.sendto(b"", ("localhost", self._post.socket.getsockname()[1]))  # the thread looks up
        except OSError:
            pass  # it has ended by itself

    def run(self) -> None:
        """Runs until the world has ended, or this member leaves it."""
        loss = self._watch()
        if loss is not None:
            self._broke(loss)
        with self._ending:
            self._ended = True
            self._post.socket.close()
            for sending, _ in self._peers.values():
                sending.close()

    def _watch(self) -> Optional[Loss]:
        beat = time.monotonic()
        while not self._ended:
            now = time.monotonic()
            if now < beat and self._told is None:
                self._hear(beat - now)
            else:
                beat = now + self._stall / 5
                loss = self._look_around()
                if loss is not None:
                    return loss
        return None

    def _look_around(self) -> Optional[Loss]:
        """A beat: what has come is heard, then who has not been heard of is lost; who is left hears of this one."""
        while self._told is None and self._hear(0):
            pass
        if self._told is not None:
            return self._told
        now = time.monotonic()
        for other, heard in self._heard.items():
            if now - heard > self._stall:
                text = f"lost rank {other}: no sign of life for {self._stall:g} s"
                return Loss(text, Cause.PEER_SILENT, other, "", round((now - heard) * 1000, 3))
            if not self._say(other, _ALIVE):
                return Loss(f"lost rank {other}: nobody is there any more", Cause.PEER_LOST, other, "", None)
        return None

    def _say(self, other: int, kind: bytes) -> bool:
        """Whether somebody may be there."""
        sending, token = self._peers[other]
        try:
            sending.send(token + self._rank.to_bytes(_RANK_BYTES, "big") + kind, socket.MSG_DONTWAIT)
        except ConnectionRefusedError:
            return False
        except OSError:
            pass  # no room, no route: silence will tell
        return True

    def _hear(self, seconds: float) -> bool:
        """One datagram; whether one came in that time."""
        self._post.socket.settimeout(seconds)
        try:
            heard = self._post.socket.recv(_LONGEST)
        except OSError:
            return False
        token, heard = heard[:_TOKEN_BYTES], heard[_TOKEN_BYTES:]
        rank, kind = int.from_bytes(heard[:_RANK_BYTES], "big"), heard[_RANK_BYTES:]
        if token == self._post.token and rank in self._heard:
            self._heard[rank] = time.monotonic()
            if kind == _LEFT:
                del self._heard[rank]
            elif kind[:1] == _LOST:
                self._told = self._of(int.from_bytes(kind[1:], "big"), rank)
        return True

    def _of(self, lost: int, by: int) -> Loss:
        """The loss that another member tells of."""
        if lost == self._rank:
            return Loss(f"this rank, {lost}, counts as lost: rank {by} says so", Cause.EXCLUDED, None, "", None)
        return Loss(f"lost rank {lost}: rank {by} says so", Cause.PEER_LOST, lost, "", None)
