"""The two loops of DiLoCo: inner steps of AdamW that a peer makes by itself, and an outer step of all peers by what those have changed.

An outer step is one of stochastic gradient descent with Nesterov momentum.  Its gradient is the pseudo-gradient: the weights at the
beginning of a round less those after the inner steps, averaged over the peers.  So peers exchange as much as with data-parallel training
in one step, once in so many steps.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import argparse
from typing import Callable, Iterable, Optional

import torch
import torch._dynamo  # noqa: F401 - optimisers need it; before peers are forked, or each would import it
from chargpt import CONTEXT, Text, loss_of
from torch import nn

import pccl


class Inner:
    """A model and its AdamW, which stay with the peer: nobody else needs the moments, and a newcomer begins without."""

    def __init__(self, model: nn.Module, options: argparse.Namespace) -> None:
        self.model = model
        self.options = options
        self.optimizer = torch.optim.AdamW(model.parameters(), lr=options.rate)
        self.text = Text(options.text)

    @property
    def characters(self) -> int:
        """How many it learns from in a round."""
        return self.options.inner * self.options.batch * CONTEXT

    def steps(self, round_: int, place: int, in_the_middle: Callable[[int], None]) -> torch.Tensor:
        """A round's inner steps, on the data of the peer at that place; their mean loss."""
        options = self.options
        total = torch.zeros(())
        for number in range(options.inner):
            if number == options.inner // 2:
                in_the_middle(round_)
            self.optimizer.zero_grad()
            loss = loss_of(self.model, self.text.batch(options.batch, options.seed, round_, place, number))
            loss.backward()
            self.optimizer.step()
            total += loss.detach()
        return total / options.inner


class Outer:
    """The weights that all peers agree on, as one vector, and their momentum: all that a newcomer needs."""

    def __init__(self, parameters: Iterable[torch.Tensor], options: argparse.Namespace) -> None:
        self.parameters = list(parameters)
        self.weights = torch.cat([parameter.detach().reshape(-1) for parameter in self.parameters])
        self.moment = torch.zeros_like(self.weights)
        self.start = self.weights  # of the round
        self.rate, self.momentum = options.outer_rate, options.outer_momentum

    @property
    def state(self) -> dict[str, torch.Tensor]:
        return {"outer weights": self.weights, "outer moment": self.moment}

    @torch.no_grad()
    def begin(self, ahead: Optional[torch.Tensor] = None) -> None:
        """A round begins at the weights that all have; `ahead`: less what this peer has gained and the others do not know yet."""
        self.start = self.weights.clone() if ahead is None else self.weights - ahead
        sizes = [parameter.numel() for parameter in self.parameters]
        for parameter, part in zip(self.parameters, self.start.split(sizes)):
            parameter.copy_(part.view_as(parameter))

    @torch.no_grad()
    def pseudo_gradient(self) -> torch.Tensor:
        """By how much the inner steps have lowered each weight, in memory of its own."""
        return self.start - torch.cat([parameter.reshape(-1) for parameter in self.parameters])

    def step(self, mean: torch.Tensor) -> None:
        """The outer step, by the mean of all peers' pseudo-gradients: the same bits at all peers."""
        self.moment.mul_(self.momentum).add_(mean)
        self.weights.sub_(mean.add(self.moment, alpha=self.momentum), alpha=self.rate)


def quantisation(options: argparse.Namespace) -> Optional[pccl.QuantizationOptions]:
    """How pseudo-gradients are sent: as they are, or in a quarter of the bytes."""
    return pccl.QuantizationOptions() if options.quantize else None


def add_options(parser: argparse.ArgumentParser, outer_rate: float, inner: int = 20) -> None:
    """Those that all forms of DiLoCo have."""
    parser.add_argument("--inner", type=int, default=inner, metavar="STEPS", help=f"inner steps of a round ({inner})")
    parser.add_argument("--batch", type=int, default=8, help="pieces of text of each process in an inner step (8)")
    parser.add_argument("--rate", type=float, default=3e-3, help="learning rate of inner steps (0.003)")
    parser.add_argument("--outer-rate", type=float, default=outer_rate, help=f"learning rate of outer steps ({outer_rate})")
    parser.add_argument("--outer-momentum", type=float, default=0.9, help="Nesterov's (0.9)")
    parser.add_argument("--quantize", action="store_true", help="send pseudo-gradients as 8-bit integers, a range for each 256 of them")
    parser.add_argument("--text", metavar="FILE", help="to learn, in place of Python's language reference")
