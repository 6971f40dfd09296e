"""A world: this process's membership in it, and all that members do together.

Every operation is launched and returns an `Operation`; the blocking form is ``world.barrier().wait()``.  Buffers are whatever
`pccl.buffers.as_buffer` takes, and are used where they lie.  Counts and places are in elements.  What each call means, which overlaps
are allowed, and what an error leaves, says ``pccl.h`` under the name that each begins with.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import contextlib
import os
import struct
import threading
import time
from typing import Any, Callable, Iterator, Optional, Sequence, TypeVar, Union

from pccl._native import ffi, lib
from pccl.arguments import member, number, text
from pccl.buffers import Buffer, as_buffer
from pccl.engine.address import parse_address
from pccl.engine.facts import Member, Transport, Wait
from pccl.engine.operation import Operation
from pccl.engine.process import Bound, initialise, interruptible, own_process
from pccl.errors import PCCLError, check, make_error
from pccl.types import Attribute, DataType, LossRule, ReduceOp, Result

#: In `World.receive`: a message of whichever member.
ANY_RANK = lib.PCCL_ANY_RANK
#: In `World.split`: a member of none of the new worlds.
NO_COLOR = lib.PCCL_NO_COLOR

_T = TypeVar("_T")
_END_SECONDS = 2.0  # that a call may take to end when its world is left; it is there at once
_LONGEST_MS = 2**32 - 1
_SWEEP_FROM = 64  # operations in flight, from which on a launch looks whether some have ended that nobody waits for; then at twice what is left
_SWEEP_EACH = 960  # from which on each launch does: the library lets 1,024 be in flight, or ended and not looked at


@contextlib.contextmanager
def group() -> Iterator[None]:
    """``pcclGroupStart``, ``pcclGroupEnd``: messages of this thread to itself may be sent inside."""
    check(lib.pcclGroupStart(), "pcclGroupStart")
    try:
        yield
    finally:
        result = lib.pcclGroupEnd()
    check(result, "pcclGroupEnd")


class World(Bound):
    """``pcclCreateCommunicatorEx``: a communicator of a world at a master; `connect` enters it.

    `master` is "host:port", "[::1]:port" or a host alone.  `size` ranks create a world of a `name` together, each with its `rank`; with
    size 0 it is one without a size, which peers join with the others' next update, of the name "" the default one.  There are `lanes`
    connections to each peer (0: what the library takes).  `loss_rule` says whether a world of a size goes on after a loss, `join` enters
    one that does in place of a lost rank, `once` keeps its name from being used again.  `formation_timeout` is how long `connect` waits for
    the other ranks, `stall` after how much silence a peer counts as lost, both in seconds (None: what the library takes).  `net` is
    "Socket" or "OFI", `shared_memory` whether members on one host use it ("" and None: as the environment says).

    Operations that it launches keep their buffers alive; these may be used again, or freed, when the operation has ended.  Any thread
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
        texts = [ffi.new("char[]", text(name, "name")), ffi.new("char[]", text(net, "net"))]
        for what, value in (("size", size), ("rank", rank), ("peer_group", peer_group), ("lanes", lanes)):
            number(value, what, 32)
        params = ffi.new("pcclCommCreateParamsEx_t *")
        params.size = ffi.sizeof("pcclCommCreateParamsEx_t")
        params.master_address = parse_address(master, lib.CCOIP_PROTOCOL_PORT_MASTER)
        params.world, params.net = texts
        params.world_size, params.rank, params.peer_group, params.p2p_connection_pool_size = size, rank, peer_group, lanes
        params.loss_rule, params.once, params.join = loss_rule, once, join
        params.formation_timeout_ms, params.stall_ms = milliseconds(formation_timeout), milliseconds(stall)
        params.shm_disable = 0 if shared_memory is None else -1 if shared_memory else 1
        handle = ffi.new("pcclComm_t **")
        check(lib.pcclCreateCommunicatorEx(params, handle), "pcclCreateCommunicatorEx")
        self._begin(handle[0], name)

    def _begin(self, handle: Any, name: str) -> None:
        self.name = name
        self.pid = os.getpid()
        self.handle = handle  #: the pcclComm_t; None once it was destroyed
        self._flying: set[Operation] = set()
        self._sweep_at = _SWEEP_FROM
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

    def leave_together(self, seconds: float) -> None:
        """Waits until what is in flight here has ended, and all other members have come to this, too; then the same as `destroy`.

        Not longer than `seconds`, and not for members of a world that has ended.  Until then others may go on with messages among themselves; one
        that waits for this member fails, with the cause CONFLICT.
        """
        until = time.monotonic() + seconds
        try:
            for operation in list(self._flying):
                operation._wait(max(0.0, until - time.monotonic()))
            self.set_vote_deadline(max(0.001, until - time.monotonic()))
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
        check(lib.pcclGetAttribute(self._own("attribute"), member(which, Attribute, "attribute"), value), "attribute")
        return int(value[0])

    def members(self) -> list[Member]:
        """``pcclGetMembers``: in the order of ranks."""
        return self._listed("members", lib.pcclGetMembers, "pcclPeerInfo_t", Member.of)

    def waits(self) -> list[Wait]:
        """``pcclGetWaits``: who is waited for now, by all calls of this communicator."""
        return self._listed("waits", lib.pcclGetWaits, "pcclWaitInfo_t", Wait.of)

    def missing_ranks(self) -> list[int]:
        """``pcclGetMissingRanks``: who has not come, while a world of a size is created."""
        return self._listed("missing_ranks", lib.pcclGetMissingRanks, "uint32_t", int)

    def transports(self) -> list[Transport]:
        """``pcclGetTransports``: what carries each connection to another peer, and why no faster kind does."""
        return self._listed("transports", lib.pcclGetTransports, "pcclTransport_t", Transport.of)

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
        """What is launched from now on and not complete by then is refused, at all members; None: never."""
        self._set_option(lib.PCCL_OPTION_OPERATION_DEADLINE_MS, milliseconds(seconds))

    def set_vote_deadline(self, seconds: Optional[float]) -> None:
        """A vote that takes longer leaves the world; None: never."""
        self._set_option(lib.PCCL_OPTION_VOTE_DEADLINE_MS, milliseconds(seconds))

    def set_connect_timeout(self, seconds: float) -> None:
        """How long `connect` tries to reach the master."""
        self._set_option(lib.PCCL_OPTION_CONNECT_TIMEOUT_MS, milliseconds(seconds))

    def set_master_loss_timeout(self, seconds: float) -> None:
        """How long calls wait for a master that is lost; before `connect`."""
        self._set_option(lib.PCCL_OPTION_MASTER_LOSS_TIMEOUT_MS, milliseconds(seconds))

    def _set_option(self, option: int, value: int) -> None:
        check(lib.pcclSetOption(self._own("option"), option, value), "pcclSetOption")

    # -- Collectives --

    def all_reduce(self, send: Any, receive: Any, op: Any = ReduceOp.SUM, *, deadline: Optional[float] = None) -> Operation:
        """``pcclAllReduceOrdered``: `send` of all members, element by element, into `receive`, as large, which may be `send` itself.

        `op` is a `ReduceOp`, or of `premul_sum`.  `deadline`, here and in what follows: seconds, instead of `set_operation_deadline`.
        """
        s, r = as_buffer(send, "send"), as_buffer(receive, "receive", True)
        _alike("all_reduce", s, r, s.count)
        return self._launch("all_reduce", lib.pcclAllReduceOrdered, (s.pointer, r.pointer, s.count, s.datatype.value, _op(op)), (s, r), deadline)

    def broadcast(self, send: Any, receive: Any, root: int, *, deadline: Optional[float] = None) -> Operation:
        """``pcclBroadcast``: the root's `send` into everybody's `receive`, as large; at others than the root `send` may be None."""
        r = as_buffer(receive, "receive", True)
        s = _at_root(send, "send")
        if s is not None:
            _alike("broadcast", s, r, s.count)
        arguments = (_pointer(s), r.pointer, r.count, r.datatype.value, root)
        return self._launch("broadcast", lib.pcclBroadcast, arguments, (s, r), deadline)

    def reduce(self, send: Any, receive: Any, root: int, op: Any = ReduceOp.SUM, *, deadline: Optional[float] = None) -> Operation:
        """``pcclReduce``: `send` of all members into the root's `receive`, as large; others may pass None there."""
        s, r = as_buffer(send, "send"), _at_root(receive, "receive", True)
        if r is not None:
            _alike("reduce", s, r, s.count)
        arguments = (s.pointer, _pointer(r), s.count, s.datatype.value, _op(op), root)
        return self._launch("reduce", lib.pcclReduce, arguments, (s, r), deadline)

    def all_gather(self, send: Any, receive: Any, *, deadline: Optional[float] = None) -> Operation:
        """``pcclAllGather``: `receive` has room for `send` of each member, by rank."""
        s, r = as_buffer(send, "send"), as_buffer(receive, "receive", True)
        _alike("all_gather", s, r, s.count * self.size)
        return self._launch("all_gather", lib.pcclAllGather, (s.pointer, r.pointer, s.count, s.datatype.value), (s, r), deadline)

    def all_gather_v(
        self, send: Any, receive: Any, counts: Sequence[int], places: Optional[Sequence[int]] = None, *, deadline: Optional[float] = None
    ) -> Operation:
        """``pcclAllGatherV``: ``counts[r]`` elements of rank r go to element ``places[r]`` of `receive` (None: one behind the other)."""
        s, r = as_buffer(send, "send"), as_buffer(receive, "receive", True)
        _alike("all_gather_v", s, r, None)
        self._fits("all_gather_v", "receive", r, counts, places)
        self._own_part("all_gather_v", "send", s, counts)
        arguments = (s.pointer, r.pointer, _sizes(counts), _sizes(places), s.datatype.value)
        return self._launch("all_gather_v", lib.pcclAllGatherV, arguments, (s, r), deadline)

    def reduce_scatter(self, send: Any, receive: Any, op: Any = ReduceOp.SUM, *, deadline: Optional[float] = None) -> Operation:
        """``pcclReduceScatter``: `send` has a part as large as `receive` for each member, by rank; each gets its own, reduced.  Not in place."""
        s, r = as_buffer(send, "send"), as_buffer(receive, "receive", True)
        _alike("reduce_scatter", r, s, r.count * self.size)
        arguments = (s.pointer, r.pointer, r.count, r.datatype.value, _op(op))
        return self._launch("reduce_scatter", lib.pcclReduceScatter, arguments, (s, r), deadline)

    def reduce_scatter_v(
        self,
        send: Any,
        receive: Any,
        counts: Sequence[int],
        op: Any = ReduceOp.SUM,
        places: Optional[Sequence[int]] = None,
        *,
        deadline: Optional[float] = None,
    ) -> Operation:
        """``pcclReduceScatterV``: rank r gets ``counts[r]`` elements, from ``places[r]`` of `send` on (None: one behind the other)."""
        s, r = as_buffer(send, "send"), as_buffer(receive, "receive", True)
        _alike("reduce_scatter_v", r, s, None)
        self._fits("reduce_scatter_v", "send", s, counts, places)
        self._own_part("reduce_scatter_v", "receive", r, counts)
        arguments = (s.pointer, r.pointer, _sizes(counts), _sizes(places), r.datatype.value, _op(op))
        return self._launch("reduce_scatter_v", lib.pcclReduceScatterV, arguments, (s, r), deadline)

    def all_to_all(self, send: Any, receive: Any, *, deadline: Optional[float] = None) -> Operation:
        """``pcclAllToAll``: both have an equal part for each member, by rank; part r of `send` goes to rank r.  Not in place."""
        s, r = as_buffer(send, "send"), as_buffer(receive, "receive", True)
        _alike("all_to_all", s, r, s.count)
        size = self.size
        if s.count % size:
            raise _mistake("all_to_all", f"send has {s.count} elements, which {size} members cannot share evenly; use all_to_all_v")
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

        Places of None: one part behind the other.  What one sends and the other receives has to be as much.  Not in place.
        """
        s, r = as_buffer(send, "send"), as_buffer(receive, "receive", True)
        _alike("all_to_all_v", s, r, None)
        self._fits("all_to_all_v", "send", s, send_counts, send_places)
        self._fits("all_to_all_v", "receive", r, receive_counts, receive_places)
        arguments = (
            s.pointer, _sizes(send_counts), _sizes(send_places), r.pointer, _sizes(receive_counts), _sizes(receive_places), s.datatype.value,
        )
        return self._launch("all_to_all_v", lib.pcclAllToAllV, arguments, (s, r), deadline)

    def scatter(self, send: Any, receive: Any, root: int, *, deadline: Optional[float] = None) -> Operation:
        """``pcclScatter``: `send`, with a part as large as `receive` for each member, by rank, is the root's; others may pass None."""
        r, s = as_buffer(receive, "receive", True), _at_root(send, "send")
        if s is not None:
            _alike("scatter", r, s, r.count * self.size)
        arguments = (_pointer(s), r.pointer, r.count, r.datatype.value, root)
        return self._launch("scatter", lib.pcclScatter, arguments, (s, r), deadline)

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
        r, s = as_buffer(receive, "receive", True), _at_root(send, "send")
        if s is not None and counts is not None:
            _alike("scatter_v", r, s, None)
            self._fits("scatter_v", "send", s, counts, places)
        arguments = (_pointer(s), _sizes(counts), _sizes(places), r.pointer, r.count, r.datatype.value, root)
        return self._launch("scatter_v", lib.pcclScatterV, arguments, (s, r), deadline)

    def gather(self, send: Any, receive: Any, root: int, *, deadline: Optional[float] = None) -> Operation:
        """``pcclGather``: `receive`, with room for `send` of each member, by rank, is the root's; others may pass None."""
        s, r = as_buffer(send, "send"), _at_root(receive, "receive", True)
        if r is not None:
            _alike("gather", s, r, s.count * self.size)
        arguments = (s.pointer, _pointer(r), s.count, s.datatype.value, root)
        return self._launch("gather", lib.pcclGather, arguments, (s, r), deadline)

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
        s, r = as_buffer(send, "send"), _at_root(receive, "receive", True)
        if r is not None and counts is not None:
            _alike("gather_v", s, r, None)
            self._fits("gather_v", "receive", r, counts, places)
        arguments = (s.pointer, s.count, _pointer(r), _sizes(counts), _sizes(places), s.datatype.value, root)
        return self._launch("gather_v", lib.pcclGatherV, arguments, (s, r), deadline)

    def barrier(self, *, deadline: Optional[float] = None) -> Operation:
        """``pcclBarrier``: ends at all members when all have called it."""
        return self._launch("barrier", lib.pcclBarrier, (), None, deadline)

    # -- Messages --

    def send(self, send: Any, rank: int, tag: int = 0, *, deadline: Optional[float] = None) -> Operation:
        """``pcclSend``: has ended when the receiver has it; `rank` receives with the same `tag`, into as many elements of the same type."""
        s = as_buffer(send, "send")
        return self._launch("send", lib.pcclSend, (s.pointer, s.count, s.datatype.value, rank, tag), s, deadline)

    def receive(self, receive: Any, rank: int = ANY_RANK, tag: int = 0, *, deadline: Optional[float] = None) -> Operation:
        """``pcclReceive``: fills `receive` with a message of `rank` (`ANY_RANK`: whichever) and `tag`; `Operation.source` is whose it was."""
        r = as_buffer(receive, "receive", True)
        source = ffi.new("uint32_t *")
        arguments = (r.pointer, r.count, r.datatype.value, rank, tag, source)
        return self._launch("receive", lib.pcclReceive, arguments, r, deadline, source)

    # -- Operators with a factor --

    @contextlib.contextmanager
    def premul_sum(self, factor: float, datatype: DataType) -> Iterator[int]:
        """``pcclRedOpCreatePreMulSum``: an operator that sums up inputs times `factor`, for what is launched inside."""
        op = ffi.new("pcclRedOp_t *")
        number = _number(factor, datatype)
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
        params = _derived(loss_rule, formation_timeout, lanes)
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
        params = _derived(loss_rule, formation_timeout, lanes)
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
        params = _derived(loss_rule, formation_timeout, lanes)
        listed = ffi.new("uint64_t[]", list(peers))
        interruptible("create_from_list", lib.pcclCreateFromList, self._own("create_from_list"), listed, len(listed), tag, params, made)
        return World._of(made[0], name)

    # -- Launching --

    def _own(self, name: str) -> Any:
        """The handle.  InvalidUsage: destroyed, or another process's."""
        own_process(self.pid, name)
        handle = self.handle
        if handle is None:
            raise make_error(Result.INVALID_USAGE, name, "the communicator was destroyed; make a new one")
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
    ) -> Operation:
        comm = self._own(name)
        handle = ffi.new(kind._handle_type)
        if len(self._flying) >= self._sweep_at:
            self._sweep()
            self._sweep_at = min(max(_SWEEP_FROM, 2 * len(self._flying)), _SWEEP_EACH)
        operation = kind(self, name, handle, keep, source)
        if deadline is not None:
            lib.pcclSetCallDeadline(milliseconds(deadline))
        try:
            result = function(*arguments, comm, handle)
        except OverflowError:
            numbers = [argument for argument in arguments if isinstance(argument, int)]
            said = f"; the call's numbers are {', '.join(map(str, numbers))}" if numbers else ""
            raise _mistake(name, f"a rank, offset, tag or operator is below 0, or too large{said}") from None
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

    def _fits(self, name: str, what: str, buffer: Buffer, counts: Sequence[int], places: Optional[Sequence[int]]) -> None:
        """Parts have to lie within their buffer, of which C knows the beginning only."""
        size = self.size
        for which, list_ in (("counts", counts), ("places", places)):
            if list_ is not None and len(list_) != size:
                raise _mistake(name, f"there are {len(list_)} {which} for {what}, and {size} members; pass one for each, by rank")
        if places is None:
            end = sum(counts)
        else:
            end = max((place + count for place, count in zip(places, counts) if count), default=0)
        for which, list_ in (("counts", counts), ("places", places or ())):
            if min(list_, default=0) < 0:
                raise _mistake(name, f"{which} of {what} are {list(list_)}; none may be below 0")
        if end > buffer.count:
            raise _mistake(name, f"the parts of {what} end at element {end}, but it has {buffer.count}; pass a larger one")

    def _own_part(self, name: str, what: str, buffer: Buffer, counts: Sequence[int]) -> None:
        """Nor does C know how large this member's own is."""
        rank = self.rank
        if counts[rank] != buffer.count:
            raise _mistake(name, f"{what} has {buffer.count} elements, but counts says {counts[rank]} for this rank, {rank}; make them equal")


