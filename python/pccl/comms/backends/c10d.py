"""Thin adapters over the process groups that torch has: `gloo`, `mpi`, `nccl`, `rccl`.

The operations of a group behave as in torch.  An operation that the group lacks is composed of operations that it has.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import datetime
import os
import time
from typing import Any, Callable, Optional, Sequence

from pccl.comms.backend import Mask
from pccl.comms.backends import split_lists
from pccl.comms.backends.built_in import BuiltIn
from pccl.comms.backends.native_work import CombinedWork
from pccl.comms.bootstrap import listening_host
from pccl.comms.environment import rank_and_size
from pccl.comms.options import CommOptions
from pccl.comms.reduce_op import RedOpType, ReduceOp
from pccl.comms.store import opened
from pccl.types import imported


class GroupWork:
    """A work of torch's, and what is to be done when it has ended."""

    def __init__(self, work: Any, after: Optional[Callable[[], None]] = None) -> None:
        self._work = work
        self._after = after
        self._over = False

    def is_completed(self) -> bool:
        """As torch says: of messages of gloo not before they were waited for."""
        return self._over or bool(self._work.is_completed())

    def wait(self) -> None:
        """Waits; raises torch's error."""
        if not self._over:
            self._work.wait()
            self._over = True
            if self._after is not None:
                self._after()


