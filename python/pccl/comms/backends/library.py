"""Back-ends that are C libraries: opened by their path, driven through the table of `pccl_backend.h`."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import ctypes
from typing import Any, Callable, Optional, Sequence

from pccl.buffers import Buffer
from pccl.comms import bootstrap, store
from pccl.comms.backend import Mask, TorchCommBackend
from pccl.comms.backends import split_lists
from pccl.comms.backends.built_in import BuiltIn
from pccl.comms.backends.library_table import Call, Params, Part, Result, StoreTable, Table, table_of
from pccl.comms.backends.native_work import CombinedWork
from pccl.comms.environment import rank_and_size
from pccl.comms.options import CommOptions
from pccl.comms.reduce_op import RedOpType, ReduceOp
from pccl.comms.tensors import as_bytes, buffer_of, copy, part_of, rows_of
from pccl.types import DataType
from pccl.types import ReduceOp as EngineOp

_SEND, _RECEIVE, _BROADCAST, _ALL_REDUCE, _REDUCE, _ALL_GATHER, _REDUCE_SCATTER, _ALL_TO_ALL, _BARRIER, _SCATTER, _GATHER = range(11)
_OPERATORS = {
    RedOpType.SUM: EngineOp.SUM, RedOpType.PRODUCT: EngineOp.PROD, RedOpType.MIN: EngineOp.MIN, RedOpType.MAX: EngineOp.MAX,
    RedOpType.BAND: EngineOp.BIT_AND, RedOpType.BOR: EngineOp.BIT_OR, RedOpType.BXOR: EngineOp.BIT_XOR, RedOpType.AVG: EngineOp.AVG,
    RedOpType.PREMUL_SUM: EngineOp.SUM,
}


def library_backend(name: str, path: str) -> Callable[[], TorchCommBackend]:
    """The function that makes back-ends of the library.  RuntimeError: the library cannot be used, and why."""
    library, table = table_of(name, path)
    return lambda: LibraryBackend(name, library, table)


class LibraryWork:
    """A work of the library's, released once."""

    def __init__(self, backend: "LibraryBackend", name: str, handle: Any, keep: Any) -> None:
        self._backend, self._name, self._handle, self._keep = backend, name, handle, keep
        self._error: Optional[Exception] = None

    def is_completed(self) -> bool:
        """Whether it has ended, well or not."""
        if self._handle is None:
            return True
        done = ctypes.c_bool()
        self._backend.called(self._name, self._backend.table.test(self._handle, ctypes.byref(done)))
        return done.value

    def wait(self) -> None:
        """Waits; raises its error, each time."""
        if self._handle is not None:
            try:
                self._backend.called(self._name, self._backend.table.wait(self._handle))
            except (RuntimeError, TimeoutError) as error:
                self._error = error
            self._release()
        if self._error is not None:
            raise self._error

    def _release(self) -> None:
        handle, self._handle = self._handle, None
        if handle is not None:
            self._backend.table.release(handle)
        self._keep = None

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None and self._backend.comm is not None:
            self._release()


