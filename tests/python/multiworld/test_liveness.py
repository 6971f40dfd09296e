"""Signs of life by themselves: what a member that ends says to one that would wait for minutes."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import queue
import threading
from typing import Any

import pytest

from pccl.multiworld.errors import Loss
from pccl.types import Cause

pytest.importorskip("torch")


def told(size: int, why: Loss) -> Loss:
    """What rank 1 of so many finds when rank 0 ends, whose thread has every chance to be done before all is said."""
    import torch.distributed as dist

    from pccl.multiworld.liveness import Liveness, announce

    class Hesitant(Liveness):
        def _say(self, other: int, kind: bytes) -> bool:
            if threading.current_thread() is not self:
                self.join(0.2)
            return super()._say(other, kind)

    store: Any = dist.HashStore()
    posts: Any = [announce(store, rank, "127.0.0.1", True) for rank in range(size)]  # of which some have no thread: they are silent
    found: "queue.Queue[Loss]" = queue.Queue()
    hears = Liveness("w", store, posts[1], 1, size, 600.0, found.put)
    Hesitant("w", store, posts[0], 0, size, 600.0, found.put).end(why)
    loss = found.get(timeout=30)
    hears.join(30)
    for post in posts[2:]:
        post.socket.close()
    return loss


def test_who_has_lost_a_member_tells_the_others_which() -> None:
    loss = told(3, Loss("lost rank 2: no sign of life for 3 s", Cause.PEER_SILENT, 2, "", None))
    assert (loss.peer, loss.cause, loss.text) == (2, Cause.PEER_LOST, "lost rank 2: rank 0 says so")


def test_who_counts_as_lost_is_told() -> None:
    loss = told(2, Loss("lost rank 1: no sign of life for 3 s", Cause.PEER_SILENT, 1, "", None))
    assert (loss.peer, loss.cause, loss.text) == (None, Cause.EXCLUDED, "this rank, 1, counts as lost: rank 0 says so")