def milliseconds(seconds: Optional[float]) -> int:
    """In the form of the library, whose 0 is none: more than nothing is 1 at least, and the longest that it knows 49 days.  ValueError: no time."""
    if seconds is None:
        return 0
    if not seconds >= 0:
        raise ValueError(f"pccl: {seconds} s is no length of time; pass a number that is not negative, or None")
    return max(1, round(min(seconds * 1000, _LONGEST_MS)))


def _mistake(name: str, text: str) -> Exception:
    return make_error(Result.INVALID_ARGUMENT, name, text)


def _alike(name: str, part: Buffer, whole: Buffer, count: Optional[int]) -> None:
    """Both buffers of one type, and the second of `count` elements."""
    if part.datatype is not whole.datatype:
        raise _mistake(name, f"one buffer is of {part.datatype.name}, the other of {whole.datatype.name}; convert one")
    if count is not None and whole.count != count:
        raise _mistake(name, f"one buffer has {part.count} elements, the other {whole.count}, where {count} are needed")


def _at_root(memory: Any, name: str, writable: bool = False) -> Optional[Buffer]:
    return None if memory is None else as_buffer(memory, name, writable)


def _pointer(buffer: Optional[Buffer]) -> Any:
    return ffi.NULL if buffer is None else buffer.pointer


