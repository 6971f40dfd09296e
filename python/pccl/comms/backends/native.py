"""The native back-end `pccl`: a communicator is a world of a given size, its operations are those of `pccl.engine`."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import threading
from typing import Any, Callable, Optional, Sequence

from pccl.buffers import Buffer
from pccl.comms import bootstrap, membership
from pccl.comms.backend import Mask
from pccl.comms.backends import split_lists
from pccl.comms.backends.built_in import BuiltIn
from pccl.comms.backends.native_window import NativeWindow
from pccl.comms.backends.native_work import CombinedWork, NativeWork
from pccl.comms.batch import P2POp, in_rounds
from pccl.comms.environment import rank_and_size
from pccl.comms.options import CommOptions
from pccl.comms.reduce_op import RedOpType, ReduceOp
from pccl.comms.tensors import (
    Parts, as_bytes, batch_apart, buffer_of, copy, crosses, extent_of, input_parts, kept, output_parts, packed_copy, rows_of,
    split_up,
)
from pccl.engine import NO_COLOR, Operation, World
from pccl.engine.backlog import Backlog, Pending
from pccl.types import DataType
from pccl.types import ReduceOp as EngineOp

_OPERATORS = {
    RedOpType.SUM: EngineOp.SUM, RedOpType.PRODUCT: EngineOp.PROD, RedOpType.MIN: EngineOp.MIN, RedOpType.MAX: EngineOp.MAX,
    RedOpType.BAND: EngineOp.BIT_AND, RedOpType.BOR: EngineOp.BIT_OR, RedOpType.BXOR: EngineOp.BIT_XOR, RedOpType.AVG: EngineOp.AVG,
}


#: Sends, and receives, of a communicator that are under way at once; the engine has a limit for all.
MOST = 200


class NativeBackend(BuiltIn):
    """One world; lists of tensors are used where they lie, and what an operation leaves after an error is as it was before it."""

    mask = Mask(reconfigure=True, empty_batch=True, finite_waits=True)

    def __init__(self) -> None:
        super().__init__()
        self.world: Optional[World] = None
        self.options = CommOptions()
        self._sends, self._receives = Backlog(MOST), Backlog(MOST)
        self._kept = threading.Lock()
        self._persistent: dict[int, Buffer] = {}
        self._membership: Optional[membership.Membership] = None

    # -- Life --

    def init(self, device: Any, name: str, options: CommOptions) -> None:
        if self._membership is not None:
            raise RuntimeError(f"communicator {self.name} is already initialized; make another by new_comm")
        self.name, self.options = name, options
        self._membership = membership.Membership(options.hints)
        if options.enable_reconfigure:
            return
        rank, size = rank_and_size()
        world, record = bootstrap.create_world(name, rank, size, options.store, options.seconds, options.hints)
        self._membership.where = record
        self._enter(world, rank, size, list(range(size)))

    def _enter(self, world: World, rank: int, size: int, ranks: list[int]) -> None:
        self.world, self._rank, self._size, self._ranks = world, rank, size, ranks
        self._sends, self._receives = Backlog(MOST), Backlog(MOST)  # what waits for room in an old world fails there

    def finalize(self) -> None:
        world, self.world = self.world, None
        if world is not None:
            world.destroy()

    def drain(self, seconds: float) -> None:
        """Waits until all members are here, so that who is done first does not end the world of those who are not."""
        if self.world is not None:
            self.world.barrier(deadline=seconds).wait()

    def get_backend_name(self) -> str:
        return "pccl"

    def get_backend_version(self) -> str:
        return membership.library_version()

    def get_hosts(self) -> list[str]:
        hosts = {member.rank: member.address.rpartition(":")[0] for member in self._open().members()}
        return [hosts[rank] for rank in range(self._size)]

    def is_abort_supported(self) -> bool:
        return True

    def abort(self) -> None:
        world = self.world
        if world is not None:
            world.revoke()

    def get_init_handle(self) -> str:
        return self._member().handle()

    def reconfigure(self, uuid: int, init_handles: Any, timeout: float, hints: Any) -> None:
        world, rank, size = self._member().formed(uuid, init_handles, timeout)
        old = self.world
        self._enter(world, rank, size, list(range(size)))
        self._persistent.clear()
        if old is not None:
            old.destroy()

    def _member(self) -> membership.Membership:
        assert self._membership is not None
        return self._membership

    def split(self, ranks: Sequence[int], name: str, options: CommOptions) -> Optional["NativeBackend"]:
        """Two steps: the lists are compared by an all-gather of 32 bytes a rank, then all groups begin together, or none does."""
        said, mine = split_lists.said(ranks, self._rank, self._size, options.hints)
        heard = bytearray(len(said) * self._size)
        self._open().all_gather(said, heard, deadline=options.seconds).wait()
        split_lists.check(bytes(heard), ranks, self._rank)
        color, key = (min(mine), mine.index(self._rank)) if mine else (NO_COLOR, 0)
        world = self._open().split(color, key, name=name, formation_timeout=options.seconds)
        if world is None:
            return None
        child = NativeBackend()
        child.name, child.options = name, options
        child._membership = membership.Membership(options.hints)
        child._membership.where = self._member().where
        child._enter(world, key, len(mine), [self._ranks[rank] for rank in mine])
        return child

    # -- Operations --

    def send(self, tensor: Any, dst: int, async_op: bool, *, timeout: float, tag: int = 0) -> NativeWork:
        world, source = self._open(), buffer_of(tensor, "tensor")
        return self._work(self._sends.start(lambda: world.send(source, dst, tag, deadline=timeout)), async_op)

    def recv(self, tensor: Any, src: int, async_op: bool, *, timeout: float, tag: int = 0) -> NativeWork:
        world, target = self._open(), buffer_of(tensor, "tensor", True)
        return self._work(self._receives.start(lambda: world.receive(target, src, tag, deadline=timeout)), async_op)

    def broadcast(self, tensor: Any, root: int, async_op: bool, *, timeout: float) -> NativeWork:
        target = buffer_of(tensor, "tensor", True)
        if root == self._rank:
            return self._work(self._open().broadcast(target, target, root, deadline=timeout), async_op)
        before = kept(target)  # it is this rank's tensor too, and after an error as it was
        operation = self._open().broadcast(None, target, root, deadline=timeout)
        return NativeWork(operation, None, lambda: copy(target, before), async_op)

    def all_reduce(self, tensor: Any, op: ReduceOp, async_op: bool, *, timeout: float) -> NativeWork:
        target = buffer_of(tensor, "tensor", True)
        return self._reduced(op, target, async_op, lambda t, o: self._open().all_reduce(t[0], t[0], o, deadline=timeout))

    def reduce(self, tensor: Any, root: int, op: ReduceOp, async_op: bool, *, timeout: float) -> NativeWork:
        target = buffer_of(tensor, "tensor", True)
        at_root = root == self._rank

        def launch(t: tuple[Buffer, Buffer], o: Any) -> Operation:
            return self._open().reduce(t[0], t[0] if at_root else None, root, o, deadline=timeout)

        return self._reduced(op, target, async_op, launch)

    def all_gather(self, tensor_list: Sequence[Any], tensor: Any, async_op: bool, *, timeout: float) -> NativeWork:
        return self.all_gather_v(tensor_list, tensor, async_op, timeout=timeout)

    def all_gather_v(self, tensor_list: Sequence[Any], tensor: Any, async_op: bool, *, timeout: float) -> NativeWork:
        source = buffer_of(tensor, "tensor")
        outputs = [buffer_of(output, "tensor_list", True) for output in tensor_list]
        at = source.address if outputs[self._rank].address == source.address else -1
        parts, after = output_parts(outputs, extent_of(source), at)
        return self._work(self._open().all_gather_v(source, parts.buffer, parts.counts, parts.places, deadline=timeout), async_op, after)

    def all_gather_single(self, output: Any, input: Any, async_op: bool, *, timeout: float) -> NativeWork:
        source, target = buffer_of(input, "input"), buffer_of(output, "output", True)
        return self._work(self._open().all_gather(source, target, deadline=timeout), async_op)

    def reduce_scatter(self, output: Any, input_list: Sequence[Any], op: ReduceOp, async_op: bool, *, timeout: float) -> NativeWork:
        return self.reduce_scatter_v(output, input_list, op, async_op, timeout=timeout)

    def reduce_scatter_v(self, output: Any, input_list: Sequence[Any], op: ReduceOp, async_op: bool, *, timeout: float) -> NativeWork:
        target = buffer_of(output, "output", True)
        parts = input_parts([buffer_of(piece, "input_list") for piece in input_list])
        if crosses(parts.extent, extent_of(target)):
            parts = packed_copy(parts)

        def launch(t: tuple[Buffer, Buffer], o: Any) -> Operation:
            return self._open().reduce_scatter_v(t[1], t[0], parts.counts, o, parts.places, deadline=timeout)

        return self._reduced(op, target, async_op, launch, parts.buffer)

    def reduce_scatter_single(self, output: Any, input: Any, op: ReduceOp, async_op: bool, *, timeout: float) -> NativeWork:
        target, source = buffer_of(output, "output", True), buffer_of(input, "input")
        if crosses(extent_of(source), extent_of(target)):
            source = kept(source)
        return self._reduced(
            op, target, async_op, lambda t, o: self._open().reduce_scatter(t[1], t[0], o, deadline=timeout), source
        )

    def all_to_all_single(self, output: Any, input: Any, async_op: bool, *, timeout: float) -> NativeWork:
        source, target = buffer_of(input, "input"), buffer_of(output, "output", True)
        if crosses(extent_of(source), extent_of(target)):
            source = kept(source)
        return self._work(self._open().all_to_all(source, target, deadline=timeout), async_op)

    def all_to_all_v_single(
        self, output: Any, input: Any, output_split_sizes: Sequence[int], input_split_sizes: Sequence[int], async_op: bool, *,
        timeout: float,
    ) -> NativeWork:
        source, target = buffer_of(input, "input"), buffer_of(output, "output", True)
        row = max(rows_of(input, source)[1], rows_of(output, target)[1])
        if crosses(extent_of(source), extent_of(target)):
            source = kept(source)
        sent = split_up(source, [rows * row for rows in input_split_sizes])
        received = split_up(target, [rows * row for rows in output_split_sizes])
        return self._exchange(sent, received, async_op, timeout, None)

    def all_to_all(
        self, output_tensor_list: Sequence[Any], input_tensor_list: Sequence[Any], async_op: bool, *, timeout: float
    ) -> NativeWork:
        sent = input_parts([buffer_of(piece, "input_tensor_list") for piece in input_tensor_list])
        outputs = [buffer_of(piece, "output_tensor_list", True) for piece in output_tensor_list]
        received, after = output_parts(outputs, sent.extent)
        if after is not None:
            sent = packed_copy(sent)
        return self._exchange(sent, received, async_op, timeout, after)

    def _exchange(self, sent: Parts, received: Parts, async_op: bool, timeout: float, after: Optional[Callable[[], None]]) -> NativeWork:
        operation = self._open().all_to_all_v(
            sent.buffer, sent.counts, received.buffer, received.counts, sent.places, received.places, deadline=timeout
        )
        return self._work(operation, async_op, after)

    def barrier(self, async_op: bool, *, timeout: float) -> NativeWork:
        return self._work(self._open().barrier(deadline=timeout), async_op)

    def scatter(self, output_tensor: Any, input_tensor_list: Sequence[Any], root: int, async_op: bool, *, timeout: float) -> NativeWork:
        target = buffer_of(output_tensor, "output_tensor", True)
        if root != self._rank:
            return self._work(self._open().scatter_v(None, None, target, root, deadline=timeout), async_op)
        pieces = [buffer_of(piece, "input_tensor_list") for piece in input_tensor_list]
        parts = input_parts(pieces)
        if pieces[root].address != target.address and crosses(parts.extent, extent_of(target)):
            parts = packed_copy(parts)
        return self._work(self._open().scatter_v(parts.buffer, parts.counts, target, root, parts.places, deadline=timeout), async_op)

    def gather(self, output_tensor_list: Sequence[Any], input_tensor: Any, root: int, async_op: bool, *, timeout: float) -> NativeWork:
        source = buffer_of(input_tensor, "input_tensor")
        if root != self._rank:
            return self._work(self._open().gather_v(source, None, None, root, deadline=timeout), async_op)
        outputs = [buffer_of(output, "output_tensor_list", True) for output in output_tensor_list]
        at = source.address if outputs[root].address == source.address else -1
        parts, after = output_parts(outputs, extent_of(source), at)
        operation = self._open().gather_v(source, parts.buffer, parts.counts, root, parts.places, deadline=timeout)
        return self._work(operation, async_op, after)

    def gather_single(self, output: Any, input: Any, root: int, async_op: bool, *, timeout: float) -> NativeWork:
        source = buffer_of(input, "input")
        target = buffer_of(output, "output", True) if root == self._rank else None
        return self._work(self._open().gather(source, target, root, deadline=timeout), async_op)

    def batch_op_issue(self, ops: Sequence[Any], async_op: bool, *, timeout: float) -> CombinedWork:
        pieces = [buffer_of(op.tensor, "tensor", op.type == "RECV") for op in ops]
        pieces, after = batch_apart(pieces, [op.type == "RECV" for op in ops])
        to_self = [piece for op, piece in zip(ops, pieces) if op.peer == self._rank and op.type == "SEND"]
        from_self = [piece for op, piece in zip(ops, pieces) if op.peer == self._rank and op.type == "RECV"]
        if [(piece.datatype, piece.count) for piece in to_self] != [(piece.datatype, piece.count) for piece in from_self]:
            raise RuntimeError("a batch's sends to this rank itself and its receives from it must have same size and type, one for one")
        for target, source in zip(from_self, to_self):
            copy(target, source)
        messages = in_rounds([P2POp(op.type, piece, op.peer) for op, piece in zip(ops, pieces)], self._rank)
        works = [(self.send if op.type == "SEND" else self.recv)(op.tensor, op.peer, True, timeout=timeout) for op in messages]
        return CombinedWork(works, after)

    # -- Persistent all-gather, windows --

    def all_gather_p_init(self, output: Any) -> int:
        target = buffer_of(output, "output", True)
        if target.count % self._size:
            raise RuntimeError(f"output has {target.count} elements, which must be divisible by comm_size {self._size}")
        with self._kept:
            handle = max(self._persistent, default=0) + 1
            self._persistent[handle] = target
        return handle

    def all_gather_p_exec(self, handle: int, input: Any, async_op: bool, *, timeout: float) -> NativeWork:
        return self._work(self._open().all_gather(buffer_of(input, "input"), self._persisting(handle), deadline=timeout), async_op)

    def all_gather_p_free(self, handle: int) -> None:
        self._persisting(handle)
        del self._persistent[handle]

    def _persisting(self, handle: int) -> Buffer:
        try:
            return self._persistent[handle]
        except (KeyError, TypeError):
            raise RuntimeError(f"handle {handle!r} is none of all_gather_p_init, or was freed; make one") from None

    def new_window(self) -> NativeWindow:
        return NativeWindow(self._open(), self.options.seconds)

    def tensor_register(self, tensor: Any) -> None:
        """Checks that the memory is the host's, which needs no registration."""
        buffer_of(tensor, "tensor")

    def tensor_deregister(self, tensor: Any) -> None:
        buffer_of(tensor, "tensor")

    # -- Launching --

    def _open(self) -> World:
        if self.world is None:
            raise RuntimeError(f"communicator {self.name} is not initialized")
        return self.world

    def _work(self, operation: Pending, async_op: bool, after: Optional[Callable[[], None]] = None) -> NativeWork:
        return NativeWork(operation, after, None, async_op)

    def _reduced(self, op: ReduceOp, target: Buffer, async_op: bool, launch: Any, source: Optional[Buffer] = None) -> NativeWork:
        """Launches a reduction of buffers (target, source) with the operator as the engine has it."""
        pair = (target, target if source is None else source)
        if op.type is RedOpType.PREMUL_SUM:
            assert op.factor is not None
            with self._open().premul_sum(op.factor, target.datatype) as made:
                return self._work(launch(pair, made), async_op)
        if target.datatype is DataType.BOOL and op.type is RedOpType.PRODUCT:
            return self._work(launch(pair, EngineOp.BIT_AND), async_op)
        if target.datatype is DataType.BOOL and op.type is RedOpType.BXOR:
            pair = (as_bytes(pair[0]), as_bytes(pair[1]))
        return self._work(launch(pair, _OPERATORS[op.type]), async_op)
