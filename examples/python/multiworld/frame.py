"""What the examples of collectives have in common: their options, the worlds of a process, and one task that steps in each of them.

    pip install ".[examples]"        in the folder of the clone: what it needs

`--worldinfo W,R` makes this process rank R of world W; a leader gives it twice.  A world that is over ends its task, and no other.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import argparse
import asyncio
from typing import Awaitable, Callable

import torch

from pccl.multiworld import WorldCommunicator, WorldManager

SIZE = 3


class Place:
    """This process's place in one world, at one step."""

    def __init__(self, communicator: WorldCommunicator, number: int, rank: int, options: argparse.Namespace) -> None:
        self.communicator = communicator
        self.name = f"world{number}"
        self.rank = rank
        self.step = 0
        self.device = device_of(options.backend, rank)
        self._generator = torch.Generator()
        if options.seed is None:
            self._generator.seed()
        else:
            self._generator.manual_seed(10000 * options.seed + 100 * number + rank)

    def whole_numbers(self, count: int, most: int, least: int) -> torch.Tensor:
        """So many random numbers from `least` to `least` + `most`."""
        return torch.round(torch.rand(count, generator=self._generator) * most + least).to(self.device)

    def room(self) -> list[torch.Tensor]:
        """For three numbers of each rank."""
        return [torch.zeros(3, device=self.device) for _ in range(SIZE)]

    def say(self, text: str) -> None:
        """One line about this step."""
        print(f"{self.name} step {self.step} rank {self.rank}: {text}", flush=True)


def device_of(backend: str, rank: int) -> torch.device:
    """Where a rank's tensors are."""
    return torch.device(f"cuda:{rank}" if backend == "nccl" else "cpu")


def port_of(options: argparse.Namespace, number: int) -> int:
    """One master serves all worlds; a torch group needs a port of its own for each."""
    return options.port if options.backend == "pccl" else options.port + 1000 * number


def world_and_rank(text: str) -> tuple[int, int]:
    """Of a --worldinfo."""
    number, rank = (int(part) for part in text.split(","))
    if number < 1 or rank < 0:
        raise ValueError
    return number, rank


def steps_of(text: str) -> int:
    """Of a --steps: what is never reached is for ever."""
    return int(text) or -1


def parser_of(description: str, pause: float, steps: int) -> argparse.ArgumentParser:
    """The options of all of these."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--backend", choices=("pccl", "gloo", "nccl"), default="pccl")
    parser.add_argument("--addr", default="127.0.0.1", help="the host of rank 0")
    parser.add_argument("--port", type=int, default=29500, help="of the master; of the others that of world 0, 1000 below that of world 1")
    parser.add_argument("--worldinfo", type=world_and_rank, action="append", required=True, metavar="W,R", help="once or twice")
    parser.add_argument("--steps", type=steps_of, default=str(steps), help="0: for ever")
    parser.add_argument("--pause", type=float, default=pause, help="seconds between two steps")
    parser.add_argument("--seed", type=int, help="of the random numbers")
    return parser


async def enter(manager: WorldManager, options: argparse.Namespace, number: int, rank: int, size: int) -> None:
    """Brings one world up."""
    await manager.initialize_world(
        f"world{number}", rank, size, options.backend, options.addr, port_of(options, number), device=device_of(options.backend, rank)
    )


def run(description: str, pause: float, step: Callable[[Place], Awaitable[None]]) -> None:
    """The whole of an example: `step` in each world, until it has made all steps or is over."""
    options = parser_of(description, pause, 100).parse_args()

    async def steps_in(place: Place) -> None:
        while place.step != options.steps:
            place.step += 1
            try:
                await step(place)
            except Exception as error:
                print(f"caught an exception: {error}", flush=True)
                break
            place.say(f"done with step: {place.step}")
            await asyncio.sleep(options.pause)

    async def main() -> None:
        manager = WorldManager()
        for number, rank in options.worldinfo:
            await enter(manager, options, number, rank, SIZE)
        await asyncio.gather(*(steps_in(Place(manager.communicator, number, rank, options)) for number, rank in options.worldinfo))
        manager.cleanup()

    asyncio.run(main())
