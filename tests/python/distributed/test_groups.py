"""How groups begin and end: rendezvous, groups out of groups in any order, incarnations, threads and processes that are left."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import datetime
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import threading
import time
from importlib.metadata import entry_points
from typing import Any

import pytest
import torch
import torch._dynamo  # noqa: F401 - before the ranks are forked: each would import it anew
import torch.distributed as dist
from support.master import Master
from support.tcp_store import served_store
from support.torch_ranks import job
from support.worlds import together

import pccl.distributed
from pccl._native import ffi, lib
from pccl.distributed import Group, Options, farewell, rendezvous
from pccl.engine import World
from pccl.engine.meeting import Record
from pccl.errors import InvalidUsage, OperationTimeout, PCCLError, RankConnectionLost
from pccl.types import LossRule

LIMIT = datetime.timedelta(seconds=30)


def subgroups(rank: int, size: int) -> None:
    pairs = {(a, b): dist.new_group([a, b]) for a in range(size) for b in range(a + 1, size)}
    for (a, b), group in pairs.items():
        if rank in (a, b):
            t = torch.full((2,), rank + 1.0)
            dist.all_reduce(t, group=group)
            assert t.tolist() == [a + b + 2.0] * 2
            assert dist.get_group_rank(group, b) == 1 and dist.get_world_size(group) == 2
            dist.broadcast(t, group_src=1, group=group)
    alone = dist.new_group([rank], use_local_synchronization=True)
    dist.all_reduce(torch.ones(1), group=alone)
    many = [dist.new_group(list(range(size))) for _ in range(10)]
    for i, group in enumerate(many):
        t = torch.full((1,), float(i if rank == 0 else -1))
        dist.broadcast(t, 0, group=group)
        assert t.item() == i, "groups of the same ranks are mixed up"
    first = dist.new_group(list(range(size)))
    second = dist.new_group(list(range(size)))
    for group in (second, first):
        dist.barrier(group)
    dist.destroy_process_group(first)
    dist.barrier(second)
    third = dist.new_group(list(range(size)))
    dist.barrier(third)
    with pytest.raises((InvalidUsage, ValueError)):
        first.barrier().wait()


def test_groups_out_of_a_group() -> None:
    job(4, subgroups)


def crossed(rank: int, size: int) -> None:
    """Groups that members make, and use, in different orders."""
    lists = [[0, 1], [1, 2], [0, 2]]
    order = lists[rank:] + lists[:rank]
    groups = {tuple(ranks): dist.new_group(ranks, use_local_synchronization=True) for ranks in order if rank in ranks}
    works = []
    for ranks, group in groups.items():
        t = torch.full((1,), rank + 1.0)
        works.append((ranks, t, dist.all_reduce(t, group=group, async_op=True)))
    for ranks, t, work in works:
        work.wait()
        assert t.item() == sum(ranks) + 2


def test_groups_in_different_orders() -> None:
    job(3, crossed)


def absent(rank: int, size: int) -> None:
    """A rank that never makes a group: the others' first operation fails under the group's timeout, and names it."""
    if rank:
        number = dist.group.WORLD.world.members()[0].id
        missing = f"{number >> 32}.{number & 0xFFFFFFFF}"  # as texts write it
        group = dist.new_group([0, 1, 2], timeout=datetime.timedelta(seconds=1), use_local_synchronization=True)
        works = [dist.all_reduce(torch.ones(1), group=group, async_op=True) for _ in range(2)]
        for work in works:
            with pytest.raises(RankConnectionLost, match=f"1 of its 3 callers have not come in time, peer {missing}"):
                work.wait()
        with pytest.raises(RuntimeError, match="RANK_CONNECTION_LOST"):
            works[0].get_future().wait()
    dist.barrier()


def test_a_group_that_does_not_come_to_be() -> None:
    job(3, absent)


def without_a_master(rank: int, size: int, master: int) -> None:
    """The master is gone: a new group fails under its own timeout, and what there is goes on."""
    if rank == 0:
        os.kill(master, signal.SIGKILL)
    dist.barrier()
    begin = time.monotonic()
    group = dist.new_group([0, 1], timeout=datetime.timedelta(seconds=1))
    with pytest.raises(PCCLError, match="the master cannot be reached"):
        dist.barrier(group)
    assert time.monotonic() - begin < 8.0, "it has its own timeout, not the 10 s of others"
    dist.barrier()
    dist.group.WORLD.set_timeout(datetime.timedelta(seconds=0.2))  # that it waits for others at its end, which a master would cut short


def test_a_group_without_a_master_has_its_own_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(farewell, "PATIENCE", 0.2)
    with Master() as own:
        monkeypatch.setenv("PCCL_MASTER", own.address)
        job(2, without_a_master, own.process.pid)


def again(rank: int, size: int) -> None:
    for _ in range(3):
        threads = {thread.name for thread in threading.enumerate()}
        dist.all_reduce(torch.ones(1), async_op=True).get_future().wait()
        dist.destroy_process_group()
        assert {thread.name for thread in threading.enumerate()} <= threads | {"pccl-completions", "pccl-deadlines"}
        path = os.environ["AGAIN"]
        dist.init_process_group("pccl", store=dist.FileStore(path, size), rank=rank, world_size=size, timeout=LIMIT)
        t = torch.ones(1)
        dist.all_reduce(t)
        assert t.item() == size


def test_begun_again_over_one_store(tmp_path: pathlib.Path) -> None:
    job(3, again, environment={"AGAIN": str(tmp_path / "store")})


def restarted(rank: int, size: int, incarnation: int) -> None:
    """In a job that has a past, and one rank that comes before rank 0 has: it finds what is of the past."""
    store = dist.TCPStore("127.0.0.1", int(os.environ["STORE"]), is_master=False)
    if rank == 0:
        store.wait([f"look/{incarnation}"], LIMIT)
    else:
        store.set(f"look/{incarnation}", "")
    dist.destroy_process_group()
    dist.init_process_group("pccl", store=store, rank=rank, world_size=size, timeout=LIMIT)
    t = torch.ones(1)
    dist.all_reduce(t)
    assert t.item() == size


def test_a_job_that_was_started_again_does_not_meet_its_past() -> None:
    with served_store() as port:
        for incarnation in range(3):
            job(2, restarted, incarnation, environment={"STORE": str(port)})
        with Master() as gone:
            store = dist.TCPStore("127.0.0.1", port, is_master=False)
            store.add("incarnation", 1)
            store.set("incarnation/4", json.dumps([gone.address, "nobody"]))
        job(2, restarted, 3, environment={"STORE": str(port)})


def nobody(rank: int, size: int) -> str:
    dist.destroy_process_group()
    with pytest.raises(PCCLError) as caught:
        dist.init_process_group("pccl", store=dist.HashStore(), rank=rank, world_size=2, timeout=datetime.timedelta(seconds=1))
    return str(caught.value)


def test_ranks_that_are_missing_are_named() -> None:
    first, second = job(2, nobody)  # each has a store of its own
    assert "these ranks have not come in time: 1" in first
    assert "rank 0 has not said" in second


@pytest.mark.parametrize("rank", [0, 1])
def test_a_store_that_gives_no_answer(rank: int, master: Master, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the process that serves it is frozen: torch waits for ever, a group for its timeout."""
    monkeypatch.setenv("PCCL_MASTER", master.address)
    thawed = threading.Event()

    class Store:
        """Its calls return when it is thawed."""

        def check(self, keys: list[str]) -> bool:
            thawed.wait()
            return False

        def add(self, key: str, amount: int) -> int:
            thawed.wait()
            return 1

        def set(self, key: str, value: str) -> None:
            """Nobody reads it."""

    try:
        with pytest.raises(OperationTimeout, match="the store gives no answer"):
            rendezvous.meet(Store(), rank, 2, 0.1, Options())
    finally:
        thawed.set()


