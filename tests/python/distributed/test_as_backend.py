"""A group that is torch's own, with a back-end of ours: maps of devices, splits, what torch keeps to such groups, and what they lose.

That the results are right is tested with those of the other face, in ``test_collectives.py``.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import datetime
import gc
import os
import pathlib
import signal
import threading
from typing import Any

import pytest
import torch
import torch.distributed as dist
from support.torch_ranks import job, needs_backends
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from pccl.distributed import Group, Options, backend
from pccl.errors import InvalidArgument, InvalidUsage, PCCLError, RankConnectionLost
from pccl.types import LossRule

ALONE = Options(as_backend=True)
CPU, CUDA = torch.device("cpu"), torch.device("cuda")
MAPS = ["cpu:pccl,cuda:gloo", "cpu:gloo,cuda:pccl", "cuda:gloo,cpu:pccl"]
DETAIL = {"TORCH_DISTRIBUTED_DEBUG": "DETAIL"}
SECOND = datetime.timedelta(seconds=1)


def total(group: Any, rank: int) -> list[float]:
    t = torch.full((3,), rank + 1.0)
    dist.all_reduce(t, group=group)
    return t.tolist()


def ours(group: Any, device: torch.device) -> Any:
    """The back-end of a device, without torch's wrapper of the DETAIL mode."""
    found = dist.get_backend_impl(group, device)
    return getattr(found, "wrapped_pg", found)


def mapped(rank: int, size: int) -> None:
    """Each device has its own back-end, in the default group and in those that are made of it."""
    devices = dist.get_backend()
    mine, other = (CPU, CUDA) if "cpu:pccl" in devices else (CUDA, CPU)
    for group in (None, dist.new_group([0, 1, 2])):
        assert type(ours(group, mine)) is backend.Backend and type(ours(group, other)) is dist.ProcessGroupGloo
        assert total(group, rank) == [6.0] * 3, "the CPU's"
        t = torch.full((2,), rank + 1.0)
        ours(group, mine).allreduce([t]).wait()  # as torch does for a tensor of that device
        assert t.tolist() == [6.0] * 2
        assert (dist.get_rank(group), dist.get_world_size(group)) == (rank, size)
    pair = dist.new_group([1, 2])
    if rank:
        assert type(ours(pair, mine)) is backend.Backend and total(pair, rank) == [5.0] * 3
    alone = dist.new_group([0, 1, 2], backend="pccl")  # the usual face, out of that default group
    assert total(alone, rank) == [6.0] * 3 and isinstance(alone, Group)
    dist.barrier()


@needs_backends
@pytest.mark.parametrize("environment", [{}, DETAIL], ids=["", "detail"])
@pytest.mark.parametrize("devices", MAPS)
def test_maps_of_devices(devices: str, environment: dict[str, str]) -> None:
    job(3, mapped, backend=devices, environment=environment)


def ours_alone(rank: int, size: int) -> None:
    assert isinstance(dist.group.WORLD, Group) and total(None, rank) == [1.0] * 3


def test_a_map_that_is_not_known_for_one() -> None:
    job(1, ours_alone, backend="cuda:pccl,cpu:gloo")


def split(rank: int, size: int) -> None:
    parts = [[3, 0], [1, 2]]
    for _ in range(2):  # the second ones are not the first
        part = dist.split_group(split_ranks=parts)
        mine = parts[0] if rank in parts[0] else parts[1]
        assert dist.get_process_group_ranks(part) == mine and dist.get_rank(part) == mine.index(rank)
        assert total(part, rank) == [sum(mine) + 2.0] * 3
        t = torch.tensor([float(rank)])
        dist.broadcast(t, group_src=0, group=part)
        assert t.item() == mine[0]
    swapped = dist.split_group(part, [[1, 0]])
    t = torch.tensor([float(rank)])
    dist.broadcast(t, group_src=0, group=swapped)
    assert t.item() == mine[1]
    assert total(dist.new_group([0, 1, 2, 3]), rank) == [10.0] * 3


@needs_backends
@pytest.mark.parametrize("environment", [{}, DETAIL], ids=["", "detail"])
@pytest.mark.parametrize("devices, options", [("pccl", ALONE), (MAPS[0], None), (MAPS[1], None)])
def test_splits(devices: str, options: Any, environment: dict[str, str]) -> None:
    job(4, split, backend=devices, options=options, environment=environment)


