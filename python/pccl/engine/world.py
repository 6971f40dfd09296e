"""A world: this process's membership in it, and all that members do together.

Every operation is launched and returns an `Operation`; the blocking form is ``world.barrier().wait()``.  A buffer is anything that
`pccl.buffers.as_buffer` takes, and is used in place.  Counts and places are in elements.  ``pccl.h`` documents each call under the name
that its docstring begins with: its meaning, the overlaps that are allowed, and the state after an error.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import contextlib
import os
import threading
import time
from typing import Any, Callable, Iterator, Optional, Sequence, TypeVar, Union

from pccl._native import ffi, lib
from pccl.arguments import array, call, instance, length_of_time, member, mistake, text, whole
from pccl.buffers import as_buffer
from pccl.engine.address import parse_address
from pccl.engine.facts import Connection, Member, TcpConnection, Topology, Transport, Wait
from pccl.engine.factor import factor_of
from pccl.engine.operation import Operation
from pccl.engine.parts import alike, at_root, own_part, parts_of, pointer_of
from pccl.engine.process import Bound, initialise, interruptible, own_process
from pccl.errors import PCCLError, check, last_error, make_error
from pccl.quantization import QuantizationOptions
from pccl.types import Attribute, Cause, DataType, LossRule, ReduceOp, Result

#: In `World.receive`: a message of whichever member.
ANY_RANK = lib.PCCL_ANY_RANK
#: In `World.split`: a member of none of the new worlds.
NO_COLOR = lib.PCCL_NO_COLOR

_T = TypeVar("_T")
_END_SECONDS = 2.0  # that a call may take to end when its world is left; it is there at once
_LONGEST_MS = 2**32 - 1
_SWEEP_FROM = 64  # operations in flight, from which on a launch looks whether some have ended that nobody waits for; then at twice what is left


@contextlib.contextmanager
def group() -> Iterator[None]:
    """``pcclGroupStart``, ``pcclGroupEnd``: messages of this thread to itself may be sent inside."""
    check(lib.pcclGroupStart(), "group")
    try:
        yield
    finally:
        result = lib.pcclGroupEnd()
    check(result, "group")


class World(Bound):
    """``pcclCreateCommunicatorEx``: a communicator of a world at a master; `connect` enters it.

    `master` is "host:port", "[::1]:port" or a host alone.  `size` ranks create a world of a `name` together, each with its `rank`.  With
    size 0 the world has no fixed size: peers join it with the others' next update.  The name "" is the default world.  There are `lanes`
    connections to each peer (0: the library's default).  `loss_rule` says whether a fixed-size world continues after a loss.  `join` enters
    such a world in place of a lost rank.  `once` keeps its name from being used again.  `formation_timeout` is how long `connect` waits for
    the other ranks.  `stall` is the silence after which a peer counts as lost.  Both are in seconds (None: the default).  `net` is "Socket"
    or "OFI".  `shared_memory` says whether members on one host use it ("" and None: the environment decides).

    Operations keep their buffers alive; the program may use or free the buffers when the operation has ended.  Any thread
    may call anything.  Every call raises `pccl.errors.PCCLError`.
    """

    def __init__(
        self,
        master: str,
        *,
        name: str = "",
        size: int = 0,
        rank: int = 0,
        peer_group: int = 0,
        lanes: int = 0,
        loss_rule: LossRule = LossRule.END,
        formation_timeout: Optional[float] = None,
        once: bool = False,
        join: bool = False,
        stall: Optional[float] = None,
        net: str = "",
        shared_memory: Optional[bool] = None,
    ) -> None:
        initialise()
        texts = [ffi.new("char[]", text("World", what, value)) for what, value in (("name", name), ("net", net))]
        numbers = (("size", size), ("rank", rank), ("peer_group", peer_group), ("lanes", lanes))
        size, rank, peer_group, lanes = (whole("World", what, number, "uint32_t") for what, number in numbers)
        params = ffi.new("pcclCommCreateParamsEx_t *")
        params.size = ffi.sizeof("pcclCommCreateParamsEx_t")
        params.master_address = parse_address(master, lib.CCOIP_PROTOCOL_PORT_MASTER)
        if params.master_address.port == 0:
            raise mistake("World", f"the address {master!r} has port 0; pass the port at which ccoip_master listens, as in '10.0.0.1:48148'")
        params.world, params.net = texts
        params.world_size, params.rank, params.peer_group, params.p2p_connection_pool_size = size, rank, peer_group, lanes
        params.loss_rule, params.once, params.join = whole("World", "loss_rule", loss_rule, "int32_t"), bool(once), bool(join)
        params.formation_timeout_ms, params.stall_ms = milliseconds(formation_timeout), milliseconds(stall)
        params.shm_disable = 0 if shared_memory is None else -1 if shared_memory else 1
        handle = ffi.new("pcclComm_t **")
        check(lib.pcclCreateCommunicatorEx(params, handle), "World")
        self._begin(handle[0], name)

    def _begin(self, handle: Any, name: str) -> None:
        self.name = name
        self.pid = os.getpid()
        self.handle = handle  #: the pcclComm_t; None once it was destroyed
        self._flying: set[Operation] = set()
        self._sweep_at = _SWEEP_FROM
        self._operation_deadline: Optional[float] = None
        self._lock = threading.Lock()

    @classmethod
    def _of(cls, handle: Any, name: str) -> "World":
        world = cls.__new__(cls)
        world._begin(handle, name)
        return world

    # -- Membership --

    def connect(self) -> None:
        """``pcclConnect``: enters the world; blocks until it has begun, or the members admit this one.  An interrupt gives it up."""
        try:
            self.connect_async().wait()
        except KeyboardInterrupt:
            for operation in list(self._flying):
                if operation.name == "connect":
                    operation.cancel()
                    operation._wait(_END_SECONDS)
            raise

    def connect_async(self) -> Operation:
        """``pcclConnectAsync``: the same, not waited for; `Operation.cancel` gives it up."""
        return self._launch("connect", lib.pcclConnectAsync, (), None)

    def update(self) -> None:
        """``pcclUpdateTopology``: admits newcomers, drops the departed; all members call it."""
        self._sweep()
        interruptible("update", lib.pcclUpdateTopology, self._own("update"))

    def optimize(self) -> None:
        """``pcclOptimizeTopology``: measures links and puts the ring in the best order; all members call it."""
        self._sweep()
        interruptible("optimize", lib.pcclOptimizeTopology, self._own("optimize"))

    def peers_pending(self) -> bool:
        """``pcclArePeersPending``: whether newcomers wait; all members ask."""
        pending = ffi.new("bool *")
        interruptible("peers_pending", lib.pcclArePeersPending, self._own("peers_pending"), pending)
        return bool(pending[0])

    def leave(self) -> None:
        """``pcclLeave``: this member leaves; what is in flight ends with an error; `connect` may follow."""
        check(lib.pcclLeave(self._own("leave")), "leave")
        self._sweep()

    def leave_together(self, own_seconds: float, seconds: float) -> None:
        """Waits until the operations in flight here have ended, and all other members have made this call, too; then as `destroy`.

        Waits at most `own_seconds` for the operations, then aborts them.  Waits at most `seconds` for all, and not for members of a world that
        has ended.  Until then others may exchange messages among themselves; a message that waits for this member fails, with the cause CONFLICT.
        """
        now = time.monotonic()
        try:
            for operation in list(self._flying):
                if not operation._wait(max(0.0, now + own_seconds - time.monotonic())):
                    operation.cancel()
            for operation in list(self._flying):
                operation._wait(_END_SECONDS)
            self.set_vote_deadline(max(0.001, now + seconds - time.monotonic()))
            self.update()
        except PCCLError:
            pass  # it ends here in any case, and others are told why
        finally:
            self.destroy()

    def revoke(self) -> None:
        """``pcclRevoke``: ends the world for all of its members; never blocks."""
        check(lib.pcclRevoke(self._own("revoke")), "revoke")

    def destroy(self) -> None:
        """``pcclDestroyCommunicator``: leaves, ends what is in flight, frees everything; the second time, and in a forked child, nothing."""
        with self._lock:
            handle, self.handle = self.handle, None
        if handle is None or os.getpid() != self.pid:
            return
        if lib.pcclLeave(handle) == lib.pcclSuccess:  # so that what is in flight ends before its handles are gone
            for operation in list(self._flying):
                operation._wait(_END_SECONDS)
        lib.pcclDestroyCommunicator(handle)

    def __enter__(self) -> "World":
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy()

    def __del__(self) -> None:
        if getattr(self, "handle", None) is not None:
            self.destroy()

    # -- What is known --

    @property
    def me(self) -> Member:
        """``pcclGetSelf``: this member, as of the last change that the program knows.  InvalidUsage: before `connect`."""
        info = ffi.new("pcclPeerInfo_t *")
        check(lib.pcclGetSelf(self._own("me"), info), "me")
        return Member.of(info)

    @property
    def rank(self) -> int:
        """This member's rank, as of the last change that the program knows."""
        info = ffi.new("pcclPeerInfo_t *")
        check(lib.pcclGetSelf(self._own("rank"), info), "rank")
        return int(info.rank)

    @property
    def size(self) -> int:
        """How many members its peer group has."""
        return self.attribute(Attribute.LOCAL_WORLD_SIZE)

    def attribute(self, which: Attribute) -> int:
        """``pcclGetAttribute``: one of the sizes, a number of peers or of groups, as of the last change that the program knows."""
        value = ffi.new("int *")
        check(lib.pcclGetAttribute(self._own("attribute"), member("attribute", which, Attribute), value), "attribute")
        return int(value[0])

    def members(self) -> list[Member]:
        """``pcclGetMembers``: in the order of ranks."""
        return self._listed("members", lib.pcclGetMembers, "pcclPeerInfo_t", Member.of)

    def waits(self) -> list[Wait]:
        """``pcclGetWaits``: who is waited for now, by all calls of this communicator."""
        return self._listed("waits", lib.pcclGetWaits, "pcclWaitInfo_t", Wait.of)

    def missing_ranks(self) -> list[int]:
        """``pcclGetMissingRanks``: the ranks that have not come, while a fixed-size world is created."""
        return self._listed("missing_ranks", lib.pcclGetMissingRanks, "uint32_t", int)

    def transports(self) -> list[Transport]:
        """``pcclGetTransports``: what carries each connection to another peer, and why no faster kind does."""
        return self._listed("transports", lib.pcclGetTransports, "pcclTransport_t", Transport.of)

    def connections(self) -> list[Connection]:
        """``pcclGetConnectionStats``: bytes over each connection to another peer, and the window that the peer has."""
        return self._listed("connections", lib.pcclGetConnectionStats, "pcclConnectionStats_t", Connection.of)

    def tcp_connections(self) -> list[TcpConnection]:
        """``pcclGetTcpConnections``: sockets, congestion control, rate and round trip of each data connection over TCP."""
        return self._listed("tcp_connections", lib.pcclGetTcpConnections, "pcclTcpConnection_t", TcpConnection.of)

    def topology(self, timeout: float = 10.0) -> Topology:
        """``pcclGetTopology``: what was measured of the links of the group, and its ring; within ``timeout`` seconds."""
        end = time.monotonic() + timeout
        count, measured = 16, 1
        while True:
            ids, ring = ffi.new("uint64_t[]", count), ffi.new("uint32_t[]", count)
            edges = ffi.new("pcclEdge_t[]", count * count) if measured > 0 else ffi.NULL
            told = ffi.new("pcclTopology_t *", {"size": ffi.sizeof("pcclTopology_t"), "capacity": count, "ids": ids, "ring": ring, "edges": edges})
            check(lib.pcclGetTopology(self._own("topology"), told, milliseconds(max(end - time.monotonic(), 0.001))), "topology")
            if told.count <= count and (told.measured == 0 or edges != ffi.NULL):
                return Topology.of(told, ids, ring, edges)
            count, measured = told.count, told.measured

    def _listed(self, name: str, function: Any, kind: str, make: Callable[[Any], _T]) -> list[_T]:
        """All of what a function that fills a list of a given capacity has to tell, in a form that needs its memory no more."""
        count = ffi.new("size_t *", 16)
        while True:
            capacity = count[0]
            infos = ffi.new(f"{kind}[]", capacity)
            check(function(self._own(name), infos, capacity, count), name)
            if count[0] <= capacity:
                return [make(infos[index]) for index in range(count[0])]

    # -- Limits of time --

    def set_operation_deadline(self, seconds: Optional[float]) -> None:
        """Operations launched from now on that are not complete by then are refused, on all members; None: no deadline."""
        self._set_option("set_operation_deadline", lib.PCCL_OPTION_OPERATION_DEADLINE_MS, milliseconds(seconds))
        self._operation_deadline = seconds

    def set_vote_deadline(self, seconds: Optional[float]) -> None:
        """A vote that takes longer leaves the world; None: never."""
        self._set_option("set_vote_deadline", lib.PCCL_OPTION_VOTE_DEADLINE_MS, milliseconds(seconds))

    def set_connect_timeout(self, seconds: float) -> None:
        """How long `connect` tries to reach the master."""
        self._set_option("set_connect_timeout", lib.PCCL_OPTION_CONNECT_TIMEOUT_MS, milliseconds(seconds))

    def set_master_loss_timeout(self, seconds: float) -> None:
        """How long calls wait for a master that is lost; before `connect`."""
        self._set_option("set_master_loss_timeout", lib.PCCL_OPTION_MASTER_LOSS_TIMEOUT_MS, milliseconds(seconds))

    def _set_option(self, name: str, option: int, value: int) -> None:
        check(lib.pcclSetOption(self._own(name), option, value), name)

    # -- Collectives --

    def all_reduce(
        self,
        send: Any,
        receive: Any,
        op: Any = ReduceOp.SUM,
        *,
        quantization: Optional[QuantizationOptions] = None,
        deadline: Optional[float] = None,
    ) -> Operation:
        """``pcclAllReduceOrdered``: `send` of all members, element by element, into `receive`, as large, which may be `send` itself.

        `op` is a `ReduceOp`, or of `premul_sum`.  `quantization`, here and in other sums: how float32 and float64 travel
        (``pcclAllReduceQuantized``), the same on all members.  `deadline`, here and in what follows: seconds, instead of `set_operation_deadline`.
        """
        s, r = as_buffer(send, "send"), as_buffer(receive, "receive", True)
        alike("all_reduce", s, r, s.count)
        operator = _op(op)
        arguments = (s.pointer, r.pointer, s.count, s.datatype.value, operator, _options(quantization))
        return self._launch("all_reduce", lib.pcclAllReduceQuantized, arguments, (s, r), deadline, op=operator)

    def broadcast(self, send: Any, receive: Any, root: int, *, deadline: Optional[float] = None) -> Operation:
        """``pcclBroadcast``: the root's `send` into everybody's `receive`, as large; at others than the root `send` may be None."""
        r = as_buffer(receive, "receive", True)
        s = at_root(send, "send")
        if s is not None:
            alike("broadcast", s, r, s.count)
        arguments = (pointer_of(s), r.pointer, r.count, r.datatype.value, root)
        return self._launch("broadcast", lib.pcclBroadcast, arguments, (s, r), deadline, root=root)

    def reduce(
        self,
        send: Any,
        receive: Any,
        root: int,
        op: Any = ReduceOp.SUM,
        *,
        quantization: Optional[QuantizationOptions] = None,
        deadline: Optional[float] = None,
    ) -> Operation:
        """``pcclReduce``: `send` of all members into the root's `receive`, as large; others may pass None there."""
        s, r = as_buffer(send, "send"), at_root(receive, "receive", True)
        if r is not None:
            alike("reduce", s, r, s.count)
        operator = _op(op)
        arguments = (s.pointer, pointer_of(r), s.count, s.datatype.value, operator, _options(quantization), root)
        return self._launch("reduce", lib.pcclReduceQuantized, arguments, (s, r), deadline, op=operator, root=root)

    def all_gather(self, send: Any, receive: Any, *, deadline: Optional[float] = None) -> Operation:
        """``pcclAllGather``: `receive` has room for `send` of each member, by rank."""
        s, r = as_buffer(send, "send"), as_buffer(receive, "receive", True)
        alike("all_gather", s, r, s.count * self.size)
        return self._launch("all_gather", lib.pcclAllGather, (s.pointer, r.pointer, s.count, s.datatype.value), (s, r), deadline)

    def all_gather_v(
        self, send: Any, receive: Any, counts: Sequence[int], places: Optional[Sequence[int]] = None, *, deadline: Optional[float] = None
    ) -> Operation:
        """``pcclAllGatherV``: ``counts[r]`` elements of rank r go to element ``places[r]`` of `receive` (None: one behind the other)."""
        s, r = as_buffer(send, "send"), as_buffer(receive, "receive", True)
        alike("all_gather_v", s, r, None)
        parts = parts_of("all_gather_v", "receive", r, counts, places, self.size)
        own_part("all_gather_v", "send", s, counts, self.rank)
        arguments = (s.pointer, r.pointer, *parts, s.datatype.value)
        return self._launch("all_gather_v", lib.pcclAllGatherV, arguments, (s, r), deadline)

    def reduce_scatter(
        self,
        send: Any,
        receive: Any,
        op: Any = ReduceOp.SUM,
        *,
        quantization: Optional[QuantizationOptions] = None,
        deadline: Optional[float] = None,
    ) -> Operation:
        """``pcclReduceScatter``: `send` has a part as large as `receive` for each member, by rank; each gets its own, reduced.  Not in place."""
        s, r = as_buffer(send, "send"), as_buffer(receive, "receive", True)
        alike("reduce_scatter", r, s, r.count * self.size)
        operator = _op(op)
        arguments = (s.pointer, r.pointer, r.count, r.datatype.value, operator, _options(quantization))
        return self._launch("reduce_scatter", lib.pcclReduceScatterQuantized, arguments, (s, r), deadline, op=operator)

    def reduce_scatter_v(
        self,
        send: Any,
        receive: Any,
        counts: Sequence[int],
        op: Any = ReduceOp.SUM,
        places: Optional[Sequence[int]] = None,
        *,
        quantization: Optional[QuantizationOptions] = None,
        deadline: Optional[float] = None,
    ) -> Operation:
        """``pcclReduceScatterV``: rank r gets ``counts[r]`` elements, from ``places[r]`` of `send` on (None: one behind the other)."""
        s, r = as_buffer(send, "send"), as_buffer(receive, "receive", True)
        alike("reduce_scatter_v", r, s, None)
        parts = parts_of("reduce_scatter_v", "send", s, counts, places, self.size)
        own_part("reduce_scatter_v", "receive", r, counts, self.rank)
        operator = _op(op)
        arguments = (s.pointer, r.pointer, *parts, r.datatype.value, operator, _options(quantization))
        return self._launch("reduce_scatter_v", lib.pcclReduceScatterVQuantized, arguments, (s, r), deadline, op=operator)

    def all_to_all(self, send: Any, receive: Any, *, deadline: Optional[float] = None) -> Operation:
        """``pcclAllToAll``: both have an equal part for each member, by rank; part r of `send` goes to rank r.  Not in place."""
        s, r = as_buffer(send, "send"), as_buffer(receive, "receive", True)
        alike("all_to_all", s, r, s.count)
        size = self.size
        if s.count % size:
            raise mistake("all_to_all", f"send has {s.count} elements, which {size} members cannot share evenly; use all_to_all_v")
        return self._launch("all_to_all", lib.pcclAllToAll, (s.pointer, r.pointer, s.count // size, s.datatype.value), (s, r), deadline)

    def all_to_all_v(
        self,
        send: Any,
        send_counts: Sequence[int],
        receive: Any,
        receive_counts: Sequence[int],
        send_places: Optional[Sequence[int]] = None,
        receive_places: Optional[Sequence[int]] = None,
        *,
        deadline: Optional[float] = None,
    ) -> Operation:
        """``pcclAllToAllV``: to rank r ``send_counts[r]`` elements, from ``send_places[r]`` of `send` on; the same for what comes from it.

        Places of None: one part behind the other.  The counts of sender and receiver have to be equal.  Not in place.
        """
        s, r = as_buffer(send, "send"), as_buffer(receive, "receive", True)
        alike("all_to_all_v", s, r, None)
        sent = parts_of("all_to_all_v", "send", s, send_counts, send_places, self.size)
        received = parts_of("all_to_all_v", "receive", r, receive_counts, receive_places, self.size)
        arguments = (s.pointer, *sent, r.pointer, *received, s.datatype.value)
        return self._launch("all_to_all_v", lib.pcclAllToAllV, arguments, (s, r), deadline)

    def scatter(self, send: Any, receive: Any, root: int, *, deadline: Optional[float] = None) -> Operation:
        """``pcclScatter``: `send`, with a part as large as `receive` for each member, by rank, is the root's; others may pass None."""
        r, s = as_buffer(receive, "receive", True), at_root(send, "send")
        if s is not None:
            alike("scatter", r, s, r.count * self.size)
        arguments = (pointer_of(s), r.pointer, r.count, r.datatype.value, root)
        return self._launch("scatter", lib.pcclScatter, arguments, (s, r), deadline, root=root)

    def scatter_v(
        self,
        send: Any,
        counts: Optional[Sequence[int]],
        receive: Any,
        root: int,
        places: Optional[Sequence[int]] = None,
        *,
        deadline: Optional[float] = None,
    ) -> Operation:
        """``pcclScatterV``: to rank r ``counts[r]`` elements; `send`, `counts` and `places` are the root's, others may pass None."""
        r, s = as_buffer(receive, "receive", True), at_root(send, "send")
        if s is not None:
            alike("scatter_v", r, s, None)
        parts = parts_of("scatter_v", "send", s, counts, places, self.size)
        arguments = (pointer_of(s), *parts, r.pointer, r.count, r.datatype.value, root)
        return self._launch("scatter_v", lib.pcclScatterV, arguments, (s, r), deadline, root=root)

    def gather(self, send: Any, receive: Any, root: int, *, deadline: Optional[float] = None) -> Operation:
        """``pcclGather``: `receive`, with room for `send` of each member, by rank, is the root's; others may pass None."""
        s, r = as_buffer(send, "send"), at_root(receive, "receive", True)
        if r is not None:
            alike("gather", s, r, s.count * self.size)
        arguments = (s.pointer, pointer_of(r), s.count, s.datatype.value, root)
        return self._launch("gather", lib.pcclGather, arguments, (s, r), deadline, root=root)

    def gather_v(
        self,
        send: Any,
        receive: Any,
        counts: Optional[Sequence[int]],
        root: int,
        places: Optional[Sequence[int]] = None,
        *,
        deadline: Optional[float] = None,
    ) -> Operation:
        """``pcclGatherV``: of rank r ``counts[r]`` elements; `receive`, `counts` and `places` are the root's, others may pass None."""
        s, r = as_buffer(send, "send"), at_root(receive, "receive", True)
        if r is not None:
            alike("gather_v", s, r, None)
        parts = parts_of("gather_v", "receive", r, counts, places, self.size)
        arguments = (s.pointer, s.count, pointer_of(r), *parts, s.datatype.value, root)
        return self._launch("gather_v", lib.pcclGatherV, arguments, (s, r), deadline, root=root)

    def refuse(self) -> Operation:
        """Takes the place, in the order of issue, of a collective that cannot be called here: it fails on the others, which would wait for it.

        The operation fails, too, and counts as in flight until it has ended.
        """
        return self._launch("refuse", lib.pcclAllGather, (ffi.NULL, ffi.NULL, 1, DataType.UINT8.value), None)

    def barrier(self, *, deadline: Optional[float] = None) -> Operation:
        """``pcclBarrier``: ends at all members when all have called it."""
        return self._launch("barrier", lib.pcclBarrier, (), None, deadline)

    # -- Messages --

    def send(self, send: Any, rank: int, tag: int = 0, *, deadline: Optional[float] = None) -> Operation:
        """``pcclSend``: has ended when the receiver has it; `rank` receives with the same `tag`, into as many elements of the same type."""
        s = as_buffer(send, "send")
        arguments = (s.pointer, s.count, s.datatype.value, rank, tag)
        return self._launch("send", lib.pcclSend, arguments, s, deadline, rank=rank, tag=tag)

    def receive(self, receive: Any, rank: int = ANY_RANK, tag: int = 0, *, deadline: Optional[float] = None) -> Operation:
        """``pcclReceive``: fills `receive` with a message of `rank` (`ANY_RANK`: whichever) and `tag`; `Operation.source` is whose it was."""
        r = as_buffer(receive, "receive", True)
        source = ffi.new("uint32_t *")
        arguments = (r.pointer, r.count, r.datatype.value, rank, tag, source)
        return self._launch("receive", lib.pcclReceive, arguments, r, deadline, source, rank=rank, tag=tag)

    # -- Operators with a factor --

    @contextlib.contextmanager
    def premul_sum(self, factor: float, datatype: DataType) -> Iterator[int]:
        """``pcclRedOpCreatePreMulSum``: an operator that sums up inputs times `factor`, for what is launched inside."""
        op = ffi.new("pcclRedOp_t *")
        number = factor_of(factor, datatype)
        result = lib.pcclRedOpCreatePreMulSum(op, number, datatype.value, lib.pcclFactorByValue, self._own("premul_sum"))
        check(result, "premul_sum")
        try:
            yield op[0]
        finally:
            if self.handle is not None:
                lib.pcclRedOpDestroy(op[0], self.handle)

    # -- Worlds out of this one --

    def split(
        self,
        color: int,
        key: int = 0,
        *,
        name: str = "",
        loss_rule: LossRule = LossRule.END,
        formation_timeout: Optional[float] = None,
        lanes: int = 0,
    ) -> Optional["World"]:
        """``pcclSplitCommunicator``: the new world of this `color`, None with `NO_COLOR`; all members call it.

        Ranks there are by `key`, then by rank here.  `name` is for texts alone; the other arguments are those of a `World`.
        """
        made = ffi.new("pcclComm_t **")
        params = _derived("split", loss_rule, formation_timeout, lanes)
        color, key = whole("split", "color", color, "int32_t"), whole("split", "key", key, "int32_t")
        interruptible("split", lib.pcclSplitCommunicator, self._own("split"), color, key, params, made)
        return None if made[0] == ffi.NULL else World._of(made[0], name)

    def duplicate(
        self,
        *,
        name: str = "",
        loss_rule: LossRule = LossRule.END,
        formation_timeout: Optional[float] = None,
        lanes: int = 0,
    ) -> "World":
        """``pcclDuplicateCommunicator``: a new world of all members, with the same ranks and operations of its own; all call it."""
        made = ffi.new("pcclComm_t **")
        params = _derived("duplicate", loss_rule, formation_timeout, lanes)
        interruptible("duplicate", lib.pcclDuplicateCommunicator, self._own("duplicate"), params, made)
        return World._of(made[0], name)

    def create_from_list(
        self,
        peers: Sequence[int],
        tag: int = 0,
        *,
        name: str = "",
        loss_rule: LossRule = LossRule.END,
        formation_timeout: Optional[float] = None,
        lanes: int = 0,
    ) -> "World":
        """``pcclCreateFromList``: of the members with these ids, which alone call it."""
        made = ffi.new("pcclComm_t **")
        params = _derived("create_from_list", loss_rule, formation_timeout, lanes)
        listed, tag = array("create_from_list", "peers", peers, "uint64_t"), whole("create_from_list", "tag", tag, "uint64_t")
        interruptible("create_from_list", lib.pcclCreateFromList, self._own("create_from_list"), listed, len(listed), tag, params, made)
        return World._of(made[0], name)

    # -- Launching --

    def _own(self, name: str) -> Any:
        """The handle.  InvalidUsage: destroyed, or another process's."""
        own_process(self.pid, name)
        handle = self.handle
        if handle is None:
            raise make_error(Result.INVALID_USAGE, name, "the communicator was destroyed: make a new one")
        return handle

    def _launch(
        self,
        name: str,
        function: Any,
        arguments: tuple[Any, ...],
        keep: Any,
        deadline: Optional[float] = None,
        source: Any = None,
        kind: type[Operation] = Operation,
        at: Any = None,
        **numbers: Any,
    ) -> Operation:
        """Launches a call of C, at this communicator or a handle of it; `numbers` are those of the `arguments` that the program has passed."""
        comm = self._own(name)
        handle = ffi.new(kind._handle_type)
        if len(self._flying) >= self._sweep_at:
            self._sweep()
            self._sweep_at = max(_SWEEP_FROM, 2 * len(self._flying))
        operation = kind(self, name, handle, keep, source)
        timeout = self._operation_deadline if deadline is None else length_of_time(deadline)
        if timeout is not None:
            operation.timeout, operation.until = timeout, time.monotonic() + timeout
        if deadline is not None:
            lib.pcclSetCallDeadline(milliseconds(deadline))
        try:
            arguments = (*arguments, comm if at is None else at, handle)
            result = call(name, function, arguments, numbers)
            if _no_room(result, name):
                self._sweep()
                result = call(name, function, arguments, numbers)
        finally:  # Ctrl-C may come as the call returns: what was launched borrows its memory all the same
            if handle.comm != ffi.NULL:
                self._flying.add(operation)
            if deadline is not None:
                lib.pcclSetCallDeadline(-1)
        check(result, name)
        return operation

    def _sweep(self) -> None:
        """Lets go of what has ended and nobody has looked at."""
        for operation in list(self._flying):
            operation.done()

    def _forget(self, operation: Operation) -> None:
        self._flying.discard(operation)


def _no_room(result: int, name: str) -> bool:
    """Whether a launch was refused since the library has 1,024 that are in flight, or have ended and nobody has looked at."""
    return result == lib.pcclRankConnectionLost and last_error(result, name).cause is Cause.USAGE


def milliseconds(seconds: Optional[float]) -> int:
    """In the form of the library, whose 0 is none: more than nothing is 1 at least, and the longest that it knows 49 days.  ValueError: no time."""
    if seconds is None:
        return 0
    return max(1, round(min(length_of_time(seconds) * 1000, _LONGEST_MS)))


def _options(quantization: Optional[QuantizationOptions]) -> Any:
    """The C struct; null: not quantised."""
    if quantization is None:
        return ffi.NULL
    instance("quantization", quantization, QuantizationOptions)
    return quantization.to_c()


def _op(op: Union[ReduceOp, int]) -> int:
    if isinstance(op, ReduceOp):
        return int(op.value)
    if not isinstance(op, int):
        raise TypeError(f"pccl: op is {op!r}, a {type(op).__name__}; pass a ReduceOp, or what premul_sum gives")
    return int(op)


def _derived(name: str, loss_rule: LossRule, formation_timeout: Optional[float], lanes: int) -> Any:
    params = ffi.new("pcclDeriveParams_t *")
    params.size = ffi.sizeof("pcclDeriveParams_t")
    params.loss_rule = whole(name, "loss_rule", loss_rule, "int32_t")
    params.formation_timeout_ms = milliseconds(formation_timeout)
    params.p2p_connection_pool_size = whole(name, "lanes", lanes, "uint32_t")
    return params
