"""A tensor is a torch tensor, a numpy array or an object with a buffer; here are its shape, its memory, and lists of tensors as one.

A list of tensors is one buffer with parts at places, wherever these are, so that nothing is copied.  A copy is made only where input
and output would overlap.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import ctypes
import struct
import sys
from typing import Any, Callable, NamedTuple, Optional, Sequence

from pccl.buffers import Buffer, as_buffer, library_of
from pccl.types import DataType

FLOATING = frozenset({DataType.FLOAT16, DataType.BFLOAT16, DataType.FLOAT, DataType.DOUBLE})
NOT_COMPUTED = frozenset({DataType.FLOAT8_E4M3, DataType.FLOAT8_E5M2})


def buffer_of(tensor: Any, name: str, writable: bool = False, any_device: bool = False) -> Buffer:
    """The memory of a tensor.  RuntimeError: not contiguous, not in host memory unless `any_device`, or of an unknown type.  TypeError: no tensor."""
    if isinstance(tensor, Buffer):
        return tensor
    if not is_contiguous(tensor):
        raise RuntimeError(f"{name} must be contiguous; pass a contiguous copy")
    try:
        return as_buffer(tensor, name, writable, any_device)
    except ValueError as error:
        if isinstance(error, RuntimeError):
            raise
        kind = "Invalid scalar type" if "dtype" in str(error) or "format" in str(error) else "Invalid tensor"
        raise RuntimeError(f"{kind}: {error}") from None


def loaded_torch() -> Any:
    """torch, if the program has imported it, or None; where another thread imports it now, when that is done."""
    if sys.modules.get("torch") is None:
        return None
    import torch

    return torch


def is_contiguous(tensor: Any) -> bool:
    """Whether the elements lie one behind the other."""
    library = library_of(tensor)
    if library == "torch":
        return bool(tensor.is_contiguous())
    if library == "numpy":
        return bool(tensor.flags.c_contiguous)
    return True  # said by the buffer itself


def shape_of(tensor: Any) -> tuple[int, ...]:
    """Its lengths, slowest dimension first."""
    shape = getattr(tensor, "shape", None)
    if shape is None:
        shape = memoryview(tensor).shape
    return tuple(int(length) for length in shape or ())


def rows_of(tensor: Any, buffer: Buffer) -> tuple[int, int]:
    """Length of dimension 0, and elements of one of its rows."""
    shape = shape_of(tensor)
    rows = shape[0] if shape else 1
    row = 1
    for length in shape[1:]:
        row *= length
    return rows, row if rows or buffer.count else 1


def device_of(tensor: Any) -> str:
    """Where it lies."""
    return str(getattr(tensor, "device", "cpu"))


def part_of(buffer: Buffer, first: int, count: int) -> Buffer:
    """`count` elements from element `first` on."""
    return Buffer(buffer.address + first * buffer.datatype.itemsize, count, buffer.datatype, buffer.owner)


def extents_of(value: Any) -> list[tuple[int, int]]:
    """First byte, and the one behind the last, of a tensor or of each in a list; nothing of what is no tensor."""
    if isinstance(value, (list, tuple)):
        return [extent for one in value for extent in extents_of(one)]
    if value is None:
        return []
    try:
        return [extent_of(as_buffer(value, any_device=True))]
    except (TypeError, ValueError):
        return []


def as_bytes(buffer: Buffer) -> Buffer:
    """The same memory, of bytes."""
    return Buffer(buffer.address, buffer.nbytes, DataType.UINT8, buffer.owner)


def fresh(count: int, datatype: DataType) -> Buffer:
    """Memory of its own, unspecified."""
    memory = as_buffer(bytearray(max(1, count * datatype.itemsize)))
    return Buffer(memory.address, count, datatype, memory.owner)


def copy(target: Buffer, source: Buffer) -> None:
    """Copies all of `source`."""
    if source.nbytes:
        ctypes.memmove(target.address, source.address, source.nbytes)


def memory_view(buffer: Buffer) -> memoryview:
    """Its bytes; keep the buffer's owner alive."""
    return memoryview((ctypes.c_char * buffer.nbytes).from_address(buffer.address)).cast("B")


def has_nan(tensor: Any) -> bool:
    """Whether a floating tensor holds a NaN."""
    library = library_of(tensor)
    if library == "torch":
        return bool((tensor.is_floating_point() or tensor.is_complex()) and tensor.isnan().any())
    buffer = as_buffer(tensor)
    if buffer.datatype not in FLOATING or buffer.count == 0:
        return False
    if library == "numpy":
        return bool((tensor != tensor).any())
    form = {DataType.FLOAT16: "e", DataType.FLOAT: "f", DataType.DOUBLE: "d"}.get(buffer.datatype)
    return form is not None and any(value != value for (value,) in struct.iter_unpack(form, memory_view(buffer)))


