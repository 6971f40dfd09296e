"""PyTorch's reconfigure contract in tests: torch's own functions where it has them, with Gloo beside, else those of `pccl.distributed`."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import datetime
from typing import Any, Collection, Optional

import pytest
import torch
import torch.distributed as dist

import pccl.distributed

#: torch's own functions are there (2.15), and so is Gloo's side of the contract.
HAS = hasattr(dist, "_reconfigure")


def gloo(name: str = "gloo") -> Any:
    """Gloo as a parameter, where it keeps the contract: so the test itself is tested."""
    return pytest.param(name, marks=pytest.mark.skipif(not HAS, reason=f"Gloo of torch {torch.__version__} has no reconfiguration"))


with_gloo = pytest.mark.parametrize("backend", ["pccl", gloo()])


def handle() -> str:
    """What others name this process by."""
    return str(dist._get_reconfigure_handle() if HAS else pccl.distributed.reconfigure_handle())


def supported() -> bool:
    """Whether the default group says that it can be reconfigured."""
    return bool(dist._supports_reconfigure() if HAS else dist.group.WORLD.supports_reconfigure)


def change(uuid: int, handles: Collection[str], seconds: Optional[float] = None) -> None:
    """Waits for the default group's new members."""
    timeout = None if seconds is None else datetime.timedelta(seconds=seconds)
    call = dist._reconfigure if HAS else pccl.distributed.reconfigure
    call(uuid, handles, timeout=timeout).wait()


class Meeting:
    """Where ranks tell each other their handles: under numbers in the default group's store, which all count alike."""

    def __init__(self) -> None:
        self.store = dist.distributed_c10d._get_default_store()
        self.rounds = 0

    def handles(self, me: int, *members: int) -> list[str]:
        """Those of the members, who all come here, and tell their own."""
        self.rounds += 1
        self.store.set(f"handle/{self.rounds}/{me}", handle())
        return [self.store.get(f"handle/{self.rounds}/{member}").decode() for member in members]

    def skip(self) -> None:
        """Others meet."""
        self.rounds += 1

    def point(self, me: int, *members: int) -> None:
        """Returns when all of them have come."""
        self.rounds += 1
        self.store.set(f"point/{self.rounds}/{me}", "")
        self.store.wait([f"point/{self.rounds}/{member}" for member in members], datetime.timedelta(seconds=60))


def works(expected: int) -> None:
    """Sum, broadcast, and a ring of messages over the ranks that are now, as many as `expected`."""
    rank, size = dist.get_rank(), dist.get_world_size()
    assert size == expected
    t = torch.full((3,), rank + 1.0)
    dist.all_reduce(t)
    assert t.tolist() == [size * (size + 1) / 2] * 3
    t.fill_(rank)
    dist.broadcast(t, group_src=0)
    assert t.tolist() == [0.0] * 3
    if size > 1:
        group = dist.group.WORLD
        got = torch.empty(1)
        receive = group.recv([got], (rank - 1) % size, 0)
        send = group.send([torch.tensor([float(rank)])], (rank + 1) % size, 0)
        receive.wait(), send.wait()
        assert got.item() == (rank - 1) % size
    dist.barrier()  # nobody leaves before all have their messages
