"""Ranks that are done before others: what has completed stays so, others go on among themselves, and who needs one that left is told so."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import datetime
import gc
import os
import pathlib
import signal
import sys
import weakref
from typing import Any, Optional

import pytest
import torch
import torch.distributed as dist
from support.torch_ranks import job

import pccl.distributed
from pccl.distributed import Group, Options, farewell, registration, rendezvous
from pccl.errors import InvalidUsage, RankConnectionLost
from pccl.types import Cause, ErrorClass

SIZE = 4
QUICK = Options(stall=1.0)  # so that who waits for one that left is found out soon


def point(name: str, *ranks: int) -> None:
    """Returns when those have come: over a store of the test's own, which lives as long as the test."""
    store = dist.FileStore(os.environ["POINTS"], SIZE)
    store.set(f"{name}/{os.environ['ME']}", "")
    store.wait([f"{name}/{rank}" for rank in ranks], datetime.timedelta(seconds=30))


def everything(rank: int, size: int, order: list[int], rounds: int) -> None:
    """Collectives and groups, then messages along a chain, whose ranks are done one after the other, at once after their last call."""
    path = os.environ["POINTS"]
    place = order.index(rank)
    for i in range(rounds):
        t = torch.full((1000,), rank + 1.0)
        dist.all_reduce(t)
        assert t[0].item() == size * (size + 1) / 2
        pair = [dist.new_group(sorted(order[k : k + 2])) for k in range(0, size, 2)][place // 2]
        dist.all_reduce(torch.ones(1), group=pair)
        for k in range(20):
            t = torch.full((100 if k % 2 else 100_000,), float(k))
            if place > 0:
                dist.recv(t, order[place - 1])
            if place + 1 < size:
                dist.send(t, order[place + 1])
            assert t[-1].item() == k
        dist.destroy_process_group()
        dist.init_process_group("pccl", store=dist.FileStore(path, size), rank=rank, world_size=size)
    dist.barrier()


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]])
def test_ranks_that_are_done_one_after_the_other_hurt_nobody(order: list[int], tmp_path: pathlib.Path) -> None:
    job(SIZE, everything, order, 5, environment={"POINTS": str(tmp_path / "points")})


def exchange(a: int, b: int) -> None:
    """Messages between the two, both ways, of both kinds of sizes."""
    me, other = dist.get_rank(), a + b - dist.get_rank()
    for k in range(50):
        t = torch.full((10 if k % 2 else 50_000,), float(k))
        dist.send(t, other) if (me == a) == (k % 3 == 0) else dist.recv(t.zero_(), other)
        assert t[0].item() == k


def one_is_done(rank: int, size: int) -> Any:
    os.environ["ME"] = str(rank)
    dist.barrier()
    if rank == 1:
        dist.destroy_process_group()
        return None
    if rank == 0:
        point("done", 0, 2, 3)
    else:
        exchange(2, 3)
        group = dist.new_group([2, 3], use_local_synchronization=True)
        t = torch.ones(1)
        dist.all_reduce(t, group=group)
        assert t.item() == 2.0
        point("done", 0, 2, 3)
    told = []
    for call in (lambda: dist.all_reduce(torch.ones(1)), lambda: dist.recv(torch.ones(1), 1), lambda: dist.send(torch.ones(1), 1)):
        with pytest.raises(RankConnectionLost, match="rank 1 has left this group") as caught:
            call()
        assert caught.value.error_class is ErrorClass.REJOIN
        told.append(caught.value.cause)
    assert dist.group.WORLD.get_error() == torch._C._distributed_c10d.ErrorType.COMM_ERROR
    return told


def test_others_go_on_among_themselves_and_are_told_who_has_left_when_they_need_it(tmp_path: pathlib.Path) -> None:
    results = job(SIZE, one_is_done, options=QUICK, environment={"POINTS": str(tmp_path / "points")})
    assert [result for result in results if result is not None] == [[Cause.PEER_LEFT] * 3] * 3


