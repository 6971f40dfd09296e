"""Reconfigurations that cannot be: arguments of no sense, members that wish differently, a death or the group's end in the middle."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import datetime
import os
import signal
from typing import Any

import pytest
import torch.distributed as dist
from support.reconfiguring import Meeting, change, works
from support.torch_ranks import LOST, job

from pccl.distributed import reconfiguration, reconfigure
from pccl.errors import InvalidArgument, InvalidUsage, PCCLError, RankConnectionLost

SECOND = datetime.timedelta(seconds=1)


def senseless(me: int, size: int) -> None:
    meeting = Meeting()
    change(1, meeting.handles(me, 0, 1))
    handles = meeting.handles(me, 0, 1)
    for uuid, given, timeout, text in (
        (1.5, handles, None, "uuid 1.5 is not a number of 64 bits"),
        ("2", handles, None, "uuid '2' is not a number of 64 bits"),
        (2**63, handles, None, "is not a number of 64 bits with a sign; pass one"),
        (2, 5, None, "handles are 5; pass a list"),
        (2, None, None, "handles are None; pass a list"),
        (2, handles[0], None, "handles are 'pccl|.*; pass a list"),
        (2, [handles[me], None], None, "pass a list, or a set, of what"),
        (2, [*handles, "pccl|\udcff|x"], None, "is an invalid reconfigure handle"),
        (2, handles, -SECOND, "timeout is .*; pass a timedelta that is not negative"),
        (2, handles, 3, "timeout is 3; pass a timedelta"),
    ):
        with pytest.raises(InvalidArgument, match=text):
            reconfigure(uuid, given, timeout=timeout)
    works(2)
    change(2, handles)
    works(2)


def test_arguments_of_no_sense_are_refused_by_name_and_nothing_has_happened() -> None:
    job(2, senseless, reconfigurable=True)


def another_order(me: int, size: int) -> None:
    """All fail, and none has lost the old group."""
    meeting = Meeting()
    change(1, meeting.handles(me, 0, 1, 2))
    handles = meeting.handles(me, 0, 1, 2)
    with pytest.raises(PCCLError) as caught:
        change(2, handles if me else handles[::-1], 1.0)
    texts = [f"text/{rank}" for rank in range(3)]
    meeting.store.set(texts[me], str(caught.value))
    assert any("in another order; pass the same list" in meeting.store.get(text).decode() for text in texts)
    works(3)
    change(3, handles)
    works(3)


def test_handles_in_another_order_at_one_member_fail_at_all_and_one_says_why() -> None:
    job(3, another_order, reconfigurable=True)


def dies(me: int, size: int) -> None:
    """Between the beginning of the new world and the members' word on the uuid."""
    meeting = Meeting()
    change(1, meeting.handles(me, 0, 1, 2))
    handles = meeting.handles(me, 0, 1, 2)
    if me == 2:
        reconfiguration.World.all_gather = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)  # type: ignore[method-assign]
    with pytest.raises(RankConnectionLost):
        change(2, handles)
    change(3, meeting.handles(me, 0, 1))
    works(2)


def test_a_member_that_dies_in_the_middle_fails_it_at_the_others_who_begin_anew() -> None:
    assert job(3, dies, reconfigurable=True, lost={2})[2] == LOST


def ended(me: int, size: int) -> None:
    """A group that is destroyed while it is being reconfigured does not come back."""
    meeting = Meeting()
    change(1, meeting.handles(me, 0, 1))
    handles = meeting.handles(me, 0, 1)
    group: Any = dist.group.WORLD
    if me == 0:
        work = reconfigure(2, handles, timeout=60 * SECOND)
        group.shutdown()
        with pytest.raises(InvalidUsage, match="was shut down here"):
            work.wait()
        assert group.world is None
        meeting.store.set("down", "")
    else:
        meeting.store.wait(["down"], 60 * SECOND)
        with pytest.raises(PCCLError):
            change(2, handles, 1.0)


def test_a_group_that_is_destroyed_in_the_middle_does_not_come_back() -> None:
    job(2, ended, reconfigurable=True)
