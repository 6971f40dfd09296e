"""Tensors of torch that share memory: those of one call, and the elements of one tensor.

The parts of a coalesced call run at the same time, so a result that lies over an operand of another part changes what that part sends.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any, Iterable, Sequence

#: Inputs and outputs of a part.
Operands = tuple[Sequence[Any], Sequence[Any]]


def lies_over_itself(tensor: Any) -> bool:
    """Whether two elements of a tensor lie in the same memory, as after `expand`."""
    reach = 0
    for stride, length in sorted(zip(tensor.stride(), tensor.shape)):
        if length > 1:
            if stride <= reach:
                return len(_offsets(tensor)) < int(tensor.numel())
            reach += stride * (length - 1)
    return False


def _offsets(tensor: Any) -> set[int]:
    """The places of the elements, each once."""
    offsets = {0}
    for stride, length in zip(tensor.stride(), tensor.shape):
        offsets = {offset + index * stride for offset in offsets for index in range(length)}
    return offsets


def check_result(tensor: Any) -> None:
    """ValueError: results would go to elements that share memory."""
    if lies_over_itself(tensor):
        text = f"has the shape {tuple(tensor.shape)} and the strides {tuple(tensor.stride())}, so elements share memory"
        raise ValueError(f"pccl: a tensor for results {text}; pass tensor.contiguous(), and copy from that")


def tangled(parts: Iterable[Operands]) -> bool:
    """Whether an output of one part of a call lies over an input or an output of another part."""
    extents = sorted(
        (*_extent(tensor), writes, number)
        for number, sides in enumerate(parts)
        for writes, tensors in enumerate(sides)
        for tensor in tensors
        if tensor.numel()
    )
    begun: list[tuple[int, int, int]] = []  # the end, whether it is written, the part: of those that reach to the current one
    for begin, end, writes, number in extents:
        begun = [other for other in begun if other[0] > begin]
        if any(part != number and (writes or written) for _, written, part in begun):
            return True
        begun.append((end, writes, number))
    return False


def _extent(tensor: Any) -> tuple[int, int]:
    """The first byte of a tensor and the one behind its last, with the gaps between them."""
    reach = sum((length - 1) * stride for length, stride in zip(tensor.shape, tensor.stride()))
    return tensor.data_ptr(), tensor.data_ptr() + (reach + 1) * tensor.element_size()
