"""Broadcast in two worlds: rank 0 of each sends three numbers to the others.

    pip install ".[examples]"        in the folder of the clone: what it needs
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from frame import Place, run  # noqa: E402


async def step(place: Place) -> None:
    """Rank 0 prints what it sends, the others what they got."""
    tensor = place.whole_numbers(3, 5, 1)
    if place.rank == 0:
        place.say(f"sends {tensor}")
    await place.communicator.broadcast(tensor, 0, place.name)
    if place.rank != 0:
        place.say(f"got {tensor}")


if __name__ == "__main__":
    run("Broadcast in one or two worlds.", 1.0, step)
