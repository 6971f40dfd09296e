"""Reduce in two worlds: rank 0 of each gets the sum of three numbers of all.

    pip install ".[examples]"        in the folder of the clone: what it needs
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import pathlib
import sys

import torch.distributed as dist

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from frame import Place, run  # noqa: E402


async def step(place: Place) -> None:
    """All print what they have, rank 0 the sum."""
    tensor = place.whole_numbers(3, 5, 1)
    place.say(f"input {tensor}")
    await place.communicator.reduce(tensor, 0, dist.ReduceOp.SUM, place.name)
    if place.rank == 0:
        place.say(f"sum {tensor}")


if __name__ == "__main__":
    run("Reduce in one or two worlds.", 2.0, step)
