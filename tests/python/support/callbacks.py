"""Callbacks of futures that wait themselves."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist


def waits_in_callbacks(rank: int, size: int) -> Any:
    """A callback waits for the future of another operation, whose callback does, three deep; and beside that, in a work's own ways."""
    def summed(depth: int) -> Any:
        future = dist.all_reduce(torch.full((3,), rank + 1.0), async_op=True).get_future()
        return future.then(lambda done: done.value()[0][0].item() + (summed(depth - 1).wait() if depth else 0))

    def in_other_ways(_: Any) -> float:
        tensors = [torch.full((2,), float(i)) for i in range(3)]
        dist.all_reduce(tensors[0])
        dist.all_reduce(tensors[1], async_op=True).wait()
        torch.futures.wait_all([dist.all_reduce(tensors[2], async_op=True).get_future()])
        return sum(tensor[0].item() for tensor in tensors)

    nested = summed(3).wait()
    return nested, dist.all_reduce(torch.ones(1), async_op=True).get_future().then(in_other_ways).wait()
