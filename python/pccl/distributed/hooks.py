"""Communication hooks of DistributedDataParallel whose callbacks call collectives themselves.

Collectives meet in the order in which each rank calls them.  Callbacks run when their operations have ended, between the program's own
calls, at times that differ between ranks.  Delivering them in order would not help, as the next bucket's first call comes before or
after them.  Such calls look the same as the program's: torch runs a callback that is added late in the thread that adds it.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import contextlib
import functools
from typing import Any, Callable

Hook = Callable[[Any, Any], Any]


def in_turn(hook: Hook) -> Hook:
    """The same hook, which returns when all of its callbacks have run, so that the calls of the next bucket come after them at all ranks.

    For hooks like PowerSGD's, with any number of buckets: ``ddp.register_comm_hook(state, in_turn(powerSGD_hook))``.  The work of a bucket's
    hook then overlaps neither other buckets' nor the backward pass.  The backward pass reports a failure.
    """

    @functools.wraps(hook)
    def waiting(state: Any, bucket: Any) -> Any:
        future = hook(state, bucket)
        with contextlib.suppress(RuntimeError):  # torch raises what the future has, at the end of the pass
            future.wait()
        return future

    return waiting