def outside(rank: int, size: int) -> None:
    """A rank that is in no part: a group that refuses calls, or an error, where torch cannot bear it."""
    if rank == 1 and dist.get_backend() != "pccl":
        with pytest.raises(InvalidUsage, match="rank 1 is in no part of this split"):
            dist.split_group(split_ranks=[[2, 0]])
        dist.barrier()
        return
    part = dist.split_group(split_ranks=[[2, 0]])
    if rank == 1:
        with pytest.raises(ValueError, match="rank 1 is not part of group"):
            dist.all_reduce(torch.ones(1), group=part)
        with pytest.raises(InvalidUsage, match="rank 1 is in no part of this split"):
            part.allreduce([torch.ones(1)]).wait()
    else:
        assert total(part, rank) == [4.0] * 3
    dist.barrier()


@needs_backends
@pytest.mark.parametrize("devices, options", [("pccl", ALONE), (MAPS[0], None)])
def test_ranks_in_no_part(devices: str, options: Any) -> None:
    job(3, outside, backend=devices, options=options)


def bound(rank: int, size: int, store: str) -> None:
    """With a device of its own a group splits where `new_group` is called."""
    dist.destroy_process_group()
    dist.init_process_group("pccl", store=dist.FileStore(store, size), rank=rank, world_size=size, device_id=torch.device("cpu:0"))
    assert type(ours(None, CPU)) is backend.Backend
    assert dist.group.WORLD.bound_device_id == torch.device("cpu:0")
    pair = dist.new_group([0, 1])
    if rank < 2:
        assert total(pair, rank) == [3.0] * 3
    dist.barrier()


@needs_backends
def test_a_device_of_its_own(tmp_path: pathlib.Path) -> None:
    job(3, bound, str(tmp_path / "store"))


def monitored(rank: int, size: int) -> None:
    store = dist.distributed_c10d._get_default_store()
    dist.monitored_barrier(timeout=60 * SECOND)
    with pytest.raises(RuntimeError, match=f"Rank {rank} timed out in monitoredBarrier"):
        dist.group.WORLD.monitored_barrier(0 * SECOND)
    for everyone, late, text in ((True, {1, 2}, "Ranks 1, 2 failed to pass monitoredBarrier in 300 ms"), (False, {1}, "Rank 1 failed to pass")):
        if rank in late:
            store.wait([f"late/{everyone}"], 60 * SECOND)
        with pytest.raises(RuntimeError, match=f"rank {rank} is in monitoredBarrier, .* its error names who is missing: .*Timed out" if rank else text):
            dist.monitored_barrier(timeout=0.3 * SECOND, wait_all_ranks=everyone)
        if rank == 0:
            store.set(f"late/{everyone}", "")
    dist.monitored_barrier(timeout=60 * SECOND)  # what came late, and who got no answer, does not count in it
    assert total(None, rank) == [6.0] * 3


@needs_backends
def test_monitored_barriers() -> None:
    job(3, monitored, options=ALONE)


def monitored_loss(rank: int, size: int) -> None:
    """A rank that has died is not one that is late, nor is who waits with the others."""
    dist.barrier()
    if rank == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    with pytest.raises(RankConnectionLost if rank == 0 else RuntimeError, match="rank 1: .*connections closed"):
        dist.monitored_barrier(timeout=60 * SECOND, wait_all_ranks=True)


@needs_backends
def test_a_monitored_barrier_tells_a_loss_from_who_is_late() -> None:
    job(3, monitored_loss, options=ALONE, lost={1})


def saved(rank: int, size: int, folder: str) -> None:
    import torch.distributed.checkpoint as checkpoint

    checkpoint.async_save({"w": torch.full((2,), 3.0)}, checkpoint_id=folder).result()
    state = {"w": torch.zeros(2)}
    checkpoint.load(state, checkpoint_id=folder)
    assert state["w"].tolist() == [3.0, 3.0]


@needs_backends
def test_checkpoints_beside_the_program(tmp_path: pathlib.Path) -> None:
    job(2, saved, str(tmp_path), options=ALONE)