class Parts(NamedTuple):
    """Some of one buffer's elements: `counts[r]` from element `places[r]` on belong to rank r."""

    buffer: Buffer
    counts: list[int]
    places: list[int]
    pieces: list[Buffer]

    @property
    def extent(self) -> tuple[int, int]:
        """First byte, and the one behind the last."""
        size = self.buffer.datatype.itemsize
        end = max((place + count for place, count in zip(self.places, self.counts) if count), default=0)
        return self.buffer.address, self.buffer.address + end * size

    def packed(self) -> "Parts":
        """The same parts one behind the other in memory of their own; nothing is copied yet."""
        whole = fresh(sum(self.counts), self.buffer.datatype)
        return split_up(whole, self.counts)

    def copy_from(self, other: "Parts") -> None:
        """Copies each part."""
        for mine, theirs in zip(self.pieces, other.pieces):
            copy(mine, theirs)


def split_up(buffer: Buffer, counts: Sequence[int]) -> Parts:
    """One buffer, whose parts lie one behind the other."""
    places, at = [], 0
    for count in counts:
        places.append(at)
        at += count
    return Parts(buffer, list(counts), places, [part_of(buffer, place, count) for place, count in zip(places, counts)])


def spread(pieces: Sequence[Buffer]) -> Optional[Parts]:
    """Several buffers of one type as one; None: they lie so that elements of one are not whole numbers of elements from another."""
    datatype = pieces[0].datatype
    filled = [piece for piece in pieces if piece.count]
    if not filled:
        return split_up(pieces[0], [0] * len(pieces))
    first = min(piece.address for piece in filled)
    size = datatype.itemsize
    if any((piece.address - first) % size for piece in filled):
        return None
    places = [(piece.address - first) // size if piece.count else 0 for piece in pieces]
    counts = [piece.count for piece in pieces]
    end = max(place + count for place, count in zip(places, counts))
    return Parts(Buffer(first, end, datatype, tuple(pieces)), counts, places, list(pieces))


def crosses(a: tuple[int, int], b: tuple[int, int]) -> bool:
    """Whether two extents have a byte in common."""
    return a[0] < b[1] and b[0] < a[1]


def extent_of(buffer: Buffer) -> tuple[int, int]:
    """As `Parts.extent`."""
    return buffer.address, buffer.address + buffer.nbytes


def input_parts(pieces: Sequence[Buffer]) -> Parts:
    """A list that is read."""
    parts = spread(pieces)
    if parts is None:
        counts = [piece.count for piece in pieces]
        parts = split_up(fresh(sum(counts), pieces[0].datatype), counts)
        for mine, theirs in zip(parts.pieces, pieces):
            copy(mine, theirs)
    return parts


def _lie_over_each_other(pieces: Sequence[Buffer]) -> bool:
    extents = sorted(extent_of(piece) for piece in pieces if piece.count)
    return any(end > begin for (_, end), (begin, _) in zip(extents, extents[1:]))


def packed_copy(parts: Parts) -> Parts:
    """The data to read, in memory of its own."""
    packed = parts.packed()
    packed.copy_from(parts)
    return packed


def output_parts(pieces: Sequence[Buffer], inputs: tuple[int, int], in_place: int = -1) -> tuple[Parts, Optional[Callable[[], None]]]:
    """A list that is written while `inputs` is read, and what has to be done after success, if anything.

    Where pieces share memory the last one in the list keeps its values.
    `in_place` is the address of an input that may be the part of a rank, if it is exactly that.
    """
    parts = None if _lie_over_each_other(pieces) else spread(pieces)
    if parts is not None and (in_place in (piece.address for piece in pieces) or not crosses(parts.extent, inputs)):
        return parts, None
    counts = [piece.count for piece in pieces]
    packed = split_up(fresh(sum(counts), pieces[0].datatype), counts)

    def unpack() -> None:
        for mine, theirs in zip(pieces, packed.pieces):
            copy(mine, theirs)

    return packed, unpack


def kept(buffer: Buffer) -> Buffer:
    """A copy of the current contents."""
    before = fresh(buffer.count, buffer.datatype)
    copy(before, buffer)
    return before


def batch_apart(pieces: list[Buffer], received: Sequence[bool]) -> tuple[list[Buffer], Optional[Callable[[], None]]]:
    """The memory of a batch's messages, and the copies to make after success, if any.

    All messages of a batch travel at the same time.  If one is `received` into the memory of another one, all get memory of
    their own.  Each send has the contents at the time of the call, and the last receive in the list remains.
    """
    extents = sorted((*extent_of(piece), received[index]) for index, piece in enumerate(pieces) if piece.count)
    reach = reach_of_received = 0
    for begin, end, writes in extents:
        if begin < (reach if writes else reach_of_received):
            break
        reach = max(reach, end)
        reach_of_received = max(reach_of_received, end if writes else 0)
    else:
        return pieces, None
    own = [kept(piece) for piece in pieces]

    def after() -> None:
        for index, piece in enumerate(pieces):
            if received[index]:
                copy(piece, own[index])

    return own, after
