"""The reconfigure contract: handles, ranks by position, shrink, regrow, failures that leave the old group as it was, abort as revoke."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import datetime
import os
import pathlib
import signal
import threading
from typing import Any

import pytest
import torch
import torch.distributed as dist
from support.torch_ranks import job

from pccl.distributed import Options, reconfigure, reconfigure_handle
from pccl.errors import InvalidUsage, PCCLError, RankConnectionLost

RECONFIGURABLE = Options(reconfigurable=True)
SECONDS = datetime.timedelta(seconds=20)


class Meeting:
    """A store of the test's own, over which ranks tell each other handles, and meet."""

    def __init__(self, size: int) -> None:
        self.store = dist.distributed_c10d._get_default_store()
        self.rounds = 0

    def handles(self, me: int, *members: int) -> list[str]:
        self.rounds += 1
        self.store.set(f"handle/{self.rounds}/{me}", reconfigure_handle())
        return [self.store.get(f"handle/{self.rounds}/{member}").decode() for member in members]

    def skip(self) -> None:
        self.rounds += 1


def works(expected: int) -> None:
    """Sum, broadcast, and a ring of messages over the ranks that are now."""
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


def shapes(me: int, size: int) -> None:
    meeting = Meeting(size)
    with pytest.raises(InvalidUsage, match="has not been initialized"):
        dist.all_reduce(torch.ones(1))
    order = [2, 0, 1]
    reconfigure(1, meeting.handles(me, *order)).wait()
    assert dist.get_rank() == order.index(me)
    works(3)
    pair = [0, 2]  # the middle one is left out, and stays healthy
    if me in pair:
        reconfigure(2, meeting.handles(me, *pair)).wait()
        assert dist.get_rank() == pair.index(me)
        works(2)
    else:
        meeting.skip()
        assert (dist.get_rank(), dist.get_world_size()) == (2, 3)
    reconfigure(3, set(meeting.handles(me, 0, 1, 2))).wait()
    ranks: list[Any] = [None] * 3
    dist.all_gather_object(ranks, dist.get_rank())
    assert ranks == [0, 1, 2]
    works(3)
    reconfigure(10 + me, meeting.handles(me, me)).wait()
    works(1)
    reconfigure(-4, meeting.handles(me, 0, 1, 2)).wait()
    reconfigure(5, meeting.handles(me, 0, 1, 2)).wait()
    works(3)


def test_shapes() -> None:
    job(3, shapes, options=RECONFIGURABLE)


def refusals(me: int, size: int) -> None:
    meeting = Meeting(size)
    if me == 0:
        reconfigure(77, [reconfigure_handle()]).wait()
    with pytest.raises(RuntimeError, match="already used"):  # by the other one
        reconfigure(77, meeting.handles(me, 0, 1)).wait()
    reconfigure(1, meeting.handles(me, 0, 1)).wait()
    handles = meeting.handles(me, 0, 1)
    for wrong, text in (([handles[1 - me]], "own handle"), ([*handles, handles[0]], "unique"), (["rubbish", *handles], "invalid handle"), ([], "own handle")):
        with pytest.raises(RuntimeError, match=text):
            reconfigure(2, wrong)
    with pytest.raises(RuntimeError, match="already used"):
        reconfigure(1, handles).wait()
    works(2)
    dist.barrier()
    if me == 0:  # a member that never calls
        with pytest.raises(RankConnectionLost, match="have not come in time: 1"):
            reconfigure(3, handles, timeout=datetime.timedelta(seconds=1)).wait()
    meeting.handles(me, 0, 1)
    works(2)
    reconfigure(4, meeting.handles(me, 0, 1)).wait()
    works(2)


def test_failures_leave_the_old_group() -> None:
    job(2, refusals, options=RECONFIGURABLE)


def without_master(me: int, size: int) -> None:
    with pytest.raises(RuntimeError, match="set PCCL_MASTER"):
        reconfigure(1, [reconfigure_handle()])


def test_a_master_has_to_be_named() -> None:
    job(1, without_master, options=RECONFIGURABLE, environment={"PCCL_MASTER": ""})


def aborts(me: int, size: int) -> None:
    meeting = Meeting(size)
    group = dist.group.WORLD
    reconfigure(1, meeting.handles(me, 0, 1, 2)).wait()
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
    reconfigure(2, meeting.handles(me, 0, 1, 2)).wait()
    assert group.get_error() == torch._C._distributed_c10d.ErrorType.SUCCESS
    works(3)


def test_abort_is_revoke() -> None:
    job(3, aborts, options=RECONFIGURABLE)


def loses(me: int, size: int) -> None:
    meeting = Meeting(size)
    reconfigure(1, meeting.handles(me, 0, 1, 2)).wait()
    works(3)
    if me == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    t = torch.full((2,), 3.0)
    with pytest.raises(RankConnectionLost):
        while True:
            dist.all_reduce(t)
            t.fill_(3.0)
    assert t.tolist() == [3.0, 3.0]
    reconfigure(2, meeting.handles(me, 2, 0)).wait()
    works(2)


def test_survivors_reconfigure() -> None:
    job(3, loses, lost={1}, options=RECONFIGURABLE)


def newcomer(me: int, size: int, folder: str) -> None:
    """A process that was in no earlier membership, over another store."""
    store = dist.FileStore(str(pathlib.Path(folder, "common")), 4)
    store.set(f"first/{os.environ['PART']}/{me}", reconfigure_handle())
    if os.environ["PART"] == "old":
        reconfigure(1, [store.get(f"first/old/{rank}").decode() for rank in range(2)]).wait()
        works(2)
        store.set(f"second/{me}", reconfigure_handle())
    else:
        store.set("second/2", reconfigure_handle())
    reconfigure(2, [store.get(f"second/{rank}").decode() for rank in range(3)]).wait()
    works(3)


def test_a_newcomer(tmp_path: pathlib.Path) -> None:
    results: list[Any] = []

    def start(part: str, size: int) -> None:
        results.append(job(size, newcomer, str(tmp_path), options=RECONFIGURABLE, environment={"PART": part}))

    threads = [threading.Thread(target=start, args=(part, size)) for part, size in (("old", 2), ("new", 1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 2


def plain(me: int, size: int) -> None:
    assert not dist.group.WORLD.supports_reconfigure
    with pytest.raises(InvalidUsage, match="not made for it"):
        reconfigure(1, [reconfigure_handle()])


def test_a_group_that_is_not_made_for_it() -> None:
    job(1, plain)