def one_is_done_long_before(rank: int, size: int) -> None:
    """Its own operations are given up: those of others go on, beyond what it waits for its own."""
    os.environ["ME"] = str(rank)
    farewell.PATIENCE = 0.01
    dist.barrier()
    if rank == 1:
        never = [dist.irecv(torch.ones(1), 0), dist.isend(torch.ones(100_000), 0)]
        dist.destroy_process_group()
        for work in never:
            with pytest.raises(RuntimeError):
                work.wait()
        return
    if rank == 0:
        with pytest.raises(RankConnectionLost, match="rank 1 has left this group"):
            dist.recv(torch.ones(1), 1, tag=1)  # it has only left when it is done with its own
        point("left", 0, 2, 3)
    else:
        point("left", 0, 2, 3)
        exchange(2, 3)
    point("done", 0, 2, 3)


def test_others_go_on_as_long_as_an_operation_may_take(tmp_path: pathlib.Path) -> None:
    job(SIZE, one_is_done_long_before, options=QUICK, environment={"POINTS": str(tmp_path / "points")})


def done_and_interrupted(rank: int, size: int) -> None:
    """Ctrl-C while it is still there for the others: it leaves at once, also at the end of the interpreter, and the group is over."""
    pids: list[Any] = [None] * size
    dist.all_gather_object(pids, os.getpid())
    if rank == 1:
        with pytest.raises(KeyboardInterrupt):
            dist.destroy_process_group()
        registration._leave_all()
        return
    with pytest.raises(RankConnectionLost, match="rank 1 has left this group"):
        dist.recv(torch.ones(1), 1)
    if rank == 0:
        os.kill(pids[1], signal.SIGINT)
    with pytest.raises(RankConnectionLost, match="rank 1 has left this group"):
        while True:
            exchange(0, 2)


def test_who_waits_for_the_others_may_be_interrupted() -> None:
    job(3, done_and_interrupted, options=QUICK, timeout=3600.0)


def a_parent_that_is_a_rank(rank: int, size: int) -> None:
    """It is at its own end when another's program has ended, which did not destroy its group."""
    os.environ["ME"] = str(rank)
    farewell.PATIENCE = 0.01
    dist.barrier()
    if rank == 1:
        registration._leave_all()
        point("ended", 1)
        return
    point("ended", 1)


def test_a_program_that_ends_is_not_kept_by_who_waits_for_that(tmp_path: pathlib.Path) -> None:
    job(2, a_parent_that_is_a_rank, options=QUICK, timeout=3600.0, environment={"POINTS": str(tmp_path / "points")})


def done_and_killed(rank: int, size: int) -> None:
    """One dies while others wait for it to be done."""
    dist.barrier()
    if rank == 1:
        for other in (0, 2):
            with pytest.raises(RankConnectionLost, match="has left this group"):
                dist.recv(torch.ones(1), other)
        os.kill(os.getpid(), signal.SIGKILL)
    dist.destroy_process_group()


def test_nobody_waits_for_one_that_was_killed() -> None:
    job(3, done_and_killed, lost={1}, options=QUICK, timeout=3600.0)


def long_gone(rank: int, size: int) -> None:
    """The one that was done has waited as long as an operation may take, and has left; so the group is over, but not the groups of others."""
    os.environ["ME"] = str(rank)
    farewell.PATIENCE = 0.01
    dist.barrier()
    if rank == 1:
        dist.group.WORLD.set_timeout(datetime.timedelta(seconds=0.01))
        dist.destroy_process_group()
        return
    with pytest.raises(RankConnectionLost, match="rank 1 has left this group"):
        while True:
            dist.recv(torch.ones(1), 1)
    group = dist.new_group([0, 2, 3], use_local_synchronization=True)
    t = torch.ones(1)
    dist.all_reduce(t, group=group)
    assert t.item() == 3.0
    if rank == 0:
        with pytest.raises(RankConnectionLost):
            dist.barrier(dist.new_group([0, 1], use_local_synchronization=True))


