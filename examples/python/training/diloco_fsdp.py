"""DiLoCo between sites, FSDP2 inside of each: a site's processes shard one model, and reduce their shards with their twins at other sites.

    pip install ".[examples]"        in the folder of the clone: what it needs
    python diloco_fsdp.py [--sites 3] [--shards 2] [--rounds 12] [--inner 10] [--kill-at N] [--join-at N]
    torchrun --nproc-per-node 2 --master-port 29501 diloco_fsdp.py --at HOST:48148         one site; each on a host, or port, of its own

Process r of a site is in peer group r of the run, so that the groups are the columns of a grid, and sites its rows.  A round begins when
the grid is whole: `shards` tells `pccl.run`.  Who is killed takes its site with it, as FSDP needs all shards: the site's other processes
notice it, and leave the run, too, also where they wait for something else.  A new site joins with all of its processes.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import argparse
import os
import sys
from typing import Any

import launch
import torch
import torch.distributed as dist
from chargpt import GPT
from loops import Inner, Outer, add_options, quantisation
from report import Report, digest
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor

import pccl
import pccl.distributed


class SiteOver(Exception):
    """The site has lost a process; no `PCCLError`, which `pccl.run` would take for a loss among the sites, and call the step again."""


class Site:
    """This process's site: the default group of torch, over which FSDP has the model; `communicator` is in the run of all sites."""

    def __init__(self, communicator: pccl.Communicator) -> None:
        self.communicator = communicator
        self.shard, self.shards = dist.get_rank(), dist.get_world_size()
        self._note = torch.zeros(1)
        if self.shards > 1:  # a message that comes at the end, and fails at once when any of the site is lost
            self._watch = dist.irecv(self._note, (self.shard + 1) % self.shards, tag=1)
            self._watch.get_future().add_done_callback(self._ended)

    def _ended(self, future: Any) -> None:
        try:
            future.value()
        except RuntimeError:
            self.communicator.world.leave()  # so that no call of this process waits for other sites

    def end(self) -> None:
        if self.shards > 1:
            dist.send(torch.ones(1), (self.shard - 1) % self.shards, tag=1)
            self._watch.wait()
        dist.destroy_process_group()

    def model(self, seed: int) -> GPT:
        """Sharded block by block."""
        model = GPT(seed)
        for block in model.blocks:
            fully_shard(block)
        return fully_shard(model)

    def mean(self, loss: torch.Tensor) -> torch.Tensor:
        """Over the shards, each of which has had its own data."""
        dist.all_reduce(loss, dist.ReduceOp.AVG)
        return loss

    def digest(self, mine: str) -> str:
        """Of all shards."""
        parts: list[Any] = [None] * self.shards
        dist.all_gather_object(parts, mine)
        return digest([torch.tensor([int(part, 16) for part in parts])])


def local(parameter: torch.Tensor) -> torch.Tensor:
    """The part of it that is in this process, where it lies."""
    assert isinstance(parameter, DTensor)
    return parameter.to_local().detach()


def train(options: argparse.Namespace, report: Report, site: Site) -> None:
    inner = Inner(site.model(options.seed), options)
    outer = Outer(map(local, inner.model.parameters()), options)

    def step(now: pccl.Step) -> None:
        communicator = now.communicator
        report.begin(now.index, communicator)
        outer.begin()
        place = communicator.world.rank * site.shards + site.shard
        try:
            loss = site.mean(inner.steps(now.index, place, report.middle))
        except RuntimeError as error:
            raise SiteOver(str(error)) from error
        report.await_newcomer(now.index, communicator.are_peers_pending)
        gradient = outer.pseudo_gradient()
        info = now.all_reduce(gradient, quantization_options=quantisation(options))
        now.all_reduce(loss)
        outer.step(gradient)
        sites = info.local_world_size
        more = f", {info.tx_bytes / 1e3:,.0f} KB sent by shard {site.shard}"
        report.step(now.index, sites, loss.item(), sites * site.shards * inner.characters, more)

    done = pccl.run(site.communicator, step, state=outer.state, steps=options.steps, begin_with=options.peers, shards=site.shards)
    report.end(done, site.digest(digest(outer.state.values())))


def peer(options: argparse.Namespace, report: Report) -> None:
    os.environ.setdefault("PCCL_MASTER", options.master)
    dist.init_process_group("pccl")
    with pccl.Communicator(options.master, peer_group=dist.get_rank()) as communicator:
        site = Site(communicator)
        try:
            communicator.connect()
            train(options, report, site)
            site.end()
        except (SiteOver, pccl.PCCLError) as error:
            report.event(report.begun, f"leaves the run: {error}")
            sys.exit(1)


if __name__ == "__main__":
    parser = launch.parser_of(__doc__, "round", "characters", peers=3, steps=12, every=1, several="sites")
    parser.add_argument("--shards", type=int, default=2, help="processes of a site (2)")
    add_options(parser, outer_rate=0.7, inner=10)
    asked = parser.parse_args()
    sys.exit(launch.run(asked, peer, asked.shards))
