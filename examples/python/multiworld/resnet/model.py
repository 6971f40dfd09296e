"""A residual classifier of small images with weights from a seed, so that nothing is downloaded and each result can be checked."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import torch
from torch import nn

CLASSES = ("plane", "car", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


class Stage(nn.Module):
    """Two convolutions beside a shorter way; halves the picture."""

    def __init__(self, channels_in: int, channels_out: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels_in, channels_out, 3, stride=2, padding=1, bias=False)
        self.first_norm = nn.BatchNorm2d(channels_out)
        self.second = nn.Conv2d(channels_out, channels_out, 3, padding=1, bias=False)
        self.second_norm = nn.BatchNorm2d(channels_out)
        self.shorter = nn.Conv2d(channels_in, channels_out, 1, stride=2, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.first_norm(self.first(x)))
        return torch.relu(self.second_norm(self.second(y)) + self.shorter(x))


def classifier(seed: int = 0) -> nn.Module:
    """Of pictures (N, 3, 32, 32) into ten classes; the same weights for the same seed.

    Nothing is learnt; but norms know what pictures look like, so that not all are of one class.
    """
    torch.manual_seed(seed)
    stages = [Stage(16, 16), Stage(16, 32), Stage(32, 64)]
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), *stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.BatchNorm1d(64), nn.Linear(64, len(CLASSES)),
    )
    for module in model.modules():
        if isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d)):
            module.momentum = 1.0
    with torch.no_grad():
        model(torch.cat([picture(-number) for number in range(1, 33)]))
    return model.eval()


def picture(number: int) -> torch.Tensor:
    """A made-up picture (1, 3, 32, 32): the same for the same number."""
    generator = torch.Generator().manual_seed(number)
    coarse = torch.randn(1, 3, 4, 4, generator=generator)
    return nn.functional.interpolate(coarse, size=(32, 32), mode="bilinear") + 0.3 * torch.randn(1, 3, 32, 32, generator=generator)


@torch.no_grad()
def classify(model: nn.Module, image: torch.Tensor) -> torch.Tensor:
    """The class, int64 (1,)."""
    return model(image).argmax(1)
