"""Memory that windows share: tensors in a segment that other processes of this host and user can map."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import ctypes
import mmap
import operator
import os
import threading
import weakref
from typing import Any, NamedTuple, Optional, Sequence

from pccl.buffers import Buffer, as_buffer, library_of
from pccl.comms.tensors import loaded_torch
from pccl.types import DataType


class Segment(NamedTuple):
    """Where a tensor's memory is found by others: descriptor `fd` of process `pid`, which is file `inode` of `device`."""

    pid: int
    fd: int
    offset: int
    device: int
    inode: int


class _Known(NamedTuple):
    address: int
    nbytes: int
    fd: int


_segments: dict[int, _Known] = {}
_lock = threading.Lock()


class SharedMemoryAllocator:
    """Makes tensors whose windows other processes on the same host map (`WIN_ACCESS_TYPE_UNIFIED`)."""

    __module__ = "pccl.comms"

    def empty(self, shape: Any, dtype: Any = None) -> Any:
        """A tensor of zeros: of torch where `dtype` is torch's, else a numpy array.  Its memory goes with the last reference to it."""
        try:
            lengths = [operator.index(length) for length in (shape if hasattr(shape, "__iter__") else [shape])]
        except TypeError:
            raise TypeError(f"shape is {shape!r}, a {type(shape).__name__}; pass a whole number, or a list of them") from None
        if min(lengths, default=0) < 0:
            raise RuntimeError(f"shape is {lengths}; no length may be below 0")
        torch = loaded_torch()
        if torch is not None and (dtype is None or isinstance(dtype, torch.dtype)):
            datatype = DataType.from_torch_dtype(dtype or torch.get_default_dtype())
            return tensor_over(_new_segment(_count(lengths) * datatype.itemsize), 0, lengths, datatype, True)
        datatype = DataType.FLOAT if dtype is None else DataType.from_numpy_dtype(dtype)
        return tensor_over(_new_segment(_count(lengths) * datatype.itemsize), 0, lengths, datatype, False)

    zeros = empty


def tensor_over(memory: Any, offset: int, shape: Sequence[int], datatype: DataType, of_torch: bool) -> Any:
    """A tensor over bytes of a buffer from `offset` on, which it keeps alive."""
    count = _count(shape)
    if of_torch:
        import torch

        if count == 0:
            return torch.empty(*shape, dtype=datatype.to_torch_dtype())
        return torch.frombuffer(memory, dtype=datatype.to_torch_dtype(), count=count, offset=offset).view(*shape)
    import numpy

    return numpy.frombuffer(memory, dtype=datatype.to_numpy_dtype(), count=count, offset=offset).reshape(*shape)


def _count(shape: Sequence[int]) -> int:
    count = 1
    for length in shape:
        count *= length
    return count


def _new_segment(nbytes: int) -> mmap.mmap:
    fd = os.memfd_create("pccl-window", os.MFD_CLOEXEC)
    try:
        os.ftruncate(fd, max(1, nbytes))
        memory = mmap.mmap(fd, max(1, nbytes))
    except OSError:
        os.close(fd)
        raise
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    with _lock:
        _segments[address] = _Known(address, max(1, nbytes), fd)
    weakref.finalize(memory, _forget, address, fd, os.getpid())
    return memory


def _forget(address: int, fd: int, pid: int) -> None:
    with _lock:
        _segments.pop(address, None)
    if os.getpid() == pid:
        os.close(fd)


def segment_of(buffer: Buffer) -> Optional[Segment]:
    """Where others find that memory; None: it is of no allocator of this process."""
    with _lock:
        known = next(
            (k for k in _segments.values() if k.address <= buffer.address and buffer.address + buffer.nbytes <= k.address + k.nbytes), None
        )
    if known is None:
        return None
    status = os.fstat(known.fd)
    return Segment(os.getpid(), known.fd, buffer.address - known.address, status.st_dev, status.st_ino)


def mapped(segment: Segment, nbytes: int) -> Optional[mmap.mmap]:
    """Another process's segment in this one; None: it is on another host, or not to be reached."""
    try:
        fd = os.open(f"/proc/{segment.pid}/fd/{segment.fd}", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        status = os.fstat(fd)
        if (status.st_dev, status.st_ino) != (segment.device, segment.inode) or status.st_size < segment.offset + nbytes:
            return None
        return mmap.mmap(fd, segment.offset + nbytes)
    except (OSError, ValueError):
        return None
    finally:
        os.close(fd)


def of_torch(tensor: Any) -> bool:
    """Whether it is torch's."""
    return library_of(tensor) == "torch"


def clone(tensor: Any) -> Any:
    """A copy in memory of its own."""
    if of_torch(tensor):
        return tensor.clone()
    return tensor.copy() if hasattr(tensor, "copy") else bytearray(as_buffer(tensor).owner)