class GroupBackend(BuiltIn):
    """Over one process group of torch; a class for each kind."""

    mask = Mask()
    kind = ""

    def __init__(self) -> None:
        super().__init__()
        self.options = CommOptions()
        self._group: Any = None
        self._store: Any = None
        self._splits = 0

    @classmethod
    def is_built(cls) -> bool:
        """Whether there is a torch with that group."""
        try:
            dist = imported("torch").distributed
        except RuntimeError:
            return False
        return bool(dist.is_available() and cls._is_available(dist))

    @staticmethod
    def _is_available(dist: Any) -> bool:
        raise NotImplementedError

    # -- Life --

    def _make(self, store: Any, rank: int, size: int, seconds: float) -> Any:
        """The group of that kind.  RuntimeError: this torch has none."""
        raise NotImplementedError

    def init(self, device: Any, name: str, options: CommOptions) -> None:
        dist = imported("torch").distributed
        rank, size = rank_and_size()
        store = options.store
        if not isinstance(store, dist.Store):
            store = _own_store(name, rank, size, options)
        begun = store.add(f"pccl/comms/{name}/begun/{rank}", 1)  # ranks have made as many of that name and store
        self._enter(dist.PrefixStore(f"pccl/comms/{name}/{begun}", store), name, options, rank, list(range(size)))

    def _enter(self, store: Any, name: str, options: CommOptions, rank: int, ranks: list[int]) -> None:
        self.name, self.options, self._store = name, options, store
        self._rank, self._size, self._ranks = rank, len(ranks), ranks
        self._group = self._make(store, rank, len(ranks), options.seconds)

    def finalize(self) -> None:
        self._group = None

    def drain(self, seconds: float) -> None:
        """Waits for the others: who goes first takes the connections along."""
        self.barrier(False, timeout=seconds).wait()

    def get_backend_name(self) -> str:
        return self.kind

    def get_backend_version(self) -> str:
        return f"torch {imported('torch').__version__}"

    def split(self, ranks: Sequence[int], name: str, options: CommOptions) -> Optional["GroupBackend"]:
        torch = imported("torch")
        said, mine = split_lists.said(ranks, self._rank, self._size, options.hints)
        own = torch.frombuffer(bytearray(said), dtype=torch.uint8).to(self.device)
        heard = [torch.empty_like(own) for _ in range(self._size)]
        self.all_gather(heard, own, False, timeout=options.seconds).wait()
        split_lists.check(b"".join(bytes(one.cpu().tolist()) for one in heard), ranks, self._rank)
        self._splits += 1
        if not mine:
            return None
        child = type(self)()
        store = torch.distributed.PrefixStore(f"split/{self._splits}/{mine}", self._store)
        child._enter(store, name, options, mine.index(self._rank), [self._ranks[rank] for rank in mine])
        return child

    # -- Operations --

    def send(self, tensor: Any, dst: int, async_op: bool) -> GroupWork:
        return GroupWork(self._open().send([tensor], dst, 0))

    def recv(self, tensor: Any, src: int, async_op: bool) -> GroupWork:
        return GroupWork(self._open().recv([tensor], src, 0))

    def broadcast(self, tensor: Any, root: int, async_op: bool, *, timeout: float) -> GroupWork:
        return GroupWork(self._open().broadcast([tensor], self._options("BroadcastOptions", timeout, rootRank=root)))

    def all_reduce(self, tensor: Any, op: ReduceOp, async_op: bool, *, timeout: float) -> GroupWork:
        source, after = self._prepared(tensor, op, tensor)
        options = self._options("AllreduceOptions", timeout, reduceOp=_operator(op))
        return GroupWork(self._open().allreduce([source], options), after)

    def reduce(self, tensor: Any, root: int, op: ReduceOp, async_op: bool, *, timeout: float) -> GroupWork:
        source, after = self._prepared(tensor, op, tensor if root == self._rank else None)
        options = self._options("ReduceOptions", timeout, reduceOp=_operator(op), rootRank=root)
        return GroupWork(self._open().reduce([source], options), after)

    def all_gather(self, tensor_list: Sequence[Any], tensor: Any, async_op: bool, *, timeout: float) -> GroupWork:
        return GroupWork(self._open().allgather([list(tensor_list)], [tensor], self._options("AllgatherOptions", timeout)))

    def all_gather_v(self, tensor_list: Sequence[Any], tensor: Any, async_op: bool, *, timeout: float) -> CombinedWork:
        tensor_list[self._rank].copy_(tensor.view_as(tensor_list[self._rank]))
        return CombinedWork([self.broadcast(piece, rank, True, timeout=timeout) for rank, piece in enumerate(tensor_list) if piece.numel()])

    def all_gather_single(self, output: Any, input: Any, async_op: bool, *, timeout: float) -> GroupWork:
        pieces = list(output.view(-1).chunk(self._size)) if output.numel() else [output.view(-1)] * self._size
        return self.all_gather(pieces, input.view(-1), async_op, timeout=timeout)

    def reduce_scatter(self, output: Any, input_list: Sequence[Any], op: ReduceOp, async_op: bool, *, timeout: float) -> CombinedWork:
        return self.reduce_scatter_v(output, input_list, op, async_op, timeout=timeout)

    def reduce_scatter_v(self, output: Any, input_list: Sequence[Any], op: ReduceOp, async_op: bool, *, timeout: float) -> CombinedWork:
        works: list[GroupWork] = []
        for rank, piece in enumerate(input_list):
            source, after = self._prepared(piece, op, output if rank == self._rank else None)
            options = self._options("ReduceOptions", timeout, reduceOp=_operator(op), rootRank=rank)
            works.append(GroupWork(self._open().reduce([source], options), after))
        return CombinedWork(works)

    def reduce_scatter_single(self, output: Any, input: Any, op: ReduceOp, async_op: bool, *, timeout: float) -> CombinedWork:
        return self.reduce_scatter_v(output, _chunks(input, self._size), op, async_op, timeout=timeout)

    def all_to_all_single(self, output: Any, input: Any, async_op: bool, *, timeout: float) -> GroupWork:
        flat_out, flat_in = output.view(-1), input.view(-1)
        return GroupWork(self._open().alltoall_base(flat_out, flat_in, [], [], self._options("AllToAllOptions", timeout)))

    def all_to_all_v_single(
        self, output: Any, input: Any, output_split_sizes: Sequence[int], input_split_sizes: Sequence[int], async_op: bool, *,
        timeout: float,
    ) -> GroupWork:
        given, taken = input[: sum(input_split_sizes)], output[: sum(output_split_sizes)]
        options = self._options("AllToAllOptions", timeout)
        return GroupWork(self._open().alltoall_base(taken, given, list(output_split_sizes), list(input_split_sizes), options))

    def all_to_all(
        self, output_tensor_list: Sequence[Any], input_tensor_list: Sequence[Any], async_op: bool, *, timeout: float
    ) -> GroupWork:
        torch = imported("torch")
        given = torch.cat([piece.view(-1) for piece in input_tensor_list])
        taken = given.new_empty(sum(piece.numel() for piece in output_tensor_list))

        def after() -> None:
            for piece, part in zip(output_tensor_list, taken.split([piece.numel() for piece in output_tensor_list])):
                piece.copy_(part.view_as(piece))

        sizes = [piece.numel() for piece in output_tensor_list], [piece.numel() for piece in input_tensor_list]
        return GroupWork(self._open().alltoall_base(taken, given, *sizes, self._options("AllToAllOptions", timeout)), after)

    def barrier(self, async_op: bool, *, timeout: float) -> GroupWork:
        return GroupWork(self._open().barrier(self._options("BarrierOptions", timeout)))

    def scatter(self, output_tensor: Any, input_tensor_list: Sequence[Any], root: int, async_op: bool, *, timeout: float) -> GroupWork:
        given = [list(input_tensor_list)] if root == self._rank else []
        return GroupWork(self._open().scatter([output_tensor], given, self._options("ScatterOptions", timeout, rootRank=root)))

    def gather(self, output_tensor_list: Sequence[Any], input_tensor: Any, root: int, async_op: bool, *, timeout: float) -> GroupWork:
        taken = [list(output_tensor_list)] if root == self._rank else []
        return GroupWork(self._open().gather(taken, [input_tensor], self._options("GatherOptions", timeout, rootRank=root)))

    def gather_single(self, output: Any, input: Any, root: int, async_op: bool, *, timeout: float) -> GroupWork:
        return self.gather(_chunks(output, self._size) if root == self._rank else [], input.view(-1), root, async_op, timeout=timeout)

    def batch_op_issue(self, ops: Sequence[Any], async_op: bool) -> CombinedWork:
        to_self = [op for op in ops if op.peer == self._rank and op.type == "SEND"]
        from_self = [op for op in ops if op.peer == self._rank and op.type == "RECV"]
        if [op.tensor.numel() for op in to_self] != [op.tensor.numel() for op in from_self]:
            raise RuntimeError("a batch's sends to this rank itself and its receives from it must have same size, one for one")
        for given, taken in zip(to_self, from_self):
            taken.tensor.copy_(given.tensor.view_as(taken.tensor))
        works = [self.recv(op.tensor, op.peer, True) for op in ops if op.type == "RECV" and op.peer != self._rank]
        works += [self.send(op.tensor, op.peer, True) for op in ops if op.type == "SEND" and op.peer != self._rank]
        return CombinedWork(works)

    # -- What it takes --

    def _open(self) -> Any:
        if self._group is None:
            raise RuntimeError(f"communicator {self.name} is not initialized")
        return self._group

    def _options(self, kind: str, seconds: float, **fields: Any) -> Any:  # noqa: D102
        options = getattr(imported("torch").distributed.distributed_c10d, kind)()
        options.timeout = datetime.timedelta(seconds=seconds)
        for name, value in fields.items():
            setattr(options, name, value)
        return options

    def _prepared(self, tensor: Any, op: ReduceOp, target: Any) -> tuple[Any, Optional[Callable[[], None]]]:
        """A tensor that may be written, with factor; and what puts the result into `target`, if it is wanted here."""
        source = tensor.clone() if op.type is not RedOpType.PREMUL_SUM else tensor * op.factor

        def after() -> None:
            if target is None:
                return
            result = source
            if op.type is RedOpType.AVG:
                result = source.div(self._size, rounding_mode=None if source.is_floating_point() else "trunc")
            target.copy_(result.view_as(target))

        return source, after


