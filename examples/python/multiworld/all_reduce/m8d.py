"""All-reduce in two worlds: everybody gets the sum of a number of all.

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
    """All print what they have, then the sum."""
    tensor = place.whole_numbers(1, 5, 5)
    place.say(f"input {tensor}")
    await place.communicator.all_reduce(tensor, dist.ReduceOp.SUM, place.name)
    place.say(f"sum {tensor}")


if __name__ == "__main__":
    run("All-reduce in one or two worlds.", 1.0, step)
