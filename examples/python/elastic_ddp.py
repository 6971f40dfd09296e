"""DistributedDataParallel that goes on: a rank is killed in the middle of a backward pass, the others repeat the step, a new rank joins.

    pip install ".[examples]"        in the folder of the clone: what it needs
    python elastic_ddp.py [--ranks 3] [--steps 60]

Starts a master and the ranks as processes.  One kills itself inside of a step; the others lose none.  Then a new
one takes its place and gets model, optimiser and step from those who have them.  At the end all have the same parameters, to the bit.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import os
import signal
import sys
import uuid
from typing import Any

import torch
import torch._dynamo  # noqa: F401 - optimisers need it; before the ranks are forked, or each would import it
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


def work(rank: int, ranks: int, steps: int, master: str, world: str, join: bool = False, die_at: int = -1) -> None:
    torch.set_num_threads(1)
    options = pccl.distributed.Options(loss_rule=LossRule.SHRINK, master=master, world=world, join=join)
    dist.init_process_group("pccl", store=dist.HashStore(), rank=rank, world_size=ranks, pg_options=options)
    me = f"rank {rank}{' (new)' if join else ''}"
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    state = {"step": -1 if join else 0, "last": steps, "done": 0}
    if join:
        ddp = bring_up(model, optimizer, state)
        say(f"{me}: joins before step {state['step']}, {dist.get_world_size()} ranks")
    else:
        ddp = DistributedDataParallel(model)
    first = state["step"]
    if die_at >= 0:
        model[0].weight.register_hook(lambda _: os.kill(os.getpid(), signal.SIGKILL) if state["step"] == die_at else None)

    repeated = 0
    waiting = not join
    while state["step"] < state["last"] or waiting:
        if waiting and pccl.distributed.update().joined:
            state["last"] = state["step"] + AFTER
            ddp = bring_up(model, optimizer, state)
            waiting = False
        x, y = batch(state["step"], rank)
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
        if state["step"] % 10 == 0 and dist.get_rank() == 0 and state["step"] <= steps:
            say(f"step {state['step']}: {dist.get_world_size()} ranks, loss {loss.item():.4f}")
        state["step"] += 1
    say(
        f"{me}: steps {first} to {state['step'] - 1}, {repeated} repeated, none lost; "
        f"{dist.get_world_size()} ranks, parameters {digest(model)}"
    )
    dist.barrier()
    dist.destroy_process_group()


def start(ranks: int, steps: int) -> int:
    """Starts the ranks, and the new one when one has been killed; they are forked, so that torch is imported once."""
    victim, die_at = ranks - 1, steps // 3
    common = {"ranks": ranks, "steps": steps, "master": spawn_master("127.0.0.1"), "world": f"elastic-{uuid.uuid4().hex}"}

    def process(rank: int, **more: Any) -> Any:
        started = multiprocessing.get_context("fork").Process(target=work, kwargs={"rank": rank, **common, **more})
        started.start()
        return started

    processes = [process(rank, die_at=die_at if rank == victim else -1) for rank in range(ranks)]
    processes[victim].join()
    assert processes[victim].exitcode == -signal.SIGKILL
    say(f"rank {victim} was killed inside of step {die_at}; a new process takes its place")
    processes[victim] = process(victim, join=True)
    for each in processes:
        each.join()
    return max(abs(each.exitcode) for each in processes)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=3)
    parser.add_argument("--steps", type=int, default=60)
    asked = parser.parse_args()
    sys.exit(start(asked.ranks, asked.steps))
