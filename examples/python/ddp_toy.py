"""The smallest DistributedDataParallel program: what runs over "nccl" runs over "pccl", on the CPU.

    pip install ".[examples]"        in the folder of the clone: what it needs
    python ddp_toy.py [--ranks 2]
"""
# SPDX-License-Identifier: MIT
import argparse
import os

import torch
import torch.distributed as dist
import torch.nn as nn
import torch.optim as optim
from torch.nn.parallel import DistributedDataParallel as DDP

import pccl.distributed  # noqa: F401 - registers the backend


def setup(rank: int, world_size: int) -> None:
    os.environ["MASTER_ADDR"] = "localhost"
    os.environ.setdefault("MASTER_PORT", "12355")
    dist.init_process_group("pccl", rank=rank, world_size=world_size)


def cleanup() -> None:
    dist.destroy_process_group()


class ToyModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = nn.Linear(10, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.net(x)


def demo_basic(rank: int, world_size: int) -> None:
    setup(rank, world_size)
    ddp_model = DDP(ToyModel())
    optimizer = optim.SGD(ddp_model.parameters(), lr=0.001)
    loss_fn = nn.MSELoss()
    inputs = torch.randn(20, 10)
    labels = torch.randn(20, 10)
    for _ in range(10):
        optimizer.zero_grad()
        outputs = ddp_model(inputs)
        loss = loss_fn(outputs, labels)
        loss.backward()
        optimizer.step()
        print(f"Rank {rank}, Loss: {loss.item()}")
    cleanup()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    world_size = parser.parse_args().ranks
    torch.multiprocessing.spawn(demo_basic, args=(world_size,), nprocs=world_size)
