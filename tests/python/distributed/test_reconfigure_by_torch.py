"""The reconfigure contract as torch 2.15 asks for it: its keyword, its functions with all that they let through, and what it looks up beside."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import datetime
import threading
from typing import Any

import pytest
import torch
import torch.distributed as dist
from support.reconfiguring import Meeting
from support.torch_ranks import job

from pccl.distributed import Group
from pccl.errors import InvalidUsage, PCCLError

pytestmark = pytest.mark.skipif(not hasattr(dist, "_reconfigure"), reason="this torch has no functions to reconfigure a group")
SECOND = datetime.timedelta(seconds=1)


def total() -> float:
    t = torch.tensor([dist.get_rank() + 1.0])
    dist.all_reduce(t)
    return t.item()


def arguments(rank: int, size: int) -> None:
    """Everything that torch hands on."""
    meeting, members = Meeting(), range(size)
    group = dist.group.WORLD
    assert isinstance(group, Group) and dist._supports_reconfigure() and dist._supports_reconfigure(group)
    with pytest.raises(InvalidUsage, match="has not been initialized"):
        total()
    for uuid, shaped, more in (
        (2**63 - 1, list, {}),
        (-(2**63), lambda handles: tuple(reversed(handles)), {"timeout": 30 * SECOND}),
        (7, set, {"hints": {"any": "thing"}, "group": group}),
        (8, lambda handles: [handle.encode() for handle in handles], {"timeout": None}),
    ):
        work = dist._reconfigure(uuid, shaped(meeting.handles(rank, *members)), **more)
        assert isinstance(work, dist.Work) and work.wait() and work.is_completed()
        if uuid != 7:
            assert dist.get_rank() == (size - 1 - rank if uuid < 0 else rank)
        assert (dist.get_world_size(), total()) == (size, size * (size + 1) / 2)
    handles = meeting.handles(rank, *members)
    with pytest.raises(TypeError):
        dist._reconfigure(2**64, handles)
    for wrong, text in (([], "own handle"), (handles[:1] * 2 + handles[1:], "unique"), (["x", *handles], "invalid")):
        with pytest.raises(RuntimeError, match=text):
            dist._reconfigure(9, wrong)
    assert total() == size * (size + 1) / 2


def test_what_torch_hands_on() -> None:
    job(3, arguments, reconfigurable=True)


def beside(rank: int, size: int) -> None:
    """The timeout, the error and the hooks of an abort."""
    meeting, members = Meeting(), range(size)
    errors = torch._C._distributed_c10d.ErrorType
    dist._reconfigure(1, meeting.handles(rank, *members)).wait()
    assert total() == 3.0
    group, impl = dist.group.WORLD, dist.get_backend_impl()
    assert impl is group and impl.get_error() == errors.SUCCESS
    called = threading.Event()
    group.register_abort_hook(5, called.set)
    group.register_abort_hook(6, pytest.fail)
    group.unregister_abort_hook(6)
    assert group.supports_abort_hooks
    if rank == 0:
        dist.set_timeout(SECOND)
    with pytest.raises(PCCLError, match="Timed out" if rank == 0 else None):
        dist.recv(torch.empty(1), 1 - rank)  # which nobody sends; the first timeout ends the group for both
    assert impl.get_error() == (errors.TIMEOUT if rank == 0 else errors.REMOTE_ERROR)
    group.abort()
    assert called.is_set()
    with pytest.raises(PCCLError):
        total()
    dist.set_timeout(60 * SECOND)
    dist._reconfigure(2, meeting.handles(rank, *members)).wait()
    assert impl.get_error() == errors.SUCCESS and total() == 3.0


def test_what_torch_looks_up_beside() -> None:
    job(2, beside, reconfigurable=True)


def unasked(rank: int, size: int) -> None:
    assert not dist._supports_reconfigure()
    with pytest.raises(InvalidUsage, match="not made for it"):
        dist._reconfigure(1, [dist._get_reconfigure_handle()])


def test_a_group_without_the_keyword() -> None:
    job(1, unasked)