def _sizes(numbers: Optional[Sequence[int]]) -> Any:
    return ffi.NULL if numbers is None else ffi.new("size_t[]", list(numbers))


def _op(op: Union[ReduceOp, int]) -> int:
    return op.value if isinstance(op, ReduceOp) else op


def _number(value: float, datatype: DataType) -> Any:
    """A number of that type in memory."""
    if datatype is DataType.BFLOAT16:
        bits = struct.unpack("<I", struct.pack("<f", value))[0]
        return ffi.new("char[]", struct.pack("<H", (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 & 0xFFFF))
    formats = {DataType.FLOAT16: "=e", DataType.FLOAT: "=f", DataType.DOUBLE: "=d"}
    if datatype not in formats:
        raise _mistake("premul_sum", f"a factor of type {datatype.name} is none of FLOAT16, BFLOAT16, FLOAT, DOUBLE")
    return ffi.new("char[]", struct.pack(formats[datatype], value))


def _derived(loss_rule: LossRule, formation_timeout: Optional[float], lanes: int) -> Any:
    params = ffi.new("pcclDeriveParams_t *")
    params.size = ffi.sizeof("pcclDeriveParams_t")
    params.loss_rule = loss_rule
    params.formation_timeout_ms = milliseconds(formation_timeout)
    params.p2p_connection_pool_size = lanes
    return params
