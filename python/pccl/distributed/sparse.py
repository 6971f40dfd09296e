"""All-reduce of sparse tensors: everybody's coordinates and values at everybody, and summed up there."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any, Optional

import torch
import torch.distributed as dist

from pccl.distributed.tensors import plain
from pccl.distributed.work import Call
from pccl.engine import Operation, World, at_once


def all_reduce_sparse(size: int, tensor: torch.Tensor, op: Any, opts: Any) -> Call:
    """Ranks first tell each other how many values they have, which the call waits for; the values travel as any other collective.

    ValueError: an operator that is not SUM.
    """
    if op != dist.ReduceOp.SUM:
        raise ValueError(f"pccl: sparse tensors are summed up only, not reduced by {op}; pass tensor.to_dense()")
    mine = tensor.detach().coalesce()
    indices, values = mine.indices().contiguous(), plain(mine.values())
    width, length = indices.shape[0], mine.values().shape[1:].numel() * (2 if tensor.is_complex() else 1)
    gathered: list[torch.Tensor] = []

    def launch(world: World, deadline: Optional[float]) -> list[Operation]:
        counts = torch.empty(size, dtype=torch.int64)
        world.all_gather(torch.tensor([indices.shape[1]]), counts, deadline=deadline).wait()
        numbers = counts.tolist()
        every_index = torch.empty(sum(numbers) * width, dtype=torch.int64)
        every_value = torch.empty(sum(numbers) * length, dtype=values.dtype)
        gathered[:] = [every_index, every_value, counts]
        with at_once:
            return [
                world.all_gather_v(indices, every_index, [n * width for n in numbers], deadline=deadline),
                world.all_gather_v(values, every_value, [n * length for n in numbers], deadline=deadline),
            ]

    def finish() -> None:
        every_index, every_value, counts = gathered
        numbers = counts.tolist()
        where = torch.cat([part.view(width, -1) for part in torch.split(every_index, [n * width for n in numbers])], dim=1)
        dense = tuple(mine.values().shape[1:])
        if tensor.is_complex():
            every_value = torch.view_as_complex(every_value.view(-1, 2))
        whole = torch.sparse_coo_tensor(where, every_value.view(sum(numbers), *dense), tensor.shape).coalesce()
        with torch.no_grad():  # not of what detach makes, whose coordinates are its own
            tensor.copy_(whole)

    return Call(launch, [tensor], finish, opts)