class GlooBackend(GroupBackend):
    """torch's ProcessGroupGloo."""

    kind = "gloo"

    @staticmethod
    def _is_available(dist: Any) -> bool:
        return bool(dist.is_gloo_available())

    def _make(self, store: Any, rank: int, size: int, seconds: float) -> Any:
        dist = imported("torch").distributed
        if not dist.is_gloo_available():
            raise RuntimeError("back-end gloo: this torch was built without gloo; install one that has it, or use the back-end pccl")
        return dist.ProcessGroupGloo(store, rank, size, timeout=datetime.timedelta(seconds=seconds))


class MpiBackend(GroupBackend):
    """torch's ProcessGroupMPI."""

    kind = "mpi"

    @staticmethod
    def _is_available(dist: Any) -> bool:
        return bool(dist.is_mpi_available())

    def _make(self, store: Any, rank: int, size: int, seconds: float) -> Any:
        dist = imported("torch").distributed
        if not dist.is_mpi_available():
            raise RuntimeError("back-end mpi: this torch was built without MPI; build it from source with MPI, or use the back-end pccl")
        group = dist.ProcessGroupMPI.create(self._ranks)
        if group is None or group.rank() != rank:
            raise RuntimeError(f"back-end mpi: MPI gives this process another rank than {rank}; set TORCHCOMM_RANK as mpirun does")
        return group


