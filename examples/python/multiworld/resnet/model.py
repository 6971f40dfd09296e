"""A residual classifier of scikit-learn's handwritten digits: random layers, from a seed, and a last one that is fitted to a thousand digits.

So nothing is downloaded, every process has the same weights within a second or two, and each result can be checked.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import functools

import torch
from sklearn.datasets import load_digits
from torch import nn

CLASSES = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
LEARNT = 1000  # of 1797 digits; the others are the pictures


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


@functools.cache
def digits() -> tuple[torch.Tensor, torch.Tensor]:
    """All of them, in one order: pixels from -1 to 1, (1797, 1, 8, 8), and what they show."""
    pixels, labels = load_digits(return_X_y=True)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    return torch.tensor(pixels, dtype=torch.float32)[order].view(-1, 1, 8, 8) / 8 - 1, torch.tensor(labels)[order]


def enlarged(pixels: torch.Tensor) -> torch.Tensor:
    """As pictures of three colours (N, 3, 32, 32)."""
    return nn.functional.interpolate(pixels, size=(32, 32), mode="bilinear").expand(-1, 3, -1, -1).contiguous()


def number_of(number: int) -> int:
    """Which digit a picture is: one that the classifier has not learnt, and the same for the same number."""
    return LEARNT + number % (len(digits()[1]) - LEARNT)


def picture(number: int) -> torch.Tensor:
    """A picture (1, 3, 32, 32)."""
    return enlarged(digits()[0][number_of(number)][None])


def shown(number: int) -> int:
    """What is to be seen on it."""
    return int(digits()[1][number_of(number)])


@torch.no_grad()
def classifier(seed: int = 0) -> nn.Module:
    """Of pictures (N, 3, 32, 32) into ten classes; the same weights for the same seed."""
    torch.manual_seed(seed)
    pixels, labels = (each[:LEARNT] for each in digits())
    layers = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), Stage(16, 16), Stage(16, 32), Stage(32, 64),
        nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.BatchNorm1d(256),
    )
    for module in layers.modules():
        if isinstance(module, (nn.BatchNorm1d, nn.BatchNorm2d)):
            module.momentum = 1.0
    layers(enlarged(pixels[:64]))  # the norms know now what pictures look like
    layers.eval()
    last = nn.Linear(256, len(CLASSES))
    features = torch.cat([layers(enlarged(pixels)), torch.ones(LEARNT, 1)], 1).double()
    wanted = nn.functional.one_hot(labels, len(CLASSES)).double()
    fitted = torch.linalg.solve(features.T @ features + torch.eye(257, dtype=torch.float64), features.T @ wanted)  # ridge regression
    last.weight.copy_(fitted[:-1].T)
    last.bias.copy_(fitted[-1])
    return nn.Sequential(layers, last).eval()


@torch.no_grad()
def classify(model: nn.Module, image: torch.Tensor) -> torch.Tensor:
    """The class, int64 (1,)."""
    return model(image).argmax(1)
