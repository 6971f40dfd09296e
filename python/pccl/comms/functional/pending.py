"""Results of asynchronous operations: each has a work, and memory of its own, which the operation writes.

An operator returns a placeholder for each result.  The operation never writes to it, because a compiled program may use the memory of a
placeholder that nothing reads for other values.  `arrive` copies each result into its placeholder.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import threading
from typing import Any, NamedTuple, Sequence

import torch
from torch.multiprocessing import reductions

StorageWeakRef: Any = reductions.StorageWeakRef  # has no types


class _Entry(NamedTuple):
    work: Any
    placeholder: Any  # a StorageWeakRef: its address belongs to no other storage while this exists
    result: torch.Tensor


_entries: dict[int, _Entry] = {}  # by the address of the placeholder's storage
_lock = threading.Lock()


def token() -> torch.Tensor:
    """The result of an operation that writes no tensor."""
    return torch.zeros(1, dtype=torch.uint8)


def enter(results: Any, work: Any) -> Any:
    """Placeholders for the results of that work, in the same form: one tensor, or a list of tensors."""
    if not isinstance(results, torch.Tensor):
        return [enter(result, work) for result in results]
    placeholder = torch.empty_like(results, memory_format=torch.contiguous_format)
    held = StorageWeakRef(placeholder.untyped_storage())
    with _lock:
        for address in [address for address, old in _entries.items() if old.placeholder.expired() and old.work._ended()]:
            del _entries[address]
        _entries[held.cdata] = _Entry(work, held, results)
    return placeholder


def arrive(tensors: Sequence[torch.Tensor]) -> None:
    """Waits until the tensors have their values.  Raises the error of an operation that failed, each time."""
    addresses = [tensor.untyped_storage()._cdata for tensor in tensors]
    for address in addresses:
        entry = _entries.get(address)
        if entry is not None:
            entry.work.wait()
    for tensor, address in zip(tensors, addresses):
        with _lock:
            entry = _entries.pop(address, None)
            if entry is not None:
                tensor.copy_(entry.result)


def waited(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Copies of the tensors, as soon as they have their values."""
    arrive(tensors)
    return [tensor.clone() for tensor in tensors]


def completed(tensors: Sequence[torch.Tensor]) -> bool:
    """Whether the operations that write these tensors have succeeded."""
    entries = [_entries.get(tensor.untyped_storage()._cdata) for tensor in tensors]
    return all(entry is None or entry.work.is_completed() for entry in entries)
