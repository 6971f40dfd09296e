"""Scatter in two worlds: each rank gets one of three tensors of rank 0.

    pip install ".[examples]"        in the folder of the clone: what it needs
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from frame import SIZE, Place, run  # noqa: E402


async def step(place: Place) -> None:
    """Rank 0 prints what it has, the others what they got."""
    tensor = place.room()[0]
    parts = [place.whole_numbers(3, 5, 1) for _ in range(SIZE)] if place.rank == 0 else None
    if parts is not None:
        place.say(f"scatters {parts}")
    await place.communicator.scatter(tensor, parts, 0, place.name)
    place.say(f"got {tensor}")


if __name__ == "__main__":
    run("Scatter in one or two worlds.", 1.0, step)
