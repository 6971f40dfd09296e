"""`torch.distributed` as it looks, over communicators: with ``init_process_group(use_torchcomms=True)`` each call is one of a communicator.

Without it each is torch's.  Groups are torch's objects in either case, so that ranks and sizes are asked for as ever; collectives of
`torch.distributed` itself say that they are not for groups with communicators.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import torch.distributed as _dist
from torch._C._distributed_c10d import HashStore, Store
from torch.distributed import (
    GroupMember, ProcessGroup, ReduceOp, Work, get_process_group_ranks, get_rank, get_world_size, group, is_available,
    is_initialized,
)

from pccl.comms.distwrap.collectives import (
    P2POp, all_gather, all_gather_into_tensor, all_gather_object, all_reduce, all_to_all, all_to_all_single, barrier, batch_isend_irecv,
    broadcast, broadcast_object_list, gather, gather_object, irecv, isend, recv, reduce, reduce_scatter, reduce_scatter_tensor, scatter,
    scatter_object_list, send,
)
from pccl.comms.distwrap.collectives import _make_nccl_premul_sum as _make_nccl_premul_sum
from pccl.comms.distwrap.collectives_extension import get_mem_allocator, new_window, reduce_scatter_quantized, register_mem_pool
from pccl.comms.distwrap.new_comm import destroy_process_group, init_process_group, new_group, split_group

__all__ = [
    "GroupMember", "HashStore", "P2POp", "ProcessGroup", "ReduceOp", "Store", "Work", "all_gather", "all_gather_into_tensor",
    "all_gather_object", "all_reduce", "all_to_all", "all_to_all_single", "barrier", "batch_isend_irecv", "broadcast",
    "broadcast_object_list", "destroy_process_group", "gather", "gather_object", "get_mem_allocator", "get_process_group_ranks", "get_rank",
    "get_world_size", "group", "init_process_group", "irecv", "is_available", "is_initialized", "isend", "new_group", "new_window", "recv",
    "reduce", "reduce_scatter", "reduce_scatter_quantized", "reduce_scatter_tensor", "register_mem_pool", "scatter", "scatter_object_list",
    "send", "split_group",
]

for _name in ("ProcessGroupGloo", "ProcessGroupNCCL"):  # where this torch has them
    if hasattr(_dist, _name):
        globals()[_name] = getattr(_dist, _name)
        __all__.append(_name)
