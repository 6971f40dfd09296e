"""All-reduce of sparse tensors of torch: everybody's coordinates and values at everybody, and summed up there."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Callable

import torch

from pccl.comms.communicator import TorchComm
from pccl.comms.reduce_op import RedOpType, ReduceOp
from pccl.comms.work import TorchWork


def all_reduce_sparse(comm: TorchComm, tensor: torch.Tensor, op: ReduceOp, seconds: float) -> tuple[list[TorchWork], Callable[[], None]]:
    """The works, and what to do when they have ended.  Ranks first tell each other how many values they have, which it waits for.

    ValueError: an operator that is not SUM.
    """
    if op.type is not RedOpType.SUM:
        raise ValueError(f"sparse tensors are summed up only, not reduced by {op.type.name}; pass tensor.to_dense()")
    mine = tensor.detach().coalesce()
    indices, values = mine.indices().contiguous(), mine.values().contiguous()
    counts = torch.zeros(comm.get_size(), dtype=torch.int64)
    comm.all_gather_single(counts, torch.tensor([indices.shape[1]]), timeout=seconds)
    every_index = [indices.new_empty(indices.shape[0], count) for count in counts.tolist()]
    every_value = [values.new_empty(count, *values.shape[1:]) for count in counts.tolist()]

    def finish() -> None:
        whole = torch.sparse_coo_tensor(torch.cat(every_index, 1), torch.cat(every_value), tensor.shape).coalesce()
        with torch.no_grad():
            tensor.copy_(whole)

    works = [
        comm.all_gather_v(every_index, indices, True, timeout=seconds), comm.all_gather_v(every_value, values, True, timeout=seconds),
    ]
    return works, finish
