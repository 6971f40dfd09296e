"""Features that groups with communicators have, and torch's groups lack: windows, memory for them, and a reduce-scatter of fewer bytes."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any, NoReturn

import torch
import torch.distributed as dist

from pccl.comms.arguments import whole_number
from pccl.comms.distwrap import pginfo
from pccl.comms.window import TorchCommWindow


def get_mem_allocator(group: Any = None) -> Any:
    """Of memory that windows of the group share on one host.  RuntimeError: the group has no communicator."""
    return pginfo.comm_of(group).get_mem_allocator()


def register_mem_pool(pool: Any, group: Any = None) -> NoReturn:
    """RuntimeError: pools are torch's of CUDA memory."""
    raise RuntimeError(
        "register_mem_pool: pools (torch.cuda.MemPool) are of GPU memory, which communicators on CPU have no use for; allocate tensors of "
        "get_mem_allocator(group), and pass them to new_window"
    )


def new_window(tensor: Any = None, group: Any = None) -> TorchCommWindow:
    """Collective: a window over the group, with `tensor` registered at once if it is given.  RuntimeError: it has no communicator."""
    return pginfo.comm_of(group, pginfo.device_among([tensor])).new_window(tensor)


def reduce_scatter_quantized(output: torch.Tensor, input: torch.Tensor, op: Any = dist.ReduceOp.SUM, seed: int = 0, group: Any = None) -> None:
    """Part r of `input`, of float32 and by rank as long as `output`, is summed into rank r's `output`; elements travel as bfloat16.

    They are rounded up or down at random, so that sums are right on average; equal seeds round equally.  The sum is of float32.  `op` is SUM
    or AVG.  ValueError: another type, size or operator.
    """
    for name, tensor in (("input", input), ("output", output)):
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"reduce_scatter_quantized: {name} is a {type(tensor).__name__}; pass a torch tensor")
    if input.dtype is not torch.float32 or output.dtype is not torch.float32:
        raise ValueError(f"reduce_scatter_quantized: input is {input.dtype} and output {output.dtype}; both have to be float32")
    if op not in (dist.ReduceOp.SUM, dist.ReduceOp.AVG):
        raise ValueError(f"reduce_scatter_quantized: op is {op}; pass SUM or AVG")
    comm = pginfo.comm_of(group, input.device.type)
    if input.numel() != output.numel() * comm.get_size():
        raise ValueError(
            f"reduce_scatter_quantized: input has {input.numel()} elements and output {output.numel()}; input has to have {comm.get_size()} "
            "times as many"
        )
    sent = _rounded(input.contiguous().view(-1), whole_number("seed", seed) * comm.get_size() + comm.get_rank())
    heard = torch.empty_like(sent)
    comm.all_to_all_single(heard, sent)
    total = heard.view(comm.get_size(), -1).float().sum(0)
    output.copy_((total / comm.get_size() if op == dist.ReduceOp.AVG else total).view_as(output))


def _rounded(values: torch.Tensor, seed: int) -> torch.Tensor:
    """As bfloat16, the upper half of the bits; the lower half is the chance of the next larger."""
    generator = torch.Generator().manual_seed(seed)
    chance = torch.randint(0, 1 << 16, values.shape, generator=generator, dtype=torch.int32)
    bits = torch.where(values.isfinite(), values.view(torch.int32) + chance, values.view(torch.int32))
    return (bits & -65536).view(torch.float32).to(torch.bfloat16)
