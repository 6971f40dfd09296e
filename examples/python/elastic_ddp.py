"""DistributedDataParallel that goes on: a rank is killed in the middle of a backward pass, the others repeat the step, a new rank joins.

    python elastic_ddp.py [--ranks 3] [--steps 60]

Starts a master and the ranks as processes, each a copy of this program.  One kills itself inside of a step; the others lose none.  Then a new
one takes its place and gets model, optimiser and step from those who have them.  At the end all have the same parameters, to the bit.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import argparse
import hashlib
import os
import signal
import subprocess
import sys
import uuid
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import pccl.distributed
from pccl.engine.bootstrap import spawn_master
from pccl.types import LossRule

AFTER = 20  # steps that all do together once the newcomer is there


def net() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))


def batch(step: int, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    """What this rank learns in that step: the length of vectors."""
    numbers = torch.Generator().manual_seed(1000 * step + rank)
    x = torch.randn(32, 16, generator=numbers)
    return x, x.norm(dim=1, keepdim=True)


def digest(model: nn.Module) -> str:
    return hashlib.sha256(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest()[:12]


def say(text: str) -> None:
    """A line in one piece, as several processes have one output."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def bring_up(model: nn.Module, optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> DistributedDataParallel:
    """Gives everybody the state of the rank with the highest step, and wraps the model anew, so that all buckets are alike again."""
    steps = [torch.empty(1, dtype=torch.int64) for _ in range(dist.get_world_size())]
    dist.all_gather(steps, torch.tensor([state["step"]]))
    source = max(range(len(steps)), key=lambda rank: steps[rank].item())
    box = [(model.state_dict(), optimizer.state_dict(), state)] if dist.get_rank() == source else [None]
    dist.broadcast_object_list(box, group_src=source)
    weights, moments, news = box[0]
    if dist.get_rank() != source:
        model.load_state_dict(weights)
        optimizer.load_state_dict(moments)
        state.update(news)
    return DistributedDataParallel(model, init_sync=False)


def work(asked: argparse.Namespace) -> None:
    torch.set_num_threads(1)
    options = pccl.distributed.Options(loss_rule=LossRule.SHRINK, master=asked.master, world=asked.world, join=asked.join)
    dist.init_process_group("pccl", store=dist.HashStore(), rank=asked.rank, world_size=asked.ranks, pg_options=options)
    me = f"rank {asked.rank}{' (new)' if asked.join else ''}"
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    state = {"step": -1 if asked.join else 0, "last": asked.steps, "done": 0}
    if asked.join:
        ddp = bring_up(model, optimizer, state)
        say(f"{me}: joins before step {state['step']}, {dist.get_world_size()} ranks")
    else:
        ddp = DistributedDataParallel(model)
    first = state["step"]
    if asked.die_at >= 0:
        model[0].weight.register_hook(lambda _: os.kill(os.getpid(), signal.SIGKILL) if state["step"] == asked.die_at else None)

    repeated = 0
    waiting = not asked.join
    while state["step"] < state["last"] or waiting:
        if waiting and pccl.distributed.update().joined:
            state["last"] = state["step"] + AFTER
            ddp = bring_up(model, optimizer, state)
            waiting = False
        x, y = batch(state["step"], asked.rank)
        optimizer.zero_grad()
        try:
            loss = nn.functional.mse_loss(ddp(x), y)
            loss.backward()
        except RuntimeError as error:
            pccl.distributed.recover(error, ddp)
            repeated += 1
            say(f"{me}: step {state['step']} failed, repeats it with {dist.get_world_size()} ranks")
            continue
        optimizer.step()
        if state["step"] % 10 == 0 and dist.get_rank() == 0 and state["step"] <= asked.steps:
            say(f"step {state['step']}: {dist.get_world_size()} ranks, loss {loss.item():.4f}")
        state["step"] += 1
    say(
        f"{me}: steps {first} to {state['step'] - 1}, {repeated} repeated, none lost; "
        f"{dist.get_world_size()} ranks, parameters {digest(model)}"
    )
    dist.barrier()
    dist.destroy_process_group()


def start(asked: argparse.Namespace) -> int:
    """Starts the ranks, and the new one when the first has been killed."""
    common = [
        sys.executable, __file__, "--ranks", str(asked.ranks), "--steps", str(asked.steps), "--master", spawn_master("127.0.0.1"),
        "--world", f"elastic-{uuid.uuid4().hex}",
    ]
    victim = asked.ranks - 1

    def rank(number: int, *more: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*common, "--rank", str(number), *more])

    ranks = [rank(number, *(["--die-at", str(asked.steps // 3)] if number == victim else [])) for number in range(asked.ranks)]
    assert ranks[victim].wait() == -signal.SIGKILL
    say(f"rank {victim} was killed inside of step {asked.steps // 3}; a new process takes its place")
    ranks[victim] = rank(victim, "--join")
    return max(process.wait() for process in ranks)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--steps", type=int, default=60)
    for name, kind, value in (("--rank", int, -1), ("--die-at", int, -1), ("--master", str, ""), ("--world", str, "")):
        parser.add_argument(name, type=kind, default=value, help=argparse.SUPPRESS)
    parser.add_argument("--join", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    sys.exit(start(given) if given.rank < 0 else work(given))
