"""Facts of a world: its members, its waiting calls and its connections."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any, NamedTuple, Optional

from pccl._native import ffi
from pccl.engine.address import format_address
from pccl.types import TransportKind

_NONE = 2**32 - 1  # UINT32_MAX: no position in the ring; no lane, but the control link


class Member(NamedTuple):
    """A member of a world, as it was at the last change that the program knows."""

    id: int             #: the same at all members, and never used again in a run
    rank: int           #: what calls name it by
    key: int            #: the rank that it created the world with: ranks close up, keys stay
    ring_position: Optional[int]  #: in the ring of the installed view; None: it is no member of that
    peer_group: int     #: with whom it reduces and synchronises
    is_self: bool       #: whether it is this process's
    lost: bool          #: whether it was lost since that change
    address: str        #: "host:port" where it accepts connections

    @classmethod
    def of(cls, info: Any) -> "Member":
        """Of a pcclPeerInfo_t."""
        ring = None if info.ring_position == _NONE else info.ring_position
        return cls(info.id, info.rank, info.key, ring, info.peer_group, info.is_self, info.lost, format_address(info.address))


class Wait(NamedTuple):
    """The event that a call waits for."""

    phase: str          #: "launch", "data", "update", "sync", "connect", ...
    tag: int            #: of the operation
    peer: int           #: id; 0: the master
    age: float          #: seconds since when
    text: str           #: all of it in one sentence

    @classmethod
    def of(cls, info: Any) -> "Wait":
        """Of a pcclWaitInfo_t."""
        return cls(_text(info.phase), info.tag, info.peer, info.age_ns / 1e9, _text(info.text))


class Transport(NamedTuple):
    """The transport that carries the bytes of a connection, and the reason for it."""

    peer: int            #: id
    lane: Optional[int]  #: from 0 on; None: the control link
    kind: TransportKind  #: what carries it
    provider: str        #: libfabric's; "" of other kinds
    reason: str          #: why this kind and no faster one

    @classmethod
    def of(cls, info: Any) -> "Transport":
        """Of a pcclTransport_t."""
        lane = None if info.lane == _NONE else info.lane
        return cls(info.peer, lane, TransportKind(info.kind), _text(info.provider), _text(info.reason))


def _text(text: Any) -> str:
    return str(ffi.string(text).decode("utf-8", "replace"))
