"""Models that ranks train together, or one process by itself, for comparison."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any, Callable

import torch
from torch import nn


def net() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 10), nn.Tanh(), nn.Linear(10, 3))


def batch(step: int, key: int) -> tuple[torch.Tensor, torch.Tensor]:
    numbers = torch.Generator().manual_seed(50 * step + key)
    return torch.randn(5, 6, generator=numbers), torch.randn(5, 3, generator=numbers)


def trained(members: Any, steps: int, rounds: int = 1) -> list[list[float]]:
    """In one process, with the ranks that `members` tells for each step; so many times on the same data."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in list(range(steps)) * rounds:
        optimizer.zero_grad()
        losses = [nn.functional.mse_loss(model(x), y) for x, y in (batch(step, key) for key in members(step))]
        (sum(losses) / len(losses)).backward()
        optimizer.step()
    return [parameter.detach().reshape(-1).tolist() for parameter in model.parameters()]


def three_steps(wrap: Callable[[nn.Module], nn.Module], rank: int, size: int) -> list[torch.Tensor]:
    """Of another model, on this rank's part of the data; on all of it if `size` is 1."""
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