class LibraryBackend(BuiltIn):
    """One communicator of a library."""

    mask = Mask()

    def __init__(self, name: str, library: Any, table: Table) -> None:
        super().__init__()
        self._backend_name, self._library, self.table = name, library, table
        self.comm: Any = None

    # -- Life --

    def init(self, device: Any, name: str, options: CommOptions) -> None:
        rank, size = rank_and_size()
        number = bootstrap.next_number(f"library/{self._backend_name}/{name}")
        with store.opened_for(options.store, rank, size, options.seconds) as place:
            served = StoreTable.of(place, f"pccl/comms/{self._backend_name}/{name}/{number}/", options.seconds)
            made = ctypes.c_void_p()
            params = Params.of(name, rank, size, options.seconds, served)
            self.called("new_comm", self.table.create(ctypes.byref(params), ctypes.byref(made)))
            served.meet(rank, size)
        self._enter(made, name, rank, list(range(size)))

    def _enter(self, comm: Any, name: str, rank: int, ranks: list[int]) -> None:
        self.comm, self.name, self._rank, self._size, self._ranks = comm, name, rank, len(ranks), ranks

    def finalize(self) -> None:
        comm, self.comm = self.comm, None
        if comm is not None:
            self.table.destroy(comm)

    def drain(self, seconds: float) -> None:
        """Waits for the others: what they still need of this rank goes with it."""
        self.barrier(False, timeout=seconds).wait()

    def get_backend_name(self) -> str:
        return self._backend_name

    def get_backend_version(self) -> str:
        return (self.table.library_version or b"unknown").decode("utf-8", "replace")

    def split(self, ranks: Sequence[int], name: str, options: CommOptions) -> Optional["LibraryBackend"]:
        if not self.table.split:
            raise RuntimeError(f"[TorchCommBackend]: split not implemented for communicator:{self.name}")
        said, mine = split_lists.said(ranks, self._rank, self._size, options.hints)
        heard = bytearray(len(said) * self._size)
        whole = buffer_of(heard, "heard", True)
        pieces = [part_of(whole, at, len(said)) for at in range(0, len(heard), len(said))]
        self._issue(_ALL_GATHER, [buffer_of(said, "said")], pieces, options.seconds).wait()
        split_lists.check(bytes(heard), ranks, self._rank)
        made = ctypes.c_void_p()
        rank = mine.index(self._rank) if mine else 0
        params = Params.of(name, rank, len(mine), options.seconds, None)
        listed = (ctypes.c_uint32 * max(1, len(mine)))(*mine)
        self.called("split", self.table.split(self._open(), ctypes.byref(params), listed, ctypes.byref(made)))
        if not mine:
            return None
        child = LibraryBackend(self._backend_name, self._library, self.table)
        child._enter(made, name, rank, [self._ranks[member] for member in mine])
        return child

    def is_abort_supported(self) -> bool:
        return bool(self.table.abort)

    def abort(self) -> None:
        comm = self.comm
        if comm is not None and self.table.abort:
            self.table.abort(comm)

    # -- Operations --

    def send(self, tensor: Any, dst: int, async_op: bool, *, timeout: float) -> LibraryWork:
        return self._issue(_SEND, [buffer_of(tensor, "tensor")], [], timeout, dst)

    def recv(self, tensor: Any, src: int, async_op: bool, *, timeout: float) -> LibraryWork:
        return self._issue(_RECEIVE, [], [buffer_of(tensor, "tensor", True)], timeout, src)

    def broadcast(self, tensor: Any, root: int, async_op: bool, *, timeout: float) -> LibraryWork:
        buffer = buffer_of(tensor, "tensor", True)
        return self._issue(_BROADCAST, [buffer] if root == self._rank else [], [buffer], timeout, root)

    def all_reduce(self, tensor: Any, op: ReduceOp, async_op: bool, *, timeout: float) -> LibraryWork:
        buffer = buffer_of(tensor, "tensor", True)
        return self._issue(_ALL_REDUCE, [buffer], [buffer], timeout, 0, op)

    def reduce(self, tensor: Any, root: int, op: ReduceOp, async_op: bool, *, timeout: float) -> LibraryWork:
        buffer = buffer_of(tensor, "tensor", True)
        return self._issue(_REDUCE, [buffer], [buffer] if root == self._rank else [], timeout, root, op)

    def all_gather(self, tensor_list: Sequence[Any], tensor: Any, async_op: bool, *, timeout: float) -> LibraryWork:
        outputs = [buffer_of(piece, "tensor_list", True) for piece in tensor_list]
        return self._issue(_ALL_GATHER, [buffer_of(tensor, "tensor")], outputs, timeout)

    all_gather_v = all_gather

    def all_gather_single(self, output: Any, input: Any, async_op: bool, *, timeout: float) -> LibraryWork:
        return self._issue(_ALL_GATHER, [buffer_of(input, "input")], self._even(buffer_of(output, "output", True)), timeout)

    def reduce_scatter(self, output: Any, input_list: Sequence[Any], op: ReduceOp, async_op: bool, *, timeout: float) -> LibraryWork:
        inputs = [buffer_of(piece, "input_list") for piece in input_list]
        return self._issue(_REDUCE_SCATTER, inputs, [buffer_of(output, "output", True)], timeout, 0, op)

    reduce_scatter_v = reduce_scatter

    def reduce_scatter_single(self, output: Any, input: Any, op: ReduceOp, async_op: bool, *, timeout: float) -> LibraryWork:
        inputs = self._even(buffer_of(input, "input"))
        return self._issue(_REDUCE_SCATTER, inputs, [buffer_of(output, "output", True)], timeout, 0, op)

    def all_to_all(
        self, output_tensor_list: Sequence[Any], input_tensor_list: Sequence[Any], async_op: bool, *, timeout: float
    ) -> LibraryWork:
        outputs = [buffer_of(piece, "output_tensor_list", True) for piece in output_tensor_list]
        return self._issue(_ALL_TO_ALL, [buffer_of(piece, "input_tensor_list") for piece in input_tensor_list], outputs, timeout)

    def all_to_all_single(self, output: Any, input: Any, async_op: bool, *, timeout: float) -> LibraryWork:
        return self._issue(_ALL_TO_ALL, self._even(buffer_of(input, "input")), self._even(buffer_of(output, "output", True)), timeout)

    def all_to_all_v_single(
        self, output: Any, input: Any, output_split_sizes: Sequence[int], input_split_sizes: Sequence[int], async_op: bool, *,
        timeout: float,
    ) -> LibraryWork:
        source, target = buffer_of(input, "input"), buffer_of(output, "output", True)
        row = max(rows_of(input, source)[1], rows_of(output, target)[1])
        return self._issue(_ALL_TO_ALL, _rows(source, input_split_sizes, row), _rows(target, output_split_sizes, row), timeout)

    def barrier(self, async_op: bool, *, timeout: float) -> LibraryWork:
        return self._issue(_BARRIER, [], [], timeout)

    def scatter(self, output_tensor: Any, input_tensor_list: Sequence[Any], root: int, async_op: bool, *, timeout: float) -> LibraryWork:
        inputs = [buffer_of(piece, "input_tensor_list") for piece in input_tensor_list] if root == self._rank else []
        return self._issue(_SCATTER, inputs, [buffer_of(output_tensor, "output_tensor", True)], timeout, root)

    def gather(self, output_tensor_list: Sequence[Any], input_tensor: Any, root: int, async_op: bool, *, timeout: float) -> LibraryWork:
        outputs = [buffer_of(piece, "output_tensor_list", True) for piece in output_tensor_list] if root == self._rank else []
        return self._issue(_GATHER, [buffer_of(input_tensor, "input_tensor")], outputs, timeout, root)

    def gather_single(self, output: Any, input: Any, root: int, async_op: bool, *, timeout: float) -> LibraryWork:
        outputs = self._even(buffer_of(output, "output", True)) if root == self._rank else []
        return self._issue(_GATHER, [buffer_of(input, "input")], outputs, timeout, root)

    def batch_op_issue(self, ops: Sequence[Any], async_op: bool, *, timeout: float) -> CombinedWork:
        to_self = [buffer_of(op.tensor, "tensor") for op in ops if op.peer == self._rank and op.type == "SEND"]
        from_self = [buffer_of(op.tensor, "tensor", True) for op in ops if op.peer == self._rank and op.type == "RECV"]
        if [piece.nbytes for piece in to_self] != [piece.nbytes for piece in from_self]:
            raise RuntimeError("a batch's sends to this rank itself and its receives from it must have same size, one for one")
        for target, source in zip(from_self, to_self):
            copy(target, source)
        works = [self.recv(op.tensor, op.peer, True, timeout=timeout) for op in ops if op.type == "RECV" and op.peer != self._rank]
        works += [self.send(op.tensor, op.peer, True, timeout=timeout) for op in ops if op.type == "SEND" and op.peer != self._rank]
        return CombinedWork(works)

    # -- Calls --

    def _even(self, whole: Buffer) -> list[Buffer]:
        count = whole.count // self._size
        return [part_of(whole, rank * count, count) for rank in range(self._size)]

    def _open(self) -> Any:
        if self.comm is None:
            raise RuntimeError(f"communicator {self.name} is not initialized")
        return self.comm

    def _issue(
        self, operation: int, inputs: Sequence[Buffer], outputs: Sequence[Buffer], seconds: float, peer: int = 0,
        op: ReduceOp = ReduceOp.SUM,
    ) -> LibraryWork:
        first = next(iter([*inputs, *outputs]), None)
        datatype = DataType.UINT8 if first is None else first.datatype
        if datatype is DataType.BOOL and op.type in (RedOpType.PRODUCT, RedOpType.BXOR):
            inputs, outputs, datatype = [as_bytes(piece) for piece in inputs], [as_bytes(piece) for piece in outputs], DataType.UINT8
        call = Call.of(operation, peer, datatype, _OPERATORS[op.type], op.factor, seconds, Part.list(inputs), Part.list(outputs))
        work = ctypes.c_void_p()
        name = f"operation {operation}"
        self.called(name, self.table.issue(self._open(), ctypes.byref(call), ctypes.byref(work)))
        return LibraryWork(self, name, work if work.value else None, (call, inputs, outputs))

    def called(self, name: str, result: int) -> None:
        """RuntimeError, TimeoutError: a function of the library failed."""
        if result == Result.SUCCESS:
            return
        text = (self.table.last_error() or b"it gives no reason").decode("utf-8", "replace")
        if result == Result.TIMED_OUT:
            raise TimeoutError(f"{self._backend_name}: {name} timed out: {text}")
        raise RuntimeError(f"{self._backend_name}: {name}: {text}")


def _rows(whole: Buffer, rows: Sequence[int], row: int) -> list[Buffer]:
    pieces, at = [], 0
    for count in rows:
        pieces.append(part_of(whole, at, count * row))
        at += count * row
    return pieces


