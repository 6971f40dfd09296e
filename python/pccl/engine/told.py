"""A value that each member of a world sends to all others: all reach the same outcome, even if one member alone knows the reason."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import array
import time
from typing import Optional

from pccl.engine.world import World


def first_who(world: World, so: bool, size: int, until: float) -> Optional[int]:
    """Collective: the first rank for which it is `so`; None: for nobody.  PCCLError: not all have come until then, of the monotonic clock."""
    told = array.array("q", [0] * size)
    world.all_gather(array.array("q", [so]), told, deadline=max(0.001, until - time.monotonic())).wait()  # a success of one is one of all
    return next((rank for rank, one in enumerate(told) if one), None)
