"""Facts of a world: its members, its waiting calls and its connections."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any, NamedTuple, Optional

from pccl._native import ffi, lib
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


class Connection(NamedTuple):
    """Counters of a connection, and whether the limit of staging memory, not its link, holds the peer back."""

    peer: int            #: id
    lane: Optional[int]  #: from 0 on; None: the control link, which has no window
    sent: int            #: bytes, payload and headers, since the connection was made
    received: int        #: the same
    window: int          #: bytes of contributions that the peer is to have under way, by the rate and delay of its link
    granted: int         #: bytes of them for which there was room in the last operation that PCCL_STAGING_BYTES cut short
    bounded: int         #: operations cut short to less than half of the window; 0: `granted` is `window`

    @classmethod
    def of(cls, info: Any) -> "Connection":
        """Of a pcclConnectionStats_t."""
        lane = None if info.lane == _NONE else info.lane
        return cls(info.peer, lane, info.tx_bytes, info.rx_bytes, info.window_bytes, info.granted_bytes, info.bounded_operations)


class TcpConnection(NamedTuple):
    """A data connection over TCP, as the kernel sees it."""

    peer: int            #: id
    lane: int            #: from 0 on
    sockets: int         #: that carry it
    congestion: str      #: congestion control of the first socket; "": not known
    rate: int            #: bytes per second that were delivered last, by all sockets together
    retransmitted: int   #: bytes, since its sockets were made
    rtt: float           #: seconds of a round trip, smoothed; 0: not known
    least_rtt: float     #: seconds, the least of the last minutes; 0: not known

    @classmethod
    def of(cls, info: Any) -> "TcpConnection":
        """Of a pcclTcpConnection_t."""
        return cls(info.peer, info.lane, info.sockets, _text(info.congestion), info.rate, info.retransmitted_bytes, info.rtt_us / 1e6,
                   info.least_rtt_us / 1e6)


class Edge(NamedTuple):
    """The way from one member of a group to another, as a probe or operations have measured it, or as it is assumed to be."""

    rate: int            #: bits per second; 0: no connection is possible in this direction
    rtt: float           #: seconds, the least round trip; 0: not known
    loss: float          #: the part of the bytes that was sent again
    age: int             #: seconds since it was measured, or operations raised its rate
    observed: bool = False  #: operations have moved more than the last probe: the edge carries at least `rate`
    assumed: bool = False   #: not measured yet: taken to be like a measured edge between the same two sites


class Topology(NamedTuple):
    """The links of a group, as its master knows them; ranks are those of the newest view."""

    ids: list[int]       #: of the members, by rank
    ring: list[int]      #: the rank at each place of the ring
    edges: dict[tuple[int, int], Edge]  #: by the ranks of both ends; those that were measured, or assumed
    ring_rate: int       #: bits per second of the slowest edge of the ring; 0: one of its edges is not known, or cannot connect
    ring_edge: Optional[tuple[int, int]]  #: the ranks of that edge; None: not known

    @classmethod
    def of(cls, told: Any, ids: Any, ring: Any, edges: Any) -> "Topology":
        """Of a pcclTopology_t with room for all, and of its arrays."""
        known = {}
        for sender in range(told.count if told.measured > 0 else 0):
            for receiver in range(told.count):
                edge = edges[sender * told.capacity + receiver]
                if edge.source != lib.pcclEdgeUnknown:
                    known[sender, receiver] = Edge(
                        edge.rate, edge.rtt_us / 1e6, edge.loss_ppm / 1e6, edge.age_s,
                        edge.source == lib.pcclEdgeObserved, edge.source == lib.pcclEdgeAssumed)
        slowest = (told.ring_from, told.ring_to) if told.ring_from != lib.PCCL_NO_RANK else None
        return cls(list(ids[0:told.count]), list(ring[0:told.count]), known, told.ring_rate, slowest)


def _text(text: Any) -> str:
    return str(ffi.string(text).decode("utf-8", "replace"))