def kept_to_them(rank: int, size: int) -> None:
    """Hooks before each call, hooks of an abort, the error, the timeout."""
    group = dist.group.WORLD
    names: list[str] = []
    group.register_pre_hook(1, lambda about: names.append(about.name.name))
    assert total(None, rank) == [3.0] * 3
    assert names == ["ALLREDUCE"]
    dist.set_timeout(55 * SECOND)
    impl = dist.get_backend_impl()
    assert impl.group.timeout == 55 * SECOND and impl.options._timeout == 55 * SECOND
    errors = torch._C._distributed_c10d.ErrorType
    assert impl.get_error() == errors.SUCCESS
    called = threading.Event()
    group.register_abort_hook(1, called.set)
    waiting = group.recv([torch.empty(1)], 1 - rank, 3)
    dist.barrier()
    if rank == 0:
        group.abort()
        assert called.is_set()
    with pytest.raises(PCCLError):
        waiting.wait()
    t = torch.full((2,), 7.0)
    with pytest.raises(PCCLError):
        dist.all_reduce(t)
    assert t.tolist() == [7.0, 7.0]


@needs_backends
def test_what_torch_keeps_to_its_own_groups() -> None:
    job(2, kept_to_them, options=ALONE)


def lost(rank: int, size: int) -> None:
    """What the pages say that these groups lose, and that errors are not among it."""
    work = dist.all_reduce(torch.ones(1), async_op=True)
    assert work.wait() and not work.is_completed()
    if rank == 0:
        with pytest.raises(RuntimeError):
            dist.recv(torch.empty(1))
    else:
        dist.send(torch.ones(1), 0)
    with pytest.raises(InvalidArgument, match="peers disagree"):
        dist.all_reduce(torch.ones(2 + rank))
    with pytest.raises(RuntimeError, match="peers disagree"):
        dist.all_reduce(torch.ones(2 + rank), async_op=True).get_future().wait()
    assert not dist._supports_reconfigure() and not dist.group.WORLD.supports_abort_hooks


@needs_backends
def test_what_these_groups_lose() -> None:
    job(2, lost, options=ALONE)


def trained(rank: int, size: int) -> list[Any]:
    torch.manual_seed(5)
    ddp = DistributedDataParallel(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)), bucket_cap_mb=0.0001)
    optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
    for step in range(3):
        optimizer.zero_grad()
        ddp(torch.full((2, 4), 0.1 * (rank + step))).square().sum().backward()
        optimizer.step()
    return [parameter.tolist() for parameter in ddp.parameters()]


@needs_backends
def test_training_gives_the_same() -> None:
    expected = job(2, trained)
    # no DETAIL where Gloo is the group's default: there torch 2.15 ends by a fault of memory, with Gloo alone, too
    for devices, options, environment in (("pccl", ALONE, DETAIL), (MAPS[0], None, {})):
        assert job(2, trained, backend=devices, options=options, environment=environment) == expected


def begun_again(rank: int, size: int, store: str) -> None:
    """Nothing of a group is kept once it was destroyed, and one of the same name begins anew."""
    dist.new_group([0, 1])
    for begin in range(2):
        assert total(None, rank) == [3.0] * 3
        dist.destroy_process_group()
        gc.collect()
        assert not backend._kept
        dist.init_process_group(
            "pccl", store=dist.FileStore(f"{store}{begin}", size), rank=rank, world_size=size, pg_options=ALONE
        )


@needs_backends
def test_begun_again(tmp_path: pathlib.Path) -> None:
    job(2, begun_again, str(tmp_path / "store"), options=ALONE)


def mixed(rank: int, size: int) -> None:
    for ask in (dist._supports_reconfigure, dist._get_reconfigure_handle, lambda: dist._reconfigure(1, ["x"])):
        with pytest.raises(RuntimeError, match="do not support process groups with multiple backends"):
            ask()


@needs_backends
def test_maps_are_not_reconfigured() -> None:
    job(1, mixed, backend=MAPS[0])


def test_ranks_of_a_back_end_do_not_change() -> None:
    for wrong in ({"reconfigurable": True}, {"loss_rule": LossRule.SHRINK}):
        with pytest.raises(ValueError, match="ranks do not change"):
            Options(as_backend=True, **wrong)


@needs_backends
def test_a_map_does_not_shrink() -> None:
    with pytest.raises(AssertionError, match="use LossRule.END, or \"pccl\" alone"):
        job(1, mapped, backend=MAPS[0], options=Options(loss_rule=LossRule.SHRINK))


@pytest.mark.skipif(not needs_backends.args[0], reason="this torch lets back-ends be made in Python")
def test_a_torch_without_is_named() -> None:
    with pytest.raises(AssertionError, match="lets no back-end be made in Python, as 2.15 does"):
        job(1, trained, options=ALONE)
