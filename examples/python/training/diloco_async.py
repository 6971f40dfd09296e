"""DiLoCo that never waits for the network: the all-reduce of a round goes on during the inner steps of the next one.

    pip install ".[examples]"        in the folder of the clone: what it needs
    python diloco_async.py [--peers 3] [--rounds 18] [--inner 20] [--quantize] [--kill-at N] [--join-at N]

So the outer step by a round's pseudo-gradients comes one round late, at all peers in the same place; until then each peer goes on from the
weights that all have less what it has gained itself.  A thread runs the all-reduce, and repeats it with those who are left where a peer
is lost.  After each round all ask whether somebody waits to join.  If so they let the
all-reduce come to its end, admit who waits, and synchronise: newcomers receive only, the others send only, whose content has to be what
newcomers get, however many come.  From the next round on a newcomer is a peer like all others.

A peer that the others have excluded, since it was silent for too long, ends with an error, and so do newcomers when all whom they could
receive from are lost; start them again.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Callable, NamedTuple, Optional, TypeVar

import launch
import torch
from chargpt import GPT, write
from loops import Inner, Outer, add_options, quantisation
from report import Report, digest

from pccl import (
    Attribute, Communicator, PCCLError, RankConnectionLost, ReduceOp, SharedState, SharedStateSyncStrategy, TensorInfo, TooFewPeers,
)
from pccl.types import ErrorClass

T = TypeVar("T")


class Mean(NamedTuple):
    """What a round's all-reduce gives, and how long it took."""

    gradient: torch.Tensor
    loss: float
    peers: int
    sent: int
    seconds: float
    round_seconds: float


class Peer:
    """One peer: `facts` are how many rounds have come to their outer step, and whether the run has begun."""

    def __init__(self, options: argparse.Namespace, report: Report, communicator: Communicator, background: ThreadPoolExecutor) -> None:
        self.options = options
        self.report = report
        self.communicator = communicator
        self.background = background
        self.inner = Inner(GPT(options.seed), options)
        self.outer = Outer(self.inner.model.parameters(), options)
        self.facts = torch.zeros(2, dtype=torch.int64)
        everything = {"facts": self.facts, **self.outer.state}
        self.shared = SharedState([TensorInfo.from_torch(tensor, name) for name, tensor in everything.items()])
        self.synchronized = False

    # -- Votes: all peers call the same ones in the same order, and branch on what a vote has told all of them --

    def size(self) -> int:
        return self.communicator.get_attribute(Attribute.GLOBAL_WORLD_SIZE)

    def share(self, strategy: SharedStateSyncStrategy) -> int:
        """The bytes that this peer has received."""
        if self.synchronized:
            self.shared.push_revision()
        self.synchronized = True
        return again(lambda: self.communicator.sync_shared_state(self.shared, strategy)).rx_bytes

    def admit(self) -> None:
        again(self.communicator.update_topology)
        self.share(SharedStateSyncStrategy.SEND_ONLY)

    def enter(self) -> None:
        """Joins the run; who comes first waits until there are enough for it to begin."""
        self.communicator.connect()
        if self.size() > 1:
            received = self.share(SharedStateSyncStrategy.RECEIVE_ONLY)
            self.report.event(int(self.facts[0]), f"has received {received / 1e3:,.0f} KB, and sent none")
        else:
            self.share(SharedStateSyncStrategy.SEND_ONLY)
        while not self.facts[1]:
            if self.size() >= self.options.peers:
                self.facts[1] = 1
            else:
                time.sleep(0.1)
                self.admit()

    # -- Rounds --

    def reduce(self, gradient: torch.Tensor, loss: torch.Tensor, round_seconds: float) -> Mean:
        """In the background: the means over all peers that are left; alone, what this one has."""
        began = time.monotonic()
        mean, peers, sent = gradient.clone(), 1, 0
        for tag, tensor, how in ((0, mean, quantisation(self.options)), (1, loss, None)):
            while True:
                try:
                    info = self.communicator.all_reduce(tensor, tensor, op=ReduceOp.AVG, tag=tag, quantization_options=how)
                    peers, sent = info.local_world_size, sent + info.tx_bytes
                    break
                except RankConnectionLost as error:
                    if error.error_class is not ErrorClass.RETRY:
                        raise
                except TooFewPeers:
                    break
        return Mean(mean, loss.item(), peers, sent, time.monotonic() - began, round_seconds)

    def land(self, late: "Future[Mean]") -> None:
        """The outer step of a round, when its all-reduce has come to its end."""
        began = time.monotonic()
        mean = late.result()
        waited = time.monotonic() - began
        self.outer.step(mean.gradient)
        round_ = int(self.facts[0])
        self.facts[0] += 1
        more = f", {mean.sent / 1e3:,.0f} KB sent, all-reduce {1e3 * mean.seconds:.0f} ms of which {1e3 * waited:.0f} ms waited for"
        self.report.step(round_, mean.peers, mean.loss, mean.peers * self.inner.characters, more, mean.round_seconds)

    def train(self) -> None:
        late: "Optional[Future[Mean]]" = None  # the all-reduce of the round before
        gradient = None                        # what this peer has given to it
        round_ = int(self.facts[0])
        while round_ < self.options.steps:
            self.report.begin(round_, self.communicator)
            began = time.monotonic()
            self.outer.begin(gradient)
            loss = self.inner.steps(round_, self.communicator.world.rank, self.report.middle)
            gradient = self.outer.pseudo_gradient()
            if late is not None:
                self.land(late)
            late = self.background.submit(self.reduce, gradient, loss, time.monotonic() - began)
            round_ += 1
            knocks = self.communicator.are_peers_pending
            if self.report.await_newcomer(round_ - 1, knocks) or again(knocks):
                self.land(late)
                late = gradient = None
                self.admit()
        if late is not None:
            self.land(late)
        self.outer.begin()
        self.report.end(round_, digest(self.outer.state.values()), write(self.inner.model, "The ", 200, self.options.seed))


def again(vote: Callable[[], T]) -> T:
    """Calls it until it is not undone by a loss, which all peers are told alike."""
    while True:
        try:
            return vote()
        except PCCLError as error:
            if error.error_class is not ErrorClass.RETRY:
                raise


def peer(options: argparse.Namespace, report: Report) -> None:
    with Communicator(options.master) as communicator, ThreadPoolExecutor(1) as background:
        one = Peer(options, report, communicator, background)
        one.enter()
        one.train()


if __name__ == "__main__":
    parser = launch.parser_of(__doc__, "round", "characters", peers=3, steps=18, every=1)
    add_options(parser, outer_rate=0.4)
    sys.exit(launch.run(parser.parse_args(), peer))
