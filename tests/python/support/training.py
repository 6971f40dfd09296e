"""A model that is trained in one process, for comparison with what ranks train together."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any

import torch
from torch import nn


def net() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(6, 10), nn.Tanh(), nn.Linear(10, 3))


def batch(step: int, key: int) -> tuple[torch.Tensor, torch.Tensor]:
    numbers = torch.Generator().manual_seed(50 * step + key)
    return torch.randn(5, 6, generator=numbers), torch.randn(5, 3, generator=numbers)


def trained(members: Any, steps: int) -> list[list[float]]:
    """In one process, with the ranks that `members` tells for each step."""
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(steps):
        optimizer.zero_grad()
        losses = [nn.functional.mse_loss(model(x), y) for x, y in (batch(step, key) for key in members(step))]
        (sum(losses) / len(losses)).backward()
        optimizer.step()
    return [parameter.detach().reshape(-1).tolist() for parameter in model.parameters()]
