"""All-reduces as a program describes them, one or many, and how they have gone."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any, Optional

from pccl._native import ffi
from pccl.arguments import instance, member, whole
from pccl.buffers import Buffer, OperandError, as_buffer, library_of
from pccl.engine.operation import Operation, OperationInfo
from pccl.errors import PCCLError
from pccl.quantization import QuantizationOptions
from pccl.types import DataType, DistributionHint, QuantizationAlgorithm, ReduceOp, Result


class ReduceOperandDescriptor:
    """The type of the elements, and how their values are distributed."""

    def __init__(self, datatype: DataType, distribution_hint: DistributionHint = DistributionHint.NONE) -> None:
        self.datatype = datatype
        self.distribution_hint = distribution_hint

    def to_c(self) -> Any:
        """A new pcclReduceOperandDescriptor_t."""
        made = ffi.new("pcclReduceOperandDescriptor_t *")
        self._fill(made)
        return made

    def _fill(self, c_desc: Any) -> None:
        c_desc.datatype = member("datatype", self.datatype, DataType)
        c_desc.distribution_hint = member("distribution_hint", self.distribution_hint, DistributionHint)


class ReduceDescriptor:
    """An all-reduce without its buffers: `count` elements; `tag` names it at all peers, and is in use until it was awaited."""

    def __init__(
        self,
        count: int,
        op: ReduceOp,
        tag: int,
        operand_descriptor: ReduceOperandDescriptor,
        quantization_options: QuantizationOptions,
    ) -> None:
        self.count = count
        self.op = op
        self.tag = tag
        self.operand_descriptor = operand_descriptor
        self.quantization_options = quantization_options

    def to_c(self) -> Any:
        """A new pcclReduceDescriptor_t."""
        made = ffi.new("pcclReduceDescriptor_t *")
        self._fill(made)
        return made

    def _fill(self, c_desc: Any) -> None:
        c_desc.count = whole("reduce descriptor", "count", self.count, "size_t")
        c_desc.op = member("op", self.op, ReduceOp)
        c_desc.tag = whole("reduce descriptor", "tag", self.tag, "uint64_t")
        instance("operand_descriptor", self.operand_descriptor, ReduceOperandDescriptor)
        instance("quantization_options", self.quantization_options, QuantizationOptions)
        self.operand_descriptor._fill(c_desc.src_descriptor)
        self.quantization_options._fill(c_desc.quantization_options)


class ReduceOpDescriptor:
    """An all-reduce with its buffers, as addresses; `from_torch` and its like keep the memory alive, too."""

    def __init__(self, sendbuf_ptr: Any, recvbuf_ptr: Any, reduce_descriptor: ReduceDescriptor) -> None:
        self.sendbuf_ptr = sendbuf_ptr
        self.recvbuf_ptr = recvbuf_ptr
        self.reduce_descriptor = reduce_descriptor
        self._keep: Any = None

    @staticmethod
    def from_torch(send: Any, recv: Any, reduce_descriptor: ReduceDescriptor) -> "ReduceOpDescriptor":
        """Of two torch tensors."""
        return _of_memory("torch", send, recv, reduce_descriptor)

    @staticmethod
    def from_numpy(send: Any, recv: Any, reduce_descriptor: ReduceDescriptor) -> "ReduceOpDescriptor":
        """Of two numpy arrays."""
        return _of_memory("numpy", send, recv, reduce_descriptor)

    @staticmethod
    def from_buffers(send: Any, recv: Any, reduce_descriptor: ReduceDescriptor) -> "ReduceOpDescriptor":
        """Of two objects with Python's buffer protocol, or two of either of the others."""
        return _of_memory(None, send, recv, reduce_descriptor)

    def to_c(self) -> Any:
        """A new pcclReduceOpDescriptor_t; its buffers live as long as this does, at least."""
        made = ffi.new("pcclReduceOpDescriptor_t *")
        self.to_c_inpl(made)
        return made

    def to_c_inpl(self, c_desc: Any) -> None:
        """Fills a pcclReduceOpDescriptor_t, as of an array."""
        c_desc.sendbuf = _pointer(self.sendbuf_ptr, "sendbuf_ptr")
        c_desc.recvbuf = _pointer(self.recvbuf_ptr, "recvbuf_ptr")
        instance("reduce_descriptor", self.reduce_descriptor, ReduceDescriptor)
        self.reduce_descriptor._fill(c_desc.descriptor)


def _pointer(address: Any, name: str) -> Any:
    try:
        return ffi.cast("void *", address)
    except TypeError:
        raise TypeError(f"pccl: {name} is {address!r}; pass an address, as a number or a pointer of cffi") from None


