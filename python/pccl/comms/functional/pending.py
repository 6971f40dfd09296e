"""Results that are not there yet: which work each belongs to, by where its memory begins."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import threading
from typing import Any, Sequence

import torch

_works: dict[int, tuple[Any, Any]] = {}  # the work, and what it writes, whose memory is not used anew meanwhile
_unbound: list[Any] = []                 # works without a result
_lock = threading.Lock()


def enter(tensors: Any, work: Any) -> None:
    """These are results of that work."""
    listed = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
    with _lock:
        for address in [address for address, (old, _) in _works.items() if old.is_completed()]:
            del _works[address]
        _unbound[:] = [old for old in _unbound if not old.is_completed()]
        for tensor in listed:
            if tensor.numel():
                _works[tensor.data_ptr()] = (work, tensor)
        if not listed:
            _unbound.append(work)


def waited(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The same tensors, when they are there; of none, when all works without a result have ended.  Raises how a work failed."""
    with _lock:
        works = [_works.pop(tensor.data_ptr(), (None, None))[0] for tensor in tensors]
        if not tensors:
            works, _unbound[:] = list(_unbound), []
    for work in works:
        if work is not None:
            work.wait()
    return [tensor.clone() for tensor in tensors]