class NcclBackend(GroupBackend):
    """torch's ProcessGroupNCCL, on CUDA."""

    kind = "nccl"
    device = "cuda"

    @classmethod
    def is_built(cls) -> bool:
        """Whether there is a torch with that group, and a GPU."""
        try:
            torch = imported("torch")
        except RuntimeError:
            return False
        hip = torch.version.hip is not None
        return bool(torch.distributed.is_nccl_available() and hip == (cls.kind == "rccl") and torch.cuda.is_available())

    def _make(self, store: Any, rank: int, size: int, seconds: float) -> Any:
        torch = imported("torch")
        hip = torch.version.hip is not None
        if not torch.distributed.is_nccl_available() or hip != (self.kind == "rccl"):
            needed = "ROCm and RCCL" if self.kind == "rccl" else "CUDA and NCCL"
            raise RuntimeError(f"back-end {self.kind}: this torch was built without {needed}; install one that has them")
        if not torch.cuda.is_available():
            raise RuntimeError(f"back-end {self.kind}: there is no GPU here; use the back-end pccl or gloo for tensors in host memory")
        options = torch.distributed.ProcessGroupNCCL.Options()
        options._timeout = datetime.timedelta(seconds=seconds)
        return torch.distributed.ProcessGroupNCCL(store, rank, size, options)

    def batch_op_issue(self, ops: Sequence[Any], async_op: bool) -> CombinedWork:
        device = imported("torch").device("cuda")
        self._open()._start_coalescing(device)
        for op in ops:
            (self._open().send if op.type == "SEND" else self._open().recv)([op.tensor], op.peer, 0)
        work = self._open()._end_coalescing(device)
        return CombinedWork([] if work is None else [GroupWork(work)])

    def is_abort_supported(self) -> bool:
        return True

    def abort(self) -> None:
        group = self._group
        if group is not None:
            group.abort()


class RcclBackend(NcclBackend):
    """The same on ROCm."""

    kind = "rccl"


def _operator(op: ReduceOp) -> Any:
    """torch's; an average is a sum here, and divided at the end."""
    name = {RedOpType.AVG: "SUM", RedOpType.PREMUL_SUM: "SUM"}.get(op.type, op.type.name)
    return getattr(imported("torch").distributed.ReduceOp, name)


def _chunks(tensor: Any, size: int) -> list[Any]:
    """Equal parts, empty ones too."""
    flat = tensor.view(-1)
    return list(flat.split(flat.numel() // size)) if flat.numel() else [flat] * size


def _own_store(name: str, rank: int, size: int, options: CommOptions) -> Any:
    """A TCP store at a port of its own, which rank 0 serves for life, and tells the others of by the store that is there for that."""
    dist = imported("torch").distributed
    until = time.monotonic() + options.seconds
    limit = datetime.timedelta(seconds=options.seconds)
    if size == 1:
        return dist.HashStore()
    if isinstance(options.store, (str, os.PathLike)) and ":" not in os.fspath(options.store):
        return dist.FileStore(os.fspath(options.store), size)
    if options.store is not None and not isinstance(options.store, str):
        raise TypeError(f"store is a {type(options.store).__name__}; torch's groups take a c10d store, a path or 'host:port'")
    with opened(options.store, rank, until) as place:
        key = f"pccl/comms/{name}/store"
        if rank == 0:
            host = listening_host(options.hints)
            store = dist.TCPStore(host, 0, is_master=True, wait_for_workers=False, timeout=limit)
            place.set(key, f"{host} {store.port}")
            for other in range(1, size):  # until all have come: the place goes then
                store.wait([f"here/{other}"], limit)
            return store
        host, port = place.get(key, options.seconds).split()
        store = dist.TCPStore(host, int(port), is_master=False, timeout=limit)
        store.set(f"here/{rank}", "1")
        return store
