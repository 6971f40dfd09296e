"""The reconfigure contract when things go wrong: uuids that were used, members that do not come, timeouts, abort, ranks that die or freeze."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import datetime
import os
import signal
import threading
import time
from typing import Any

import pytest
import torch
import torch._dynamo  # noqa: F401 - before the ranks are forked: each would import it anew
import torch.distributed as dist
from support.reconfiguring import HAS, Meeting, change, handle, with_gloo, works
from support.torch_ranks import job
from support.training import batch, net, trained
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from pccl.distributed import Options
from pccl.errors import InvalidUsage, PCCLError, RankConnectionLost

ErrorType = torch._C._distributed_c10d.ErrorType


def used_by_all(me: int, size: int) -> None:
    meeting = Meeting()
    change(7, meeting.handles(me, 0, 1, 2))
    change(8, meeting.handles(me, 0, 1, 2))
    handles = meeting.handles(me, 0, 1, 2)
    for uuid in (7, 8):  # one of long ago, and the last one
        begin = time.monotonic()
        with pytest.raises(InvalidUsage, match=f"uuid {uuid} was already used"):
            change(uuid, handles, 30.0)
        assert time.monotonic() - begin < 30.0
        works(3)
    change(9, handles)  # which have not changed
    works(3)


def test_a_uuid_that_all_have_used_fails_at_all_and_a_fresh_one_works() -> None:
    job(3, used_by_all, reconfigurable=True)


def used_by_one(me: int, size: int) -> None:
    meeting = Meeting()
    change(1, meeting.handles(me, 0, 1, 2))
    if me == 1:
        change(7, [handle()])
        change(8, [handle()])
    handles = meeting.handles(me, 0, 1, 2)
    with pytest.raises(InvalidUsage, match="uuid 7 was already used, by the member at position 1"):
        change(7, handles, 30.0)
    assert dist.get_world_size() == (1 if me == 1 else 3)
    if me == 1:
        works(1)  # the others' old group has lost it
    change(9, handles)
    works(3)


def test_a_uuid_that_one_member_alone_has_used_fails_at_all_and_a_fresh_one_works() -> None:
    job(3, used_by_one, reconfigurable=True)


def at_odds(me: int, size: int) -> None:
    """One member calls with an old uuid, where the others have a fresh one."""
    meeting = Meeting()
    change(1, meeting.handles(me, 0, 1, 2))
    handles = meeting.handles(me, 0, 1, 2)
    with pytest.raises(PCCLError, match="uuid 1 was already used" if me == 1 else "have not come in time: 1"):
        change(1 if me == 1 else 2, handles, 1.0)
    works(3)
    change(3, handles)
    works(3)


def test_an_old_uuid_of_one_member_fails_at_all_and_a_fresh_one_works() -> None:
    job(3, at_odds, reconfigurable=True)


def absent(me: int, size: int) -> None:
    meeting = Meeting()
    change(1, meeting.handles(me, 0, 1, 2))
    works(3)
    handles = meeting.handles(me, 0, 1, 2)
    if me != 1:
        with pytest.raises(RuntimeError) as caught:
            change(2, handles, 1.0)
        if dist.get_backend() == "pccl":
            assert isinstance(caught.value, RankConnectionLost) and "have not come in time: 1" in str(caught.value)
            assert dist.group.WORLD.get_error() == ErrorType.SUCCESS
    meeting.point(me, 0, 1, 2)
    if dist.get_backend() == "pccl":
        works(3)
    change(3, meeting.handles(me, 0, 1, 2))
    works(3)


@with_gloo
def test_a_member_that_never_calls_is_named_and_a_retry_works(backend: str) -> None:
    job(3, absent, backend=backend, reconfigurable=True)


def aborts(me: int, size: int) -> None:
    meeting = Meeting()
    group = dist.group.WORLD
    change(1, meeting.handles(me, 0, 1, 2))
    works(3)
    called = threading.Event()
    group.register_abort_hook(1, called.set)
    group.register_abort_hook(2, lambda: 1 / 0)
    threading.excepthook = lambda _: None
    flying = group.recv([torch.empty(1)], (me + 1) % 3, 9)
    if me == 1:
        threads = [threading.Thread(target=group.abort) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        group.abort()
        assert called.is_set()
    with pytest.raises(PCCLError):
        flying.wait()
    t = torch.full((2,), 7.0)
    with pytest.raises(PCCLError):
        dist.all_reduce(t)
    assert t.tolist() == [7.0, 7.0]
    assert group.get_error() == (ErrorType.SUCCESS if me == 1 else ErrorType.REMOTE_ERROR)
    change(2, meeting.handles(me, 0, 1, 2))
    assert group.get_error() == ErrorType.SUCCESS
    works(3)


def test_abort_during_an_operation_twice_and_from_two_threads_ends_the_group_for_all_until_the_next_reconfiguration() -> None:
    job(3, aborts, reconfigurable=True)


def aborts_idle(me: int, size: int) -> None:
    meeting = Meeting()
    group = dist.group.WORLD
    group.abort()  # before it has begun
    change(1, meeting.handles(me, 0, 1))
    works(2)
    meeting.point(me, 0, 1)
    if me == 0:
        group.abort()
    meeting.point(me, 0, 1)
    with pytest.raises(PCCLError):
        dist.barrier()
    change(2, meeting.handles(me, 0, 1))
    works(2)


def test_abort_with_no_operation_and_before_the_first_reconfiguration() -> None:
    job(2, aborts_idle, reconfigurable=True)


def too_slow(me: int, size: int) -> None:
    meeting = Meeting()
    group = dist.group.WORLD
    change(1, meeting.handles(me, 0, 1, 2))
    works(3)
    called = threading.Event()
    if dist.get_backend() == "pccl":
        group.register_abort_hook(1, called.set)
    (dist.set_timeout if HAS else group.set_timeout)(datetime.timedelta(seconds=1))
    if me != 1:
        t = torch.full((2,), 5.0)
        with pytest.raises(RuntimeError, match="[Tt]imed out"):
            dist.all_reduce(t)
        if dist.get_backend() == "pccl":
            assert called.is_set()
            assert group.get_error() == ErrorType.TIMEOUT
            assert t.tolist() == [5.0, 5.0]
            with pytest.raises(RankConnectionLost, match="is over, since all_reduce timed out after 1 s, waiting for rank 1; make a new one"):
                dist.all_reduce(t)
            assert t.tolist() == [5.0, 5.0]
    meeting.point(me, 0, 1, 2)
    if dist.get_backend() == "pccl":
        with pytest.raises(PCCLError):
            dist.barrier()  # the one that was too slow, too
    (dist.set_timeout if HAS else group.set_timeout)(datetime.timedelta(seconds=60))
    change(2, meeting.handles(me, 0, 1, 2))
    if dist.get_backend() == "pccl":
        assert group.get_error() == ErrorType.SUCCESS
    works(3)


@with_gloo
def test_an_operation_beyond_its_timeout_runs_the_hook_and_ends_the_group_until_the_next_reconfiguration(backend: str) -> None:
    job(3, too_slow, backend=backend, reconfigurable=True)


def not_waited_for(me: int, size: int) -> None:
    meeting = Meeting()
    group: Any = dist.group.WORLD
    change(1, meeting.handles(me, 0, 1))
    works(2)
    calls: list[int] = []
    called = threading.Event()
    group.register_abort_hook(1, lambda: (calls.append(1), called.set()))
    group.set_timeout(datetime.timedelta(seconds=1))
    work = None if me else dist.all_reduce(torch.ones(2), async_op=True)  # rank 1 does not come to it
    if me == 0:
        assert called.wait(30)
        assert group.get_error() == ErrorType.TIMEOUT
        with pytest.raises(RankConnectionLost, match="all_reduce timed out after 1 s"):
            dist.barrier()
        with pytest.raises(RuntimeError, match="[Tt]imed out"):
            work.wait()
        assert calls == [1]
    meeting.point(me, 0, 1)
    group.set_timeout(datetime.timedelta(seconds=60))
    change(2, meeting.handles(me, 0, 1))
    assert group.get_error() == ErrorType.SUCCESS
    works(2)


def test_an_operation_beyond_its_timeout_ends_the_group_where_nobody_waits_for_it() -> None:
    """The hook ran, and the error was told, when somebody waited."""
    job(2, not_waited_for, reconfigurable=True)


def loses(me: int, size: int, number: int) -> None:
    meeting = Meeting()
    change(1, meeting.handles(me, 0, 1, 2))
    works(3)
    meeting.store.set(f"pid/{me}", str(os.getpid()))
    pids = [int(meeting.store.get(f"pid/{rank}")) for rank in range(3)]
    pccl_runs = dist.get_backend() == "pccl"
    if not pccl_runs:
        dist.set_timeout(datetime.timedelta(seconds=3))
    if me == 1:
        os.kill(os.getpid(), number)
    t = torch.full((2,), 3.0)
    with pytest.raises(RankConnectionLost if pccl_runs else RuntimeError):
        while True:
            dist.all_reduce(t)
            t.fill_(3.0)
    if pccl_runs:
        assert t.tolist() == [3.0, 3.0]
        assert dist.group.WORLD.get_error() != ErrorType.SUCCESS
    change(2, meeting.handles(me, 2, 0))
    works(2)
    if me == 0 and number == signal.SIGSTOP:
        os.kill(pids[1], signal.SIGKILL)


@with_gloo
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_after_a_peer_was_killed_or_froze_in_an_all_reduce_the_survivors_have_their_inputs_and_reconfigure(backend: str, number: int) -> None:
    wish: dict[str, Any] = {"reconfigurable": True}
    if backend == "pccl":
        wish = {"options": Options(reconfigurable=True, stall=1.0)}
    job(3, loses, number, backend=backend, lost={1}, **wish)


def trains(me: int, size: int, number: int) -> Any:
    """Several buckets; the victim goes after the first of them have left."""
    meeting = Meeting()
    group = dist.group.WORLD
    change(1, meeting.handles(me, 0, 1, 2))
    model = DistributedDataParallel(net(), bucket_cap_mb=0.0001, find_unused_parameters=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    meeting.store.set(f"pid/{me}", str(os.getpid()))
    pids = [int(meeting.store.get(f"pid/{rank}")) for rank in range(3)]
    step = 0
    if me == 1:
        model.module[0].weight.register_hook(lambda _: os.kill(os.getpid(), number) if step == 2 else None)
    while step < 5:
        x, y = batch(step, me)
        optimizer.zero_grad()
        try:
            nn.functional.mse_loss(model(x), y).backward()
        except RuntimeError as error:
            assert "RANK_CONNECTION_LOST" in str(error), error
            change(2, meeting.handles(me, 0, 2))
            model._update_process_group(group)
            continue
        optimizer.step()
        step += 1
    assert dist.get_world_size() == 2
    if me == 0 and number == signal.SIGSTOP:
        os.kill(pids[1], signal.SIGKILL)
    return [parameter.detach().reshape(-1).tolist() for parameter in model.parameters()]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_ddp_goes_on_with_the_survivors_and_divides_by_how_many_they_are(number: int) -> None:
    results = job(3, trains, number, lost={1}, options=Options(reconfigurable=True, stall=1.0))
    expected = trained(lambda step: range(3) if step < 2 else [0, 2], 5)
    assert results[0] == results[2], "parameters differ between ranks"
    for got, value in zip(results[0], expected, strict=True):
        assert got == pytest.approx(value, rel=1e-4, abs=1e-6)