def _of_memory(library: Optional[str], send: Any, recv: Any, descriptor: ReduceDescriptor) -> ReduceOpDescriptor:
    if library is not None:
        for name, memory in (("send", send), ("recv", recv)):
            if library_of(memory) != library:
                raise OperandError(f"pccl: {name} is a {type(memory).__name__}, where one of {library} is needed")
    source, target = operands(send, recv)
    instance("reduce_descriptor", descriptor, ReduceDescriptor)
    _fits(source, descriptor.count, descriptor.operand_descriptor)
    made = ReduceOpDescriptor(source.address, target.address, descriptor)
    made._keep = (source, target)
    return made


def operands(send: Any, recv: Any) -> tuple[Buffer, Buffer]:
    """The memory that an all-reduce reads and writes: of one library, contiguous, on the CPU, of one type and number of elements.

    OperandError, a ValueError and an AssertionError: it is not.
    """
    if library_of(send) != library_of(recv):
        raise OperandError(
            f"pccl: send is a {type(send).__name__}, recv a {type(recv).__name__}; pass two torch tensors, or two numpy arrays"
        )
    source, target = as_buffer(send, "send"), as_buffer(recv, "recv", True)
    if source.datatype is not target.datatype:
        raise OperandError(f"pccl: send is of {source.datatype.name}, recv of {target.datatype.name}; convert one of them")
    if source.count != target.count:
        raise OperandError(f"pccl: send has {source.count} elements, recv {target.count}; pass as many")
    if 0 < abs(source.address - target.address) < source.nbytes:
        raise OperandError("pccl: recv begins within send, or send within recv; pass one memory twice, or two that are apart")
    return source, target


def describe(
    buffer: Buffer,
    op: ReduceOp,
    tag: int,
    operand: Optional[ReduceOperandDescriptor],
    quantization: Optional[QuantizationOptions],
) -> ReduceDescriptor:
    """The all-reduce of that memory; what is left out: the memory's type, and no quantisation."""
    if operand is None:
        operand = ReduceOperandDescriptor(buffer.datatype)
    _fits(buffer, buffer.count, operand)
    if quantization is None:
        quantization = QuantizationOptions(operand.datatype, QuantizationAlgorithm.NONE)
    return ReduceDescriptor(buffer.count, op, tag, operand, quantization)


def _fits(buffer: Buffer, count: int, operand: ReduceOperandDescriptor) -> None:
    """A descriptor may call elements another type of the same size (bfloat16 in an array of uint16), and fewer than there are."""
    instance("operand_descriptor", operand, ReduceOperandDescriptor)
    member("datatype", operand.datatype, DataType)
    if operand.datatype.itemsize != buffer.datatype.itemsize:
        raise OperandError(f"pccl: the operand descriptor says {operand.datatype.name}, the memory is of {buffer.datatype.name}")
    if whole("reduce operation", "count", count, "size_t") > buffer.count:
        raise OperandError(f"pccl: the descriptor says {count} elements, but the memory has {buffer.count}; pass more, or reduce fewer")


class ReduceInfo:
    """The traffic of an all-reduce: members of the peer group that it succeeded with, payload bytes sent and received by this one."""

    def __init__(self, local_world_size: int, tx_bytes: int, rx_bytes: int) -> None:
        self.local_world_size = local_world_size
        self.tx_bytes = tx_bytes
        self.rx_bytes = rx_bytes

    @classmethod
    def of(cls, info: OperationInfo) -> "ReduceInfo":
        """The engine's facts of an operation."""
        return cls(info.world_size, info.tx_bytes, info.rx_bytes)

    def __repr__(self) -> str:
        return f"ReduceInfo(local_world_size={self.local_world_size}, tx_bytes={self.tx_bytes}, rx_bytes={self.rx_bytes})"


class AsyncReduceHandle:
    """An all-reduce in flight, made by `Communicator.all_reduce_async`; its buffers are borrowed until it has ended."""

    def __init__(self, operation: Operation) -> None:
        self._operation = operation

    def wait(self) -> tuple[bool, int, ReduceInfo]:
        """Waits until it has ended: whether it succeeded, the number of its `Result`, and what it moved, zeros after a failure.

        Never raises (but for Ctrl-C, which leaves it in flight); `error` has the cause.  Any number of times, from any thread.
        """
        try:
            self._operation.wait()
        except PCCLError as error:
            return False, int(error.result.value), ReduceInfo(0, 0, 0)
        assert self._operation.info is not None
        return True, int(Result.SUCCESS.value), ReduceInfo.of(self._operation.info)

    def done(self) -> bool:
        """Whether it has ended; does not wait."""
        return self._operation.done()

    def cancel(self) -> None:
        """Asks all peers to give it up; it ends with RANK_CONNECTION_LOST everywhere, or with success, if it was complete."""
        self._operation.cancel()

    @property
    def error(self) -> Optional[PCCLError]:
        """How it failed, with cause, peer and phase; None: it has not, or not ended."""
        return self._operation.error
