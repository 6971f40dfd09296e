"""Tensors, arrays and plain buffers: memory that a back-end can use in place is used there, and other memory is copied.

Memory that is not contiguous is copied, and for the native back-end memory on another device than the CPU.  A list of tensors is one
piece of memory while an operation has it.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import sys
from typing import Any, Callable, NamedTuple, Optional, Sequence

from pccl.buffers import library_of
from pccl.engine.overlaps import check_result

#: Brings results to where the program wants them; None: they are there.
Land = Optional[Callable[[], None]]


class Place(NamedTuple):
    """Memory that results go to, and what brings them from there to the program's."""

    memory: Any
    land: Land


def is_tensor(memory: Any) -> bool:
    """Whether it is torch's."""
    return library_of(memory) == "torch"


def is_array(memory: Any) -> bool:
    """Whether it is numpy's."""
    return library_of(memory) == "numpy"


def readable(memory: Any, any_device: bool = False) -> Any:
    """The same values in contiguous memory, of the CPU unless `any_device`."""
    if is_tensor(memory):
        usable = memory.is_contiguous() and (any_device or memory.device.type == "cpu")
        return memory if usable else (memory.detach() if any_device else memory.detach().cpu()).contiguous()
    if is_array(memory):
        return memory if memory.flags.c_contiguous else memory.copy(order="C")
    return memory


def writable(memory: Any, any_device: bool = False) -> Place:
    """Contiguous memory with the same values, that results go to.  ValueError: elements of a tensor share memory."""
    used = readable(memory, any_device)
    if used is not memory and is_tensor(memory):
        check_result(memory)
    return Place(used, None if used is memory else lambda: copy_into(memory, used))


def extent(memory: Any) -> tuple[int, str]:
    """How many elements of which type."""
    if is_tensor(memory):
        return memory.numel(), str(memory.dtype)
    if is_array(memory):
        return memory.size, memory.dtype.str
    view = memoryview(memory)
    return view.nbytes // view.itemsize, view.format


def check_list(name: str, memories: Optional[Sequence[Any]], like: Any, size: int) -> Sequence[Any]:
    """The list.  ValueError: not one for each rank, or not all of one type and size."""
    if memories is None or len(memories) != size:
        given = "None" if memories is None else f"a list of {len(memories)}"
        raise ValueError(f"pccl: {name} is {given}; pass {size} tensors, one for each rank")
    for rank, memory in enumerate(memories):
        if extent(memory) != extent(like):
            count, kind = extent(like)
            raise ValueError(f"pccl: {name}[{rank}] has {extent(memory)}, where {count} elements of {kind} are needed; make them alike")
    return memories


def flat(like: Any, parts: int) -> Any:
    """New memory of the CPU for so many parts as large as `like`, one behind the other."""
    count, kind = extent(like)
    if is_tensor(like):
        return sys.modules["torch"].empty(parts * count, dtype=like.dtype)
    if is_array(like):
        return sys.modules["numpy"].empty(parts * count, dtype=like.dtype)
    whole: Any = memoryview(bytearray(parts * memoryview(like).nbytes))
    return whole.cast(kind)


def joined(memories: Sequence[Any]) -> Any:
    """New memory with the values of all, one behind the other."""
    whole = flat(memories[0], len(memories))
    count = extent(memories[0])[0]
    for i, memory in enumerate(memories):
        copy_into(whole[i * count:(i + 1) * count], memory)
    return whole


def apart(memories: Sequence[Any]) -> Place:
    """New memory for results of all, one behind the other, that are brought to each when they have come."""
    whole = flat(memories[0], len(memories))
    count = extent(memories[0])[0]

    def land() -> None:
        for i, memory in enumerate(memories):
            copy_into(memory, whole[i * count:(i + 1) * count])

    return Place(whole, land)


def copy_into(target: Any, source: Any) -> None:
    """As many elements of the same type, whatever the shapes."""
    if is_tensor(target):
        with sys.modules["torch"].no_grad():
            target.copy_(source.reshape(target.shape))
    elif is_array(target):
        sys.modules["numpy"].copyto(target, source.reshape(target.shape))
    else:
        memoryview(target).cast("B")[:] = memoryview(source).cast("B")
