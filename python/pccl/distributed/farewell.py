"""How a process leaves its groups: together with the others, as far as they come soon.

A rank that leaves ends a group whose loss rule is END, also for messages between others.  So who is done waits for those who are not, a
little: what all have called for completes, and nobody is told of an end that nobody is hurt by.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import threading

from pccl.engine import World

#: Seconds that who is done waits for the others.
PATIENCE = 5.0
_LOOK = 0.1  # seconds: signals come in between

_leaving: list[threading.Thread] = []


def begin(world: World) -> None:
    """Leaves that world in the background, so that several may be left in any order."""
    thread = threading.Thread(target=world.leave_together, args=(PATIENCE,), name="pccl-farewell", daemon=True)
    _leaving[:] = [other for other in _leaving if other.is_alive()]
    _leaving.append(thread)
    thread.start()


def finish() -> None:
    """Returns when all of them are left."""
    while _leaving:
        _leaving[-1].join(_LOOK)
        if not _leaving[-1].is_alive():
            _leaving.pop()