def test_a_new_group_of_those_who_are_left(tmp_path: pathlib.Path) -> None:
    job(SIZE, long_gone, options=QUICK, environment={"POINTS": str(tmp_path / "points")})


def killed(rank: int, size: int) -> Any:
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(RankConnectionLost) as caught:
        dist.recv(torch.ones(1), 1)
    assert "has left" not in str(caught.value)
    return caught.value.cause


def test_one_that_was_killed_is_lost_and_has_not_left() -> None:
    assert job(3, killed, lost={1}) == [Cause.PEER_LOST, "lost", Cause.PEER_LOST]


def unwaited(rank: int, size: int) -> None:
    """What was sent, and not waited for, arrives all the same."""
    os.environ["ME"] = str(rank)
    if rank == 0:
        dist.isend(torch.full((100_000,), 5.0), 1)
    else:
        t = torch.zeros(100_000)
        point("later", 1)
        dist.recv(t, 0)
        assert t[-1].item() == 5.0


def test_what_is_in_flight_is_waited_for(tmp_path: pathlib.Path) -> None:
    job(2, unwaited, environment={"POINTS": str(tmp_path / "points")})


def updates(rank: int, size: int) -> None:
    with pytest.raises(InvalidUsage, match="SHRINK"):
        pccl.distributed.update()


def test_a_group_that_ends_with_its_first_loss_lets_nobody_in() -> None:
    job(1, updates)


def ends(rank: int, size: int, failed: bool) -> None:
    """Rank 0 ends without a destroy; what it would wait for comes, or never does."""
    dist.barrier()
    farewell.PATIENCE = 3600.0
    if rank == 0:
        if failed:
            sys.last_value = RuntimeError("as the interpreter says it")
        registration._leave_all()
    elif failed:
        with pytest.raises(RankConnectionLost, match="rank 0 has left this group"):
            dist.recv(torch.ones(1), 0)
    else:
        exchange(1, 2)


@pytest.mark.parametrize("failed", [False, True])
def test_who_ends_well_waits_for_others_and_who_ends_by_an_exception_leaves_at_once(failed: bool) -> None:
    job(3, ends, failed)


def dropped(rank: int, size: int) -> Optional[str]:
    """Rank 0 drops its group after all kinds of calls, while rank 1 waits in one; nothing is collected."""
    gc.collect()
    gc.disable()
    store, seconds = dist.distributed_c10d._get_default_store(), datetime.timedelta(seconds=60)

    def made() -> Any:
        def make(group: Any) -> Any:
            world, group.where = rendezvous.meet(dist.PrefixStore("dropped", store), rank, size, 60.0, Options())
            return world

        return Group(rank, size, seconds, Options(), make, False, lambda: "")

    def used(group: Any) -> None:
        for call in (lambda: group.allreduce([torch.ones(2)], dist.ReduceOp.BAND), lambda: group.recv([torch.ones(1)], 7, 0)):
            try:
                call().wait()
            except (RuntimeError, ValueError, TypeError):
                pass
        work = group.allreduce([torch.ones(1)])
        assert work.get_future().wait()[0].item() == size

    group = made()
    used(group)
    if rank == 0:
        reference = weakref.ref(group)
        unawaited = group.recv([torch.ones(1)], 1, 3)  # goes on, and ends with the group
        del unawaited
        del group
        assert reference() is None
        store.set("dropped", "")
        return None
    store.wait(["dropped"])
    try:
        group.barrier().wait()
    except RankConnectionLost as error:
        return f"{error.cause.name}: {'Connection closed by peer' in str(error)}"
    return "no error"


def test_a_group_that_is_dropped_leaves_at_once() -> None:
    """The others waited for the whole timeout, as it lay in a reference cycle."""
    assert job(2, dropped) == [None, "PEER_LEFT: True"]
