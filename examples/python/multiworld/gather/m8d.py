"""Gather in two worlds: rank 0 of each gets the three numbers of all.

    pip install ".[examples]"        in the folder of the clone: what it needs
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from frame import Place, run  # noqa: E402


async def step(place: Place) -> None:
    """All print what they have, rank 0 the list of all."""
    tensor, gathered = place.whole_numbers(3, 5, 1), place.room() if place.rank == 0 else None
    place.say(f"input {tensor}")
    await place.communicator.gather(tensor, gathered, 0, place.name)
    if gathered is not None:
        place.say(f"gathered {gathered}")


if __name__ == "__main__":
    run("Gather in one or two worlds.", 1.0, step)
