"""What a call of a group launches: how long it may take, and how many places it keeps if its arguments are wrong."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any, Optional

import pytest

from pccl.distributed import calls
from pccl.distributed.group import Group


class Work:
    """Of a call; it has the deadlines that it was begun with."""

    share = 0

    def __init__(self, timeout: timedelta) -> None:
        self.opts = SimpleNamespace(timeout=timeout, asyncOp=True)
        self.deadlines: list[Optional[float]] = []

    def begin(self, world: Any, deadline: Optional[float], told: bool) -> None:
        self.deadlines.append(deadline)


def launched(group: Any, timeout: timedelta) -> Optional[float]:
    work = Work(timeout)
    Group._launch(group, work, None)
    (deadline,) = work.deadlines
    return deadline


def group(extra: timedelta = timedelta()) -> Any:
    return SimpleNamespace(_timeout=timedelta(minutes=30), _extra=extra, _backlogs=[SimpleNamespace(submit=lambda work: None)])


def test_a_timeout_of_days_is_as_long_as_it_says() -> None:
    assert launched(group(), timedelta(days=2, seconds=5, milliseconds=250)) == 2 * 86400 + 5.25
    assert launched(group(), timedelta(minutes=30)) is None  # as long as the group's: that is set already


def test_extra_time_is_that_of_one_operation() -> None:
    some = group(timedelta(seconds=7))
    assert launched(some, timedelta(minutes=30)) == 1807.0
    assert launched(some, timedelta(minutes=30)) is None
    some._extra = timedelta(seconds=7)
    assert launched(some, timedelta(seconds=3)) == 10.0


@pytest.mark.parametrize(("build", "arguments", "places"), [
    (calls.all_reduce, (["a"],), 1), (calls.all_reduce_coalesced, (["a", "b", "c"],), 3),
    (calls.all_gather_coalesced, ([["a"], ["b"]], ["a", "b", "c", "d"]), 4),
    (calls.all_gather_single_coalesced, (["a", "b", "c"], ["a", "b"]), 3), (calls.reduce_scatter_single_coalesced, (["a", "b"], ["a"]), 2),
])
def test_a_refused_call_keeps_as_many_places_as_the_others_have_collectives(build: Any, arguments: Any, places: int) -> None:
    """One more, or one less, and the next collective of this rank meets another one of the others."""
    kept: list[int] = []
    call = calls.refused(build, arguments, ValueError("wrong"))
    assert call is not None
    with pytest.raises(Exception):
        list(call.launch(SimpleNamespace(refuse=lambda: kept.append(1)), None))
    assert len(kept) == places


@pytest.mark.parametrize("build", [calls.send, calls.receive, calls.receive_any_source])
def test_a_refused_message_keeps_none(build: Any) -> None:
    assert calls.refused(build, (["a"],), ValueError("wrong")) is None