@pytest.mark.parametrize(("timeout", "limit"), [(0.5, 500), (60.0, 10000)])
def test_a_master_has_no_more_time_to_answer_than_the_group(master: Master, timeout: float, limit: int) -> None:
    """A group with a timeout of a second that tries to reach a master for ten."""
    world = rendezvous._world(Record(master.address, "w"), 0, 2, timeout, Options())
    value = ffi.new("uint64_t *")
    lib.pcclGetOption(world.handle, lib.PCCL_OPTION_CONNECT_TIMEOUT_MS, value)
    world.destroy()
    assert value[0] == limit


def test_a_port_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for wrong in ("48k", "-1", "65536"):
        monkeypatch.setenv("PCCL_MASTER_PORT", wrong)
        with pytest.raises(ValueError, match=f"PCCL_MASTER_PORT is '{wrong}'; set it to a port"):
            rendezvous.own_master(dist.HashStore())


def own_master(rank: int, size: int) -> str:
    return dist.group.WORLD.where.master


def test_rank_0_starts_a_master_where_none_is_given() -> None:
    addresses = job(3, own_master, environment={"PCCL_MASTER": ""})
    assert len(set(addresses)) == 1 and addresses[0] != os.environ["PCCL_MASTER"]


def in_mixed(rank: int, size: int) -> None:
    """Groups of this backend beside a default group of another."""
    group = dist.new_group([0, 1], backend="pccl")
    if rank < 2:
        t = torch.ones(1)
        dist.all_reduce(t, group=group)
        assert t.item() == 2.0
    dist.barrier()


def test_beside_gloo() -> None:
    job(3, in_mixed, backend="gloo")


def given(rank: int, size: int) -> int:
    return dist.group.WORLD.options.lanes


