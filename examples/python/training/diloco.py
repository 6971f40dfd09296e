"""DiLoCo: peers train a character GPT by themselves, and agree on one model after each round of inner steps.

    pip install ".[examples]"        in the folder of the clone: what it needs
    python diloco.py [--peers 3] [--rounds 18] [--inner 20] [--quantize] [--kill-at N] [--join-at N]

A round is a step of `pccl.run`.  What all agree on, the outer weights and their momentum, is its shared state: a newcomer gets it with
the number of the round.  The inner steps of a peer that is killed are lost, and the round is the mean of the others'.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import argparse
import sys

import launch
from chargpt import GPT, write
from loops import Inner, Outer, add_options, quantisation
from report import Report, digest

import pccl


def peer(options: argparse.Namespace, report: Report) -> None:
    inner = Inner(GPT(options.seed), options)
    outer = Outer(inner.model.parameters(), options)

    def step(now: pccl.Step) -> None:
        communicator = now.communicator
        report.begin(now.index, communicator)
        outer.begin()
        loss = inner.steps(now.index, communicator.world.rank, report.middle)
        report.await_newcomer(now.index, communicator.are_peers_pending)
        gradient = outer.pseudo_gradient()
        info = now.all_reduce(gradient, quantization_options=quantisation(options))
        now.all_reduce(loss)
        outer.step(gradient)
        peers = info.local_world_size
        report.step(now.index, peers, loss.item(), peers * inner.characters, f", {info.tx_bytes / 1e3:,.0f} KB sent")

    done = pccl.run(options.master, step, state=outer.state, steps=options.steps, begin_with=options.peers)
    outer.begin()
    report.end(done, digest(outer.state.values()), write(inner.model, "The ", 200, options.seed))


if __name__ == "__main__":
    parser = launch.parser_of(__doc__, "round", "characters", peers=3, steps=18, every=1)
    add_options(parser, outer_rate=0.7)
    sys.exit(launch.run(parser.parse_args(), peer))
