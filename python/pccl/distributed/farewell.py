"""How a process leaves its groups: together with the others.

A rank that leaves ends a group whose loss rule is END, also for messages between others.  So a rank that is done waits for the
others, as long as an operation of the group may take.  Meanwhile calls of all ranks complete, the others continue among themselves, and
no rank gets an error for an end that affects no call.  The rank has no more calls of its own then: it waits a little for its operations
in flight, and aborts them.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import logging
import threading
import time
from typing import NamedTuple

from pccl.distributed.deadlines import waited_for
from pccl.engine import World

#: Seconds that who is done waits for what it has in flight, and for the others at least.
PATIENCE = 5.0
_LOOK = 0.1  # seconds: signals come in between

_log = logging.getLogger("pccl")


class _Farewell(NamedTuple):
    world: World
    thread: threading.Thread


_leaving: list[_Farewell] = []


def begin(world: World, seconds: float) -> None:
    """Leaves that world in the background, so that several may be left in any order; waits so long for the others."""
    thread = threading.Thread(target=world.leave_together, args=(PATIENCE, max(seconds, PATIENCE)), name="pccl-farewell", daemon=True)
    _leaving[:] = [other for other in _leaving if other.thread.is_alive()]
    _leaving.append(_Farewell(world, thread))
    thread.start()


def finish() -> None:
    """Returns when all of them are left.  An interrupt leaves them at once."""
    say_at = time.monotonic() + PATIENCE
    try:
        while _leaving:
            world, thread = _leaving[-1]
            thread.join(_LOOK)
            if not thread.is_alive():
                _leaving.pop()
            elif time.monotonic() >= say_at:
                say_at = float("inf")
                _log.info("done with the group, and still there for the others%s", waited_for(world))
    except BaseException:
        give_up()
        raise


def give_up() -> None:
    """Leaves all of them at once."""
    while _leaving:
        _leaving.pop().world.destroy()
