"""Memory that operations read and write: numpy arrays, torch tensors, anything with Python's buffer protocol; never copied."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import sys
from typing import Any, Optional

from pccl._native import ffi
from pccl.types import DataType

_COPY_BACK = "pass a contiguous copy, and copy from that what has come"


class OperandError(AssertionError, ValueError):
    """Memory that an operation cannot use.  Programs of the original interface expect an AssertionError, others a ValueError."""


class Buffer:
    """`count` elements of `datatype` at `address`, which stay there as long as `owner` lives."""

    __slots__ = ("address", "count", "datatype", "owner")

    def __init__(self, address: int, count: int, datatype: DataType, owner: Any) -> None:
        self.address = address
        self.count = count
        self.datatype = datatype
        self.owner = owner

    @property
    def nbytes(self) -> int:
        return self.count * self.datatype.itemsize

    @property
    def pointer(self) -> Any:
        return ffi.cast("void *", self.address)

    @property
    def moved(self) -> bool:
        """Whether the owner's elements are elsewhere by now, as after ``parameter.data = other``: these may be freed."""
        library = library_of(self.owner)
        if library == "torch":
            return (self.owner.data_ptr(), self.owner.numel()) != (self.address, self.count)
        return library == "numpy" and (self.owner.__array_interface__["data"][0], self.owner.size) != (self.address, self.count)


def as_buffer(memory: Any, name: str = "buffer", writable: bool = False, any_device: bool = False) -> Buffer:
    """Describes `memory`.  It has to be contiguous, in host memory unless `any_device`, and writable if results are written to it.

    TypeError: not memory.  OperandError: not contiguous, on another device, read-only, sharded.  ValueError: a type that PCCL lacks.
    """
    if isinstance(memory, Buffer):
        return memory
    library = library_of(memory)
    if library == "torch":
        return _of_tensor(memory, name, writable, any_device)
    if library == "numpy":
        return _of_array(memory, name, writable)
    try:
        view = memoryview(memory)
    except TypeError:
        raise TypeError(
            f"pccl: {name} is a {type(memory).__name__}; pass a torch tensor, a numpy array or an object with a buffer"
        ) from None
    if writable and view.readonly:
        raise OperandError(f"pccl: {name} is read-only, but results go there; pass a bytearray, an array or a writable view")
    if not view.c_contiguous:
        raise OperandError(f"pccl: {name} is not contiguous; pass a contiguous copy")
    address = int(ffi.cast("uintptr_t", ffi.from_buffer(view))) if view.nbytes else 0
    return Buffer(address, view.nbytes // view.itemsize, DataType.from_format(view.format), view)


def library_of(memory: Any) -> Optional[str]:
    """ "torch" or "numpy", if it is a tensor or an array of theirs."""
    if isinstance(memory, _class_of("torch", "Tensor")):
        return "torch"
    return "numpy" if isinstance(memory, _class_of("numpy", "ndarray")) else None


def _class_of(library: str, name: str) -> Any:
    """That class; none before another thread, that may be importing the library now, has come to it: then nothing is of it."""
    return getattr(sys.modules.get(library), name, ())


def _of_tensor(tensor: Any, name: str, writable: bool, any_device: bool) -> Buffer:
    if hasattr(tensor, "to_local"):
        raise OperandError(f"pccl: {name} is a DTensor, of which this process has a shard only; pass tensor.to_local()")
    if tensor.device.type != "cpu" and not any_device:
        raise OperandError(f"pccl: {name} is on device {tensor.device}; pass tensor.cpu()")
    if str(tensor.layout) != "torch.strided":
        raise OperandError(f"pccl: {name} has the layout {tensor.layout}, which is not one piece of memory; pass tensor.to_dense()")
    if not tensor.is_contiguous():
        remedy = _COPY_BACK if writable else "pass tensor.contiguous()"
        raise OperandError(f"pccl: {name} has the strides {tuple(tensor.stride())}, which is not contiguous; {remedy}")
    if tensor.is_neg():
        raise OperandError(f"pccl: {name} is a view of numbers with the other sign; pass tensor.resolve_neg()")
    return Buffer(tensor.data_ptr(), tensor.numel(), DataType.from_torch_dtype(tensor.dtype), tensor)


def _of_array(array: Any, name: str, writable: bool) -> Buffer:
    if hasattr(array, "mask"):
        raise OperandError(f"pccl: {name} is a {type(array).__name__}, whose mask nobody would regard; pass array.filled(value)")
    if not array.flags.c_contiguous:
        remedy = _COPY_BACK if writable else "pass numpy.ascontiguousarray(array)"
        raise OperandError(f"pccl: {name} has the strides {array.strides}, which is not contiguous; {remedy}")
    if writable and not array.flags.writeable:
        raise OperandError(f"pccl: {name} is read-only, but results go there; pass array.copy()")
    try:
        datatype = DataType.from_numpy_dtype(array.dtype)
    except AssertionError as error:
        raise OperandError(str(error)) from None
    return Buffer(array.__array_interface__["data"][0], array.size, datatype, array)
