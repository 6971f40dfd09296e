"""Tensors as memory of the engine: used where they lie if they are contiguous, else copied in, and out again after success.

Complex numbers are pairs of real ones; types that nothing is computed with in the library, but that it may move, are bytes.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Callable, NamedTuple, Optional, Sequence

import torch

from pccl.buffers import Buffer, as_buffer
from pccl.engine.overlaps import check_result
from pccl.types import DataType

#: What has to be done after success.
Finish = Optional[Callable[[], None]]


def _lies_plain(tensor: torch.Tensor) -> bool:
    return tensor.is_contiguous() and not tensor.is_conj() and not tensor.is_neg()


def plain(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, contiguous, of a type that the library has; a copy where it has to be.  ValueError: not on the CPU."""
    if tensor.device.type != "cpu":
        raise ValueError(f"pccl: a tensor is on device {tensor.device}, and this backend's are on the CPU; pass tensor.cpu()")
    if tensor.layout is not torch.strided:
        raise ValueError(f"pccl: a tensor of layout {tensor.layout} can be all-reduced only; pass tensor.to_dense()")
    if not _lies_plain(tensor):
        tensor = tensor.detach().resolve_conj().resolve_neg().contiguous()
    return _seen(tensor)


def _seen(tensor: torch.Tensor) -> torch.Tensor:
    """A contiguous tensor with elements of a type that the library has."""
    if tensor.is_complex():
        return torch.view_as_real(tensor.detach())
    if tensor.dtype in _KNOWN:
        return tensor
    return tensor.detach().view(-1).view(torch.uint8)


_KNOWN = {datatype.to_torch_dtype() for datatype in DataType}


def target(tensor: torch.Tensor, private: bool = False) -> tuple[torch.Tensor, Finish]:
    """Memory for the results of a tensor, with its contents, and the copy that brings the results into the tensor.

    With `private` the memory is never the tensor's own.  ValueError: two elements of the tensor lie in the same memory.
    """
    memory = plain(tensor)
    if _lies_plain(tensor):
        if not private:
            return memory, None
        memory = memory.detach().clone()
    else:
        check_result(tensor)
    shape, dtype = tensor.shape, tensor.dtype

    def finish() -> None:
        came = memory if memory.dtype == dtype else memory.view(dtype) if not dtype.is_complex else torch.view_as_complex(memory)
        tensor.detach().copy_(came.view(shape))

    return memory, finish


def span(memory: torch.Tensor | Buffer) -> tuple[int, int]:
    """The first byte and the one behind the last."""
    buffer = as_buffer(memory)
    return buffer.address, buffer.address + buffer.nbytes


def overlap(memory: torch.Tensor | Buffer, other: torch.Tensor | Buffer) -> bool:
    """Whether they have a byte in common."""
    begin, end = span(memory)
    other_begin, other_end = span(other)
    return begin < other_end and other_begin < end


def apart(memory: torch.Tensor, whole: torch.Tensor | Buffer, own: int) -> torch.Tensor:
    """`memory`, or a copy of it, if it lies over the other, unless it is the part at its byte `own`, as the library allows."""
    if not overlap(memory, whole) or span(memory)[0] == span(whole)[0] + own:
        return memory
    return memory.detach().clone()


def result_apart(memory: torch.Tensor, whole: torch.Tensor | Buffer) -> tuple[torch.Tensor, Finish]:
    """`memory`, or another place for its results if it lies over what is sent, and what brings them to it."""
    if not overlap(memory, whole):
        return memory, None
    result = torch.empty_like(memory)

    def finish() -> None:
        memory.detach().copy_(result)

    return result, finish


class Parts(NamedTuple):
    """A list of tensors, one for each rank, as one piece of memory: `counts` elements of each, at its `places` (None: one after the other)."""

    memory: torch.Tensor | Buffer
    counts: list[int]
    places: Optional[list[int]]
    finish: Finish = None

    def byte_of(self, rank: int) -> int:
        """Where the part of that rank begins."""
        size = as_buffer(self.memory).datatype.itemsize
        return size * (sum(self.counts[:rank]) if self.places is None else self.places[rank])


def packed(tensors: Sequence[torch.Tensor]) -> Parts:
    """Tensors that are sent."""
    pieces = [plain(tensor) for tensor in tensors]
    where = _in_place(pieces)
    if where is not None:
        return where
    return Parts(torch.cat([piece.detach().reshape(-1) for piece in pieces]), [piece.numel() for piece in pieces], None)


def unpacked(tensors: Sequence[torch.Tensor], private: bool = False) -> Parts:
    """Tensors that are received; with `private`, in memory that is never their own."""
    if not private and all(_lies_plain(tensor) for tensor in tensors):
        where = _in_place([plain(tensor) for tensor in tensors])
        if where is not None:
            return where
    pieces = [target(tensor) for tensor in tensors]
    counts = [memory.numel() for memory, _ in pieces]
    whole = torch.empty(sum(counts), dtype=pieces[0][0].dtype)

    def finish() -> None:
        for (memory, out), part in zip(pieces, torch.split(whole, counts)):
            memory.detach().copy_(part.view(memory.shape))
            if out is not None:
                out()

    return Parts(whole, counts, None, finish)


def _in_place(pieces: list[torch.Tensor]) -> Optional[Parts]:
    """The pieces where they lie, if they are of one type and one storage, and do not overlap."""
    first = pieces[0]
    storage = first.untyped_storage().data_ptr()
    if any(piece.dtype != first.dtype or piece.untyped_storage().data_ptr() != storage for piece in pieces):
        return None
    spans = sorted(span(piece) for piece in pieces if piece.numel())
    if not spans or any(end > begin for (_, end), (begin, _) in zip(spans, spans[1:])):
        return None
    base, size = spans[0][0], first.element_size()
    if any((begin - base) % size for begin, _ in spans):
        return None
    buffer = Buffer(base, (spans[-1][1] - base) // size, DataType.from_torch_dtype(first.dtype), pieces)
    places = [(piece.data_ptr() - base) // size if piece.numel() else 0 for piece in pieces]
    return Parts(buffer, [piece.numel() for piece in pieces], places)
