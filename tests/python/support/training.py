"""A model that is trained by several ranks, each on its part of the data, or by one on all of it."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Callable

import torch
from torch import nn


def trained(wrap: Callable[[nn.Module], nn.Module], rank: int, size: int) -> list[torch.Tensor]:
    """Three steps on this rank's part of the data."""
    torch.manual_seed(1)
    model = wrap(nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data, target = torch.randn(12, 6), torch.randn(12, 2)
    for _ in range(3):
        optimizer.zero_grad()
        share = slice(rank * 12 // size, (rank + 1) * 12 // size)
        nn.functional.mse_loss(model(data[share]), target[share]).backward()
        optimizer.step()
    return [p.full_tensor() if hasattr(p, "full_tensor") else p.detach().clone() for p in model.parameters()]
