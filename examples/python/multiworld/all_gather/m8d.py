"""All-gather in two worlds: everybody gets the three numbers of all.

    pip install ".[examples]"        in the folder of the clone: what it needs
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from frame import Place, run  # noqa: E402


async def step(place: Place) -> None:
    """All print what they have, then the list of all."""
    tensor, gathered = place.whole_numbers(3, 5, 1), place.room()
    place.say(f"input {tensor}")
    await place.communicator.all_gather(gathered, tensor, place.name)
    place.say(f"gathered {gathered}")


if __name__ == "__main__":
    run("All-gather in one or two worlds.", 1.0, step)