def test_options() -> None:
    assert job(2, given, options=Options(lanes=2, loss_rule=LossRule.SHRINK)) == [2, 2]
    with pytest.raises(ValueError, match="master is not given"):
        Options(world="x")
    with pytest.raises(ValueError, match="LossRule.SHRINK"):
        Options(master="127.0.0.1:1", world="x", join=True)
    for name, wrong in (
        ("loss_rule", 1), ("master", None), ("world", b"w"), ("join", "no"), ("lanes", "2"), ("lanes", -1), ("stall", 0), ("stall", "10"),
        ("stall", float("nan")), ("reconfigurable", 1), ("as_backend", None),
    ):
        with pytest.raises((TypeError, ValueError), match=re.escape(f"Options.{name} is {wrong!r}; pass ")):
            Options(**{name: wrong})
    with pytest.raises(AssertionError, match="pg_options is a dict"):
        job(1, given, options={})


def aborted(rank: int, size: int) -> None:
    dist.barrier()  # both are in
    group = dist.group.WORLD
    work = dist.irecv(torch.empty(1), 1 - rank)
    dist.new_group([0, 1])
    if rank == 0:
        group.abort()
        group.abort()
    with pytest.raises(PCCLError):
        work.wait()
    t = torch.full((1,), 7.0)
    with pytest.raises(PCCLError, match="aborted|REVOKED|ended"):
        dist.all_reduce(t)
    assert t.item() == 7.0
    with pytest.raises(PCCLError, match="the default group has no world: this group was aborted here" if rank == 0 else "revoked"):
        dist.barrier(dist.new_group([0, 1]))


def test_abort_ends_a_group_for_all() -> None:
    job(2, aborted)


SCRIPT = """
import sys, torch, torch.distributed as dist
IMPORT
dist.init_process_group("pccl")
t = torch.ones(1)
dist.all_reduce(t)
rank, size = dist.get_rank(), dist.get_world_size()
sys.stdout.write(f"{rank} of {size}: {t.item()}\\n")
"""


def under_torchrun(tmp_path: pathlib.Path, line: str) -> None:
    """Two ranks of a program in which `line` makes torch know the backend."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT.replace("IMPORT", line))
    command = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--master-port", "0", "--standalone", str(script)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=90)
    assert result.returncode == 0, result.stderr
    assert sorted(result.stdout.splitlines()) == ["0 of 2: 2.0", "1 of 2: 2.0"]


def test_torchrun_and_an_end_without_destroy(tmp_path: pathlib.Path) -> None:
    under_torchrun(tmp_path, "import pccl.distributed")


@pytest.mark.skipif(not hasattr(dist.Backend, "_ensure_backend_registered"), reason="this torch does not look for installed backends")
@pytest.mark.skipif(not entry_points(group="torch.distributed.backends", name="pccl"), reason="pccl is not installed")
def test_an_installed_backend_needs_no_import(tmp_path: pathlib.Path) -> None:
    under_torchrun(tmp_path, "assert 'pccl' not in sys.modules")


def test_registered_once() -> None:
    pccl.distributed.register()
    assert dist.Backend.backend_list.count("pccl") == 1
    assert dist.Backend.backend_capability["pccl"] == ["cpu"]


def meaning(rank: int, size: int) -> Any:
    group = dist.group.WORLD
    return group.name(), group.group_name, dist.get_backend(), group.getBackendName(), group.rank(), group.size()


def test_the_detail_of_debugging_does_no_harm() -> None:
    job(2, crossed_pair, environment={"TORCH_DISTRIBUTED_DEBUG": "DETAIL"})


def crossed_pair(rank: int, size: int) -> None:
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(2, 2))
    net(torch.ones(1, 2)).sum().backward()
    dist.barrier(dist.new_group([0, 1]))


def test_names() -> None:
    assert [result[2:] for result in job(2, meaning)] == [("pccl", "pccl", rank, 2) for rank in range(2)]


def threads_as_ranks(_: int, __: int) -> list[Any]:
    """Several groups one after the other, over one store; each rank of them is a thread of this process."""
    store, seconds, found = dist.HashStore(), 20.0, []
    for size in (2, 4, 3):

        def rank_of(rank: int) -> float:
            def make(group: Group) -> World:
                world, group.where = rendezvous.meet(store, rank, size, seconds, Options())
                return world

            group = Group(rank, size, datetime.timedelta(seconds=seconds), Options(), make, False, lambda: "")
            tensor = torch.tensor([rank + 1.0])
            group.allreduce([tensor]).wait()
            group.leave(seconds)
            return float(tensor)

        found.append(together(size, rank_of))
    farewell.finish()
    return found


def test_more_than_two_ranks_of_a_group_are_threads_of_one_process() -> None:
    """A third one was told that rank 0 has not come."""
    assert job(1, threads_as_ranks) == [[[3.0] * 2, [10.0] * 4, [6.0] * 3]]
