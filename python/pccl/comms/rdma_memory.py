"""Memory that other processes read and write by a key: registered here, served by `pccl.comms.rdma_transport`.

A key is random and belongs to one `RdmaMemory`; it is of no use any more when that has gone.  Views are parts of it, by bytes.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import secrets
import threading
from typing import Any, NamedTuple, Optional

from pccl.buffers import Buffer
from pccl.comms.arguments import whole_number
from pccl.comms.shared_memory import Segment, segment_of
from pccl.comms.tensors import as_bytes, buffer_of, is_contiguous, memory_view

_registered: dict[str, "_Registration"] = {}
_lock = threading.Lock()


class RdmaRemoteBuffer(NamedTuple):
    """Another process's memory: what `write` and `read` name it by; picklable."""

    ptr: int
    len: int
    access_key: str


class _Registration:
    """Memory under a key; `users` are the `RdmaMemory` objects of it."""

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer
        self.key = secrets.token_hex(16)
        self.users = 0


class RdmaMemoryView:
    """Some bytes of an `RdmaMemory`, which it keeps; what `write` takes the bytes of."""

    def __init__(self, memory: "RdmaMemory", offset: int, length: int) -> None:
        self._memory = memory
        self._offset, self._length = offset, length

    def size(self) -> int:
        """How many bytes it has."""
        return self._length

    def _bytes(self) -> memoryview:
        return memory_view(self._memory._buffer)[self._offset:self._offset + self._length]


class RdmaMemoryMutableView(RdmaMemoryView):
    """The memory that `read` writes bytes to."""


class RdmaMemory:
    """A tensor that is contiguous and in host memory, registered until the last object of it has gone; torch's, numpy's, or a buffer.

    RuntimeError: it is none of these, or of size 0.
    """

    def __init__(self, tensor: Any) -> None:
        self._registration: Optional[_Registration] = None
        device = str(getattr(tensor, "device", "cpu"))
        if not device.startswith("cpu"):
            raise RuntimeError(f"RdmaMemory: tensor is on {device}, and only host memory can be registered; pass tensor.cpu()")
        if not is_contiguous(tensor):
            raise RuntimeError("RdmaMemory: tensor must be contiguous; pass a contiguous copy")
        self._buffer = as_bytes(buffer_of(tensor, "tensor", True))
        if self._buffer.nbytes == 0:
            raise RuntimeError("RdmaMemory: tensor has no elements; pass one that has")
        with _lock:
            same = [
                one for one in _registered.values()
                if one.buffer.address == self._buffer.address and one.buffer.nbytes == self._buffer.nbytes
            ]
            self._reused = bool(same)
            self._registration = same[0] if same else _Registration(self._buffer)
            self._registration.users += 1
            _registered[self._registration.key] = self._registration

    def __del__(self) -> None:
        registration = self._registration
        if registration is not None:
            with _lock:
                registration.users -= 1
                if registration.users == 0:
                    _registered.pop(registration.key, None)

    def to_view(self, offset: Optional[int] = None, length: Optional[int] = None) -> RdmaMemoryView:
        """`length` bytes from byte `offset` on; all that follow, all.  RuntimeError: they are not all in it."""
        return RdmaMemoryView(self, *self._part(offset, length))

    def to_mutable_view(self, offset: Optional[int] = None, length: Optional[int] = None) -> RdmaMemoryMutableView:
        """As `to_view`, to be written."""
        return RdmaMemoryMutableView(self, *self._part(offset, length))

    def to_remote_buffer(self) -> RdmaRemoteBuffer:
        """The name by which another process refers to this memory."""
        assert self._registration is not None
        return RdmaRemoteBuffer(self._buffer.address, self._buffer.nbytes, self._registration.key)

    def reused_registration(self) -> bool:
        """Whether the same memory was registered already."""
        return self._reused

    def _part(self, offset: Optional[int], length: Optional[int]) -> tuple[int, int]:
        first = 0 if offset is None else whole_number("offset", offset)
        count = self._buffer.nbytes - first if length is None else whole_number("length", length)
        if first < 0 or count < 0 or first + count > self._buffer.nbytes:
            raise RuntimeError(f"view of {count} bytes from byte {first} on is out of bounds: the memory has {self._buffer.nbytes} bytes")
        return first, count


class Found(NamedTuple):
    """Registered bytes; `segment` is where other processes on this host map them, `buffer` keeps the memory."""

    view: memoryview
    segment: Optional[Segment]
    buffer: Buffer


def found(key: str, address: int, length: int) -> Optional[Found]:
    """The memory of a key and a place; None: no such memory is registered."""
    with _lock:
        registration = _registered.get(key)
    if registration is None:
        return None
    buffer = registration.buffer
    first = address - buffer.address
    if first < 0 or length < 0 or first + length > buffer.nbytes:
        return None
    segment = segment_of(buffer)
    if segment is not None:
        segment = segment._replace(offset=segment.offset + first)
    return Found(memory_view(buffer)[first:first + length], segment, buffer)
