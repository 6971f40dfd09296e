"""Data-parallel training on real data: scikit-learn's handwritten digits, shared out among peers that may be killed and may join.

    pip install ".[examples]"        in the folder of the clone: what it needs
    python digits.py [--peers 3] [--steps 300] [--kill-at N] [--join-at N]

Each step every peer takes its part of the next images, and the gradients are averaged over all who are there.  Weights and moments are
shared state: a newcomer gets them from the others, with the number of the step.  Who is killed takes with it the images of that step,
nothing else.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import argparse
import sys

import launch
import torch
from report import Report, digest
from sklearn.datasets import load_digits
from torch import nn

import pccl

IMAGES = 1437  # of 1797 are learnt, the others are for the test at the end


def data() -> tuple[torch.Tensor, torch.Tensor]:
    """1797 images of 8 by 8 pixels, from 0 to 1, and what they show."""
    pixels, labels = load_digits(return_X_y=True)
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    return torch.tensor(pixels, dtype=torch.float32)[order] / 16, torch.tensor(labels)[order]


def net(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 10))


def chosen(step: int, place: int, peers: int, batch: int, seed: int) -> torch.Tensor:
    """The images that the peer at this place takes in that step: no two peers the same ones, while there are enough."""
    place %= max(1, IMAGES // batch)
    order = torch.randperm(IMAGES, generator=torch.Generator().manual_seed(1_000_003 * seed + step))
    return order[place * batch:(place + 1) * batch]


def peer(options: argparse.Namespace, report: Report) -> None:
    pixels, labels = data()
    model = net(options.seed)
    weights = {name: parameter.data for name, parameter in model.named_parameters()}
    moments = {f"moment of {name}": torch.zeros_like(weight) for name, weight in weights.items()}

    def step(now: pccl.Step) -> None:
        communicator = now.communicator
        report.begin(now.index, communicator)
        mine = chosen(now.index, communicator.world.rank, now.world_size, options.batch, options.seed)
        model.zero_grad()
        loss = nn.functional.cross_entropy(model(pixels[mine]), labels[mine])
        loss.backward()
        report.middle(now.index)
        report.await_newcomer(now.index, communicator.are_peers_pending)
        mean = loss.detach().clone()
        gradients = [parameter.grad for parameter in model.parameters()]
        now.all_reduce_many([*gradients, mean])
        for weight, moment, gradient in zip(weights.values(), moments.values(), gradients):
            moment.mul_(0.9).add_(gradient)  # the same bits at all peers, as the gradient's are
            weight.sub_(moment, alpha=options.rate)
        report.step(now.index, now.world_size, mean.item(), now.world_size * options.batch)

    done = pccl.run(options.master, step, state={**weights, **moments}, steps=options.steps, begin_with=options.peers)
    with torch.no_grad():
        right = (model(pixels[IMAGES:]).argmax(1) == labels[IMAGES:]).float().mean().item()
    report.end(done, digest([*weights.values(), *moments.values()]), f"of {len(labels) - IMAGES} other images {right:.1%} are read rightly")


if __name__ == "__main__":
    parser = launch.parser_of(__doc__, "step", "images", peers=3, steps=300, every=25)
    parser.add_argument("--batch", type=int, default=32, help="images of each peer in a step (32)")
    parser.add_argument("--rate", type=float, default=0.05, help="learning rate (0.05)")
    sys.exit(launch.run(parser.parse_args(), peer))
