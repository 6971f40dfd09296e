"""The reconfigure contract: handles, ranks by position, who is left out and comes back, newcomers, groups that part and merge, refusals."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import os
import pathlib
import threading
from typing import Any

import pytest
import torch
import torch.distributed as dist
from support.reconfiguring import Meeting, change, gloo, handle, supported, with_gloo, works
from support.tcp_store import served_store
from support.torch_ranks import job
from torch.testing._internal.distributed import fake_pg  # noqa: F401 - registers the backend fake

import pccl.distributed
from pccl.distributed import Options
from pccl.errors import InvalidUsage


def connections() -> int:
    """How many TCP sockets this process has."""
    tcp = {line.split()[9] for name in ("tcp", "tcp6") for line in pathlib.Path("/proc/self/net", name).read_text().splitlines()[1:]}
    links = set()
    for fd in pathlib.Path("/proc/self/fd").iterdir():
        try:
            links.add(os.readlink(fd))
        except FileNotFoundError:
            pass  # that of the look itself
    return len(links & {f"socket:[{inode}]" for inode in tcp})


def deferred(me: int, size: int) -> None:
    first = handle()
    with pytest.raises(RuntimeError, match="has not been initialized"):
        dist.all_reduce(torch.ones(1))
    assert handle() == first
    if dist.get_backend() == "pccl":
        assert connections() == 0
        assert (dist.get_rank(), dist.get_world_size()) == (me, size)
        work = dist.all_reduce(torch.ones(1), async_op=True)  # no call raises when it issues something
        with pytest.raises(InvalidUsage, match="call reconfigure"):
            work.wait()
    change(1, Meeting().handles(me, 0, 1))
    works(2)
    assert connections() > 0


@with_gloo
def test_a_group_has_a_handle_and_no_socket_before_its_first_reconfiguration_and_refuses_calls(backend: str) -> None:
    job(2, deferred, backend=backend, reconfigurable=True)


def ordered(me: int, size: int) -> None:
    meeting = Meeting()
    order = [2, 0, 1]
    change(1, meeting.handles(me, *order))
    assert dist.get_rank() == order.index(me)
    works(3)
    change(2, set(meeting.handles(me, 0, 1, 2)))
    ranks: list[Any] = [None] * 3
    dist.all_gather_object(ranks, dist.get_rank())
    assert ranks == [0, 1, 2]
    works(3)


@with_gloo
def test_in_a_list_positions_are_ranks_and_in_a_set_all_agree_on_them(backend: str) -> None:
    job(3, ordered, backend=backend, reconfigurable=True)


def left_out(me: int, size: int, out: int) -> None:
    meeting = Meeting()
    change(1, meeting.handles(me, 0, 1, 2))
    works(3)
    left = [rank for rank in range(3) if rank != out]
    if me != out:
        change(2, meeting.handles(me, *left))
        assert dist.get_rank() == left.index(me)
        works(2)
    else:
        meeting.skip()
        assert (dist.get_rank(), dist.get_world_size()) == (out, 3)
    meeting.point(me, 0, 1, 2)
    if me == out:
        with pytest.raises(RuntimeError):
            dist.all_reduce(torch.ones(1))  # the old group's
    change(3, meeting.handles(me, 0, 1, 2))
    assert dist.get_rank() == me
    works(3)


@with_gloo
@pytest.mark.parametrize("out", [1, 2])
def test_others_go_on_without_a_rank_that_is_left_out_stays_healthy_and_comes_back(backend: str, out: int) -> None:
    job(3, left_out, out, backend=backend, reconfigurable=True)


def alone(me: int, size: int) -> None:
    meeting = Meeting()
    change(1, meeting.handles(me, 0, 1, 2))
    works(3)
    change(10 + me, [handle()])
    works(1)
    change(2, meeting.handles(me, 0, 1, 2))
    works(3)


@with_gloo
def test_all_then_each_alone_then_all_again(backend: str) -> None:
    job(3, alone, backend=backend, reconfigurable=True)


def again(me: int, size: int) -> None:
    meeting = Meeting()
    seen = set()
    for uuid in (1, 5, 3, -4):
        seen.add(handle())
        change(uuid, meeting.handles(me, 0, 1))
        works(2)
    assert len(seen) == 4, "a handle does not change with a reconfiguration"


@with_gloo
def test_the_same_members_again_under_other_uuids(backend: str) -> None:
    job(2, again, backend=backend, reconfigurable=True)


def newcomer(me: int, size: int) -> None:
    meeting = Meeting()
    if me < 2:
        change(1, meeting.handles(me, 0, 1))
        works(2)
    else:
        meeting.skip()
    change(2, meeting.handles(me, 2, 0, 1))
    assert dist.get_rank() == (me + 1) % 3
    works(3)


@with_gloo
def test_a_process_that_was_in_no_earlier_group_joins(backend: str) -> None:
    job(3, newcomer, backend=backend, reconfigurable=True)


def parted(me: int, size: int) -> None:
    meeting = Meeting()
    pair = [0, 1] if me < 2 else [3, 2]
    change(1 if me < 2 else 2, meeting.handles(me, *pair))
    assert dist.get_rank() == pair.index(me)
    works(2)
    change(3, meeting.handles(me, 0, 1, 2, 3))
    works(4)


@with_gloo
def test_two_groups_that_begin_at_once_merge_into_one(backend: str) -> None:
    job(4, parted, backend=backend, reconfigurable=True)


def mistaken(me: int, size: int) -> None:
    meeting = Meeting()
    old = meeting.handles(me, 0, 1)
    change(1, old)
    handles = meeting.handles(me, 0, 1)
    wrong = [([handles[1 - me]], "not part of the new"), ([*handles, handles[0]], "must be unique"), (["rubbish", *handles], "nvalid.*handle")]
    if dist.get_backend() == "pccl":
        wrong += [([], "not part of the new"), (old, "not part of the new"), (["pccl||x|", *handles], "nvalid.*handle")]
        with pytest.raises(RuntimeError, match="64 bits"):
            pccl.distributed.reconfigure(2**63, handles)
    for listed, text in wrong:
        with pytest.raises(RuntimeError, match=text):
            change(2, listed)
    works(2)


@with_gloo
def test_handles_that_cannot_be_are_refused_at_once_and_the_group_is_as_it_was(backend: str) -> None:
    job(2, mistaken, backend=backend, reconfigurable=True)


def mixed(me: int, size: int) -> None:
    for call in (supported, handle, lambda: change(1, ["x"])):
        with pytest.raises(RuntimeError, match="reconfigure APIs do not support process groups with multiple backends"):
            call()


@pytest.mark.parametrize("backend", ["cpu:pccl,cuda:gloo", gloo("cpu:gloo,cuda:fake")])
def test_groups_with_several_backends_are_refused(backend: str) -> None:
    job(1, mixed, backend=backend, reconfigurable=True)


def one_of_its_kind(me: int, size: int) -> None:
    assert supported()
    change(1, [handle()])
    works(1)


@pytest.mark.parametrize("backend", ["cpu:pccl,cuda:pccl", gloo("cpu:gloo,cuda:gloo")])
def test_one_backend_for_several_devices_is_one(backend: str) -> None:
    job(1, one_of_its_kind, backend=backend, reconfigurable=True)


def without_environment(me: int, size: int, folder: str, kind: str, port: int) -> None:
    """Groups of ranks that know each other by what a file tells alone."""
    dist.destroy_process_group()
    for name in ("PCCL_MASTER", "MASTER_ADDR", "MASTER_PORT", "RANK", "WORLD_SIZE"):
        os.environ.pop(name, None)
    store: Any = dist.HashStore()
    if kind == "file":
        store = dist.FileStore(str(pathlib.Path(folder, "group")), size)
    elif kind == "tcp":
        store = dist.TCPStore("127.0.0.1", port, is_master=False)
    wish: Any = {"enable_reconfigure": True} if hasattr(dist, "_reconfigure") else {"pg_options": Options(reconfigurable=True)}
    dist.init_process_group("pccl", store=store, rank=me, world_size=size, **wish)
    meeting = Meeting()
    meeting.store = dist.FileStore(str(pathlib.Path(folder, "meeting")), size)
    change(1, meeting.handles(me, 0, 1, 2))
    works(3)
    if me:  # without the one whose master it was
        change(2, meeting.handles(me, 2, 1))
        works(2)
    else:
        meeting.skip()
    change(3, meeting.handles(me, 0, 1, 2))
    works(3)


@pytest.mark.parametrize("kind", ["file", "tcp", "hash"])
def test_any_store_will_do_and_no_environment_is_needed(kind: str, tmp_path: pathlib.Path) -> None:
    """A HashStore is of one process alone: the group needs none to begin."""
    with served_store() as port:
        job(3, without_environment, str(tmp_path), kind, port, reconfigurable=True)


def over_another_store(me: int, size: int, folder: str) -> None:
    store = dist.FileStore(str(pathlib.Path(folder, "common")), 4)
    store.set(f"first/{os.environ['PART']}/{me}", handle())
    if os.environ["PART"] == "old":
        change(1, [store.get(f"first/old/{rank}").decode() for rank in range(2)])
        works(2)
        store.set(f"second/{me}", handle())
    else:
        store.set("second/2", handle())
    change(2, [store.get(f"second/{rank}").decode() for rank in range(3)])
    works(3)


def test_a_newcomer_needs_no_store_of_the_others(tmp_path: pathlib.Path) -> None:
    results: list[Any] = []

    def start(part: str, size: int) -> None:
        results.append(job(size, over_another_store, str(tmp_path), reconfigurable=True, environment={"PART": part}))

    threads = [threading.Thread(target=start, args=(part, size)) for part, size in (("old", 2), ("new", 1))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(results) == 2


def plain(me: int, size: int) -> None:
    assert not supported()
    with pytest.raises(InvalidUsage, match="not made for it"):
        change(1, [handle()])


def test_a_group_that_is_not_made_for_it() -> None:
    job(1, plain)
