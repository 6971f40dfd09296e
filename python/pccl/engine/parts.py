"""Buffers beside each other, and their parts: of one type, as large as they have to be, and within their memory."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any, Optional, Sequence

from pccl._native import ffi
from pccl.arguments import array, mistake
from pccl.buffers import Buffer, as_buffer


def parts_of(
    name: str, what: str, buffer: Optional[Buffer], counts: Optional[Sequence[int]], places: Optional[Sequence[int]], size: int
) -> tuple[Any, Any]:
    """Counts and places of `size` members, as C takes them: parts that lie within their buffer, of which C knows the beginning only."""
    arrays = _sizes(name, f"counts of {what}", counts), _sizes(name, f"places of {what}", places)
    if buffer is None or counts is None:
        return arrays
    for which, list_ in (("counts", counts), ("places", places)):
        if list_ is not None and len(list_) != size:
            raise mistake(name, f"there are {len(list_)} {which} for {what}, and {size} members; pass one for each, by rank")
    if places is None:
        end = sum(counts)
    else:
        end = max((place + count for place, count in zip(places, counts) if count), default=0)
    if end > buffer.count:
        raise mistake(name, f"the parts of {what} end at element {end}, but it has {buffer.count}; pass a larger one")
    return arrays


def own_part(name: str, what: str, buffer: Buffer, counts: Optional[Sequence[int]], rank: int) -> None:
    """This member's part is as large as its buffer, of which C does not know that either."""
    if counts is not None and counts[rank] != buffer.count:
        raise mistake(name, f"{what} has {buffer.count} elements, but counts says {counts[rank]} for this rank, {rank}; make them equal")


def alike(name: str, part: Buffer, whole: Buffer, count: Optional[int]) -> None:
    """Both buffers of one type, and the second of `count` elements."""
    if part.datatype is not whole.datatype:
        raise mistake(name, f"one buffer is of {part.datatype.name}, the other of {whole.datatype.name}; convert one")
    if count is not None and whole.count != count:
        raise mistake(name, f"one buffer has {part.count} elements, the other {whole.count}, where {count} are needed")


def at_root(memory: Any, name: str, writable: bool = False) -> Optional[Buffer]:
    return None if memory is None else as_buffer(memory, name, writable)


def pointer_of(buffer: Optional[Buffer]) -> Any:
    return ffi.NULL if buffer is None else buffer.pointer


def _sizes(name: str, what: str, numbers: Optional[Sequence[int]]) -> Any:
    return ffi.NULL if numbers is None else array(name, what, numbers, "size_t")
