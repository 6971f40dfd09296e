"""A character GPT under torch's DistributedDataParallel: a rank is killed inside of a step, and another process takes its place.

    pip install ".[examples]"        in the folder of the clone: what it needs
    python gpt_ddp.py [--peers 3] [--steps 150] [--kill-at N] [--join-at N]
    python gpt_ddp.py --at HOST:48148 --peers 3 --rank 0         one rank, in a terminal of its own; --join: in place of a lost one

The group has the loss rule SHRINK: the backward pass that a loss has broken raises at all who are left, `recover` makes the wrapper ready,
and they repeat the step, each with the data that it had.  Between two steps `update` lets in who waits; who knows least gets model,
optimiser and step from rank 0.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import argparse
import sys

import launch
import torch
import torch._dynamo  # noqa: F401 - optimisers need it; before the ranks are forked, or each would import it
import torch.distributed as dist
from chargpt import CONTEXT, GPT, Text, loss_of, write
from report import Report, digest
from torch.nn.parallel import DistributedDataParallel

import pccl.distributed
from pccl.types import LossRule


class Training:
    """What a step changes: the model, the optimiser, and how many steps there were; `ddp` is the model as all ranks train it."""

    def __init__(self, seed: int, rate: float) -> None:
        self.model = GPT(seed)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=rate)
        self.step = 0
        self.ddp = self.model

    def bring_up(self, new: bool) -> None:
        """Gives all what the rank with the highest step has, and wraps the model anew, so that all buckets are alike again."""
        steps = [torch.empty(1, dtype=torch.int64) for _ in range(dist.get_world_size())]
        dist.all_gather(steps, torch.tensor([-1 if new else self.step]))
        source = max(range(len(steps)), key=lambda rank: steps[rank].item())
        box = [(self.model.state_dict(), self.optimizer.state_dict(), self.step)] if dist.get_rank() == source else [None]
        dist.broadcast_object_list(box, group_src=source)
        if dist.get_rank() != source:
            weights, moments, self.step = box[0]
            self.model.load_state_dict(weights)
            self.optimizer.load_state_dict(moments)
        self.ddp = DistributedDataParallel(self.model, init_sync=False)


def peer(options: argparse.Namespace, report: Report) -> None:
    joins = options.joins or options.join
    rank = options.rank if options.number is None else options.number
    group = pccl.distributed.Options(loss_rule=LossRule.SHRINK, master=options.master, world="gpt_ddp", join=joins)
    dist.init_process_group("pccl", store=dist.HashStore(), rank=rank, world_size=options.peers, pg_options=group)
    text = Text(options.text)
    training = Training(options.seed, options.rate)
    training.bring_up(joins)  # where it joins, that is what the others do after the update that has let it in
    report.event(training.step, f"begins with step {training.step}, rank {dist.get_rank()} of {dist.get_world_size()}")

    def newcomers_are_in() -> bool:
        if not pccl.distributed.update().joined:
            return False
        training.bring_up(False)
        report.event(training.step, f"a rank has come, {dist.get_world_size()} ranks from step {training.step} on", all_say_so=True)
        return True

    admitted = joins  # by the update of the others before this step
    while training.step < options.steps:
        step = training.step
        if not admitted and not report.await_newcomer(step, newcomers_are_in):
            newcomers_are_in()
        admitted = False
        report.begin(step)
        training.optimizer.zero_grad()
        try:
            loss = loss_of(training.ddp, text.batch(options.batch, options.seed, step, rank))
            loss.register_hook(lambda _: report.middle(step))  # noqa: B023 - called before the next step
            loss.backward()
            mean = loss.detach().clone()
            dist.all_reduce(mean, dist.ReduceOp.AVG)
        except RuntimeError as error:
            pccl.distributed.recover(error, training.ddp)
            report.event(step, f"a rank is lost, {dist.get_world_size()} ranks repeat step {step}", all_say_so=True)
            continue
        training.optimizer.step()
        training.step += 1
        report.step(step, dist.get_world_size(), mean.item(), dist.get_world_size() * options.batch * CONTEXT)
    moments = [moment for state in training.optimizer.state.values() for moment in (state["exp_avg"], state["exp_avg_sq"])]
    report.end(training.step, digest([*training.model.parameters(), *moments]), write(training.model, "The ", 200, options.seed))
    dist.barrier()  # so that nobody takes the end of another one for a loss
    dist.destroy_process_group()


if __name__ == "__main__":
    parser = launch.parser_of(__doc__, "step", "characters", peers=3, steps=150, every=10)
    parser.set_defaults(replaces=True)
    parser.add_argument("--rank", type=int, default=0, help="with --at: which rank this one is")
    parser.add_argument("--join", action="store_true", help="with --at: take the place of a rank that was lost")
    parser.add_argument("--batch", type=int, default=8, help="pieces of text of each rank in a step (8)")
    parser.add_argument("--rate", type=float, default=3e-3, help="learning rate (0.003)")
    parser.add_argument("--text", metavar="FILE", help="to learn, in place of Python's language reference")
    sys.exit(launch.run(parser.parse_args(), peer))
