"""Two senders, each in a world with one leader, which receives whatever comes first; one sender's end leaves the other's stream alone.

    pip install ".[examples]"        in the folder of the clone: what it needs

By hand, in three shells: `m8d.py --worldinfo 1,0 --worldinfo 2,0`, `m8d.py --worldinfo 1,1`, `m8d.py --worldinfo 2,1`; interrupt a sender.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import argparse
import asyncio
import pathlib
import sys

import torch

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from frame import device_of, enter, parser_of  # noqa: E402

from pccl.multiworld import BrokenWorldException, WorldManager  # noqa: E402

SIZE = 2


def device(options: argparse.Namespace, number: int, rank: int) -> torch.device:
    """Of a rank of a world, where all processes share one host."""
    return device_of(options.backend, number * (number - 1) + rank)


async def send(manager: WorldManager, options: argparse.Namespace) -> None:
    """A one after the other to the other rank of the only world."""
    [(number, rank)] = options.worldinfo
    world, count = f"world{number}", 0
    while count != options.steps:
        print(f"{world}: rank {rank} of {SIZE}", flush=True)
        await asyncio.sleep(options.pause)
        tensor = torch.ones(1, device=device(options, number, rank))
        try:
            await manager.communicator.send(tensor, 1 - rank, world)
        except Exception as error:
            print(f"caught an exception: {error}", flush=True)
            print("terminate sending", flush=True)
            break
        count += 1
        print(f"sent {tensor} to rank {1 - rank} in {world}", flush=True)


async def receive(manager: WorldManager, options: argparse.Namespace) -> None:
    """From rank 1 of every world that is left."""
    tensors = {f"world{number}": torch.zeros(1, device=device(options, number, rank)) for number, rank in options.worldinfo}
    while tensors:
        try:
            world = await manager.communicator.recv_any(tensors, src=1)
        except BrokenWorldException as error:
            print(f"caught an exception: {error}", flush=True)
            del tensors[error.world_name]
        else:
            print(f"received {tensors[world]} from rank 1 in {world}", flush=True)


async def main() -> None:
    """A leader if two worlds are given, else a sender."""
    options = parser_of("Messages from two worlds to one leader.", 1.0, 0).parse_args()
    manager = WorldManager()
    for number, rank in options.worldinfo:
        await enter(manager, options, number, rank, SIZE)
    await (receive if len(options.worldinfo) > 1 else send)(manager, options)
    print("got out of the loop", flush=True)
    manager.cleanup()


if __name__ == "__main__":
    asyncio.run(main())
