"""Ranks that are killed or freeze, rank 0 too: errors of our type at all others, no hang, no crash, and who shrinks goes on rightly."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import os
import pathlib
import signal
import time
from typing import Any, Callable

import pytest
import torch
import torch._dynamo  # noqa: F401 - before the ranks are forked: each would import it anew
import torch.distributed as dist
from support.torch_ranks import LOST, job
from support.training import batch, net, trained
from support.worlds import master_loss_seconds
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, fully_shard
from torch.distributed.tensor import Shard, distribute_tensor
from torch.nn.parallel import DistributedDataParallel

import pccl.distributed
from pccl.distributed import Options
from pccl.errors import InvalidUsage, PCCLError, RankConnectionLost
from pccl.types import Cause, ErrorClass, LossRule

SIZE = 3
SHRINK = Options(loss_rule=LossRule.SHRINK)
SOON = 15.0  # seconds within which a loss has to be told of, on a busy machine


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def ids() -> list[int]:
    return [member.id for member in dist.group.WORLD.world.members()]


def killed_in_a_loop(rank: int, size: int, victim: int) -> tuple[Any, ...]:
    peers = ids()
    begin = time.monotonic()
    with pytest.raises(RankConnectionLost) as caught:
        for i in range(10_000):
            if i == 50 and rank == victim:
                die()
            dist.all_reduce(torch.ones(1000))
    error = caught.value
    assert error.peer == peers[victim] and error.cause is Cause.PEER_LOST and f": rank {victim}: " in str(error)
    assert "Connection closed by peer: " in str(error)  # clients look for these words
    for call in (dist.barrier, lambda: dist.all_reduce(torch.ones(1)), lambda: dist.send(torch.ones(1), (rank + 1) % size)):
        with pytest.raises(RankConnectionLost) as again:
            call()
        assert again.value.error_class is ErrorClass.REJOIN and f": rank {victim}: " in str(again.value)
    work = dist.all_reduce(torch.ones(1), async_op=True)
    with pytest.raises(RuntimeError, match="RANK_CONNECTION_LOST"):
        work.get_future().wait()
    assert not work.is_success() and isinstance(work.exception(), RankConnectionLost)
    assert dist.group.WORLD.get_error() == torch._C._distributed_c10d.ErrorType.COMM_ERROR
    assert time.monotonic() - begin < SOON
    return str(error)[:20], dist.get_world_size()


@pytest.mark.parametrize(("victim", "own_master"), [(0, False), (0, True), (1, False)])
def test_a_group_ends_with_its_first_loss(victim: int, own_master: bool) -> None:
    """A master that rank 0 has started outlives it."""
    results = job(SIZE, killed_in_a_loop, victim, lost={victim}, environment={"PCCL_MASTER": ""} if own_master else None)
    assert results.count(LOST) == 1
    assert [size for _, size in (result for result in results if result != LOST)] == [SIZE] * 2


def gone_with_its_master(rank: int, size: int) -> Any:
    begin = time.monotonic()
    dist.all_reduce(torch.ones(1))
    if rank == 0:
        for child in pathlib.Path("/proc/self/task").glob("*/children"):
            for pid in child.read_text().split():
                os.kill(int(pid), signal.SIGKILL)
        die()
    with pytest.raises(PCCLError, match="master was gone") as caught:
        while True:
            dist.all_reduce(torch.ones(1))
    assert caught.value.error_class is ErrorClass.REJOIN and caught.value.cause is Cause.MASTER_LOST
    assert dist.group.WORLD.get_error() == torch._C._distributed_c10d.ErrorType.COMM_ERROR
    return time.monotonic() - begin < 9.0  # of the 10 s that one waits for a master that may come back


def test_nobody_waits_for_a_master_that_has_gone_with_the_rank_that_started_it() -> None:
    """A host that dies with rank 0 and the master."""
    assert job(SIZE, gone_with_its_master, lost={0}, environment={"PCCL_MASTER": ""}) == [LOST, True, True]


def waited_for_a_master(rank: int, size: int, alone: bool) -> list[float]:
    """By each kind of world that a group may have."""
    if alone:
        assert isinstance(dist.group.WORLD, pccl.distributed.Group)
        pccl.distributed.reconfigure(1, [pccl.distributed.reconfigure_handle()]).wait()
        return [master_loss_seconds(dist.group.WORLD.world)]
    group = dist.new_group([0, 1])
    dist.barrier(group)
    return [master_loss_seconds(of.world) for of in (dist.group.WORLD, group)]


@pytest.mark.parametrize("alone", [False, True], ids=["met", "reconfigured"])
def test_a_master_that_was_given_may_come_back(alone: bool) -> None:
    options = Options(reconfigurable=alone)
    worlds = 1 if alone else 2
    assert job(2, waited_for_a_master, alone, options=options) == [[10.0] * worlds] * 2
    assert job(2, waited_for_a_master, alone, options=options, environment={"PCCL_MASTER": ""}) == [[1.0] * worlds] * 2


def frozen(rank: int, size: int) -> None:
    pids: list[Any] = [None] * size
    dist.all_gather_object(pids, os.getpid())
    if rank == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    with pytest.raises(RankConnectionLost) as caught:
        while True:
            dist.all_reduce(torch.ones(10))
    assert caught.value.cause in (Cause.PEER_SILENT, Cause.NO_PROGRESS, Cause.PEER_LOST), caught.value
    os.kill(pids[1], signal.SIGKILL)


def test_a_rank_that_freezes() -> None:
    job(SIZE, frozen, lost={1}, options=Options(stall=1.0))


def backward_with_a_kill(rank: int, size: int, victim: int, at: int, steps: int, again: bool, unused: bool = False) -> Any:
    model = DistributedDataParallel(net(), bucket_cap_mb=0.0001, find_unused_parameters=unused)  # several buckets
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    sizes = []
    step = 0
    if rank == victim:
        model.module[0].weight.register_hook(lambda _: die() if step == at else None)  # after the other layer's buckets have left
    while step < steps:
        x, y = batch(step, rank)
        optimizer.zero_grad()
        try:
            nn.functional.mse_loss(model(x), y).backward()
        except RuntimeError as error:
            assert "RANK_CONNECTION_LOST" in str(error), error
            if not again:
                with pytest.raises(RuntimeError, match="RANK_CONNECTION_LOST"):
                    pccl.distributed.recover(error, model)  # a group that is over cannot be
                return str(error)
            pccl.distributed.recover(error, model)
            continue
        optimizer.step()
        sizes.append(dist.get_world_size())
        step += 1
    return sizes, [parameter.detach().reshape(-1).tolist() for parameter in model.parameters()]


@pytest.mark.parametrize("victim", [0, 2])
def test_a_kill_inside_of_a_backward_pass(victim: int) -> None:
    results = job(SIZE, backward_with_a_kill, victim, 2, 5, False, lost={victim})
    assert results.count(LOST) == 1


@pytest.mark.parametrize(("victim", "unused"), [(0, False), (1, False), (2, True)])
def test_who_shrinks_repeats_the_step_and_divides_by_the_new_size(victim: int, unused: bool) -> None:
    results = job(SIZE, backward_with_a_kill, victim, 2, 5, True, unused, lost={victim}, options=SHRINK)
    left = [rank for rank in range(SIZE) if rank != victim]
    expected = trained(lambda step: range(SIZE) if step < 2 else left, 5)
    assert results[left[0]][1] == results[left[1]][1], "parameters differ between ranks"
    for rank in left:
        sizes, parameters = results[rank]
        assert sizes == [3, 3, 2, 2, 2]
        for got, value in zip(parameters, expected, strict=True):
            assert got == pytest.approx(value, rel=1e-4, abs=1e-6)


def recovers_once(rank: int, size: int) -> None:
    if rank == 0:
        die()
    with pytest.raises(RankConnectionLost) as lost:
        while True:
            dist.all_reduce(torch.ones(1))
    pccl.distributed.recover(lost.value)
    mistake = ValueError("of the program itself")
    with pytest.raises(ValueError) as raised:
        pccl.distributed.recover(mistake)
    assert raised.value is mistake


def test_a_later_error_of_the_program_is_not_taken_for_the_loss() -> None:
    """Otherwise the step would be repeated for ever."""
    job(SIZE, recovers_once, lost={0}, options=SHRINK)


def shrinks(rank: int, size: int) -> None:
    group = dist.group.WORLD
    if rank == 0:
        die()
    with pytest.raises(RankConnectionLost):
        while True:
            dist.all_reduce(torch.ones(1))
    t = torch.ones(2)
    dist.all_reduce(t)
    assert t.tolist() == [2.0, 2.0]
    assert (dist.get_rank(), dist.get_world_size(), group.rank(), group.size()) == (rank - 1, 2, rank - 1, 2)
    parts = [torch.empty(1) for _ in range(2)]
    dist.all_gather(parts, torch.tensor([float(rank)]))
    assert [part.item() for part in parts] == [1.0, 2.0]


def test_ranks_close_up() -> None:
    job(SIZE, shrinks, lost={0}, options=SHRINK)


def mesh(group: Any) -> Any:
    return init_device_mesh("cpu", (dist.get_world_size(),))


def mesh_of_a_group(group: Any) -> Any:
    return DeviceMesh.from_group(group, "cpu")


def fsdp1(group: Any) -> Any:
    return FullyShardedDataParallel(net(), process_group=group, device_id=torch.device("cpu"))


def fsdp2(group: Any) -> Any:
    return fully_shard(net())


def tensor_parallel(group: Any) -> Any:
    return distribute_tensor(torch.ones(4), init_device_mesh("cpu", (dist.get_world_size(),)), [Shard(0)])


def keeps_ranks(rank: int, size: int, make: Callable[[Any], Any], keeper: str) -> None:
    """Refused over the group that shrinks; nothing has happened to it, and over one that does not it is made."""
    group = dist.group.WORLD
    with pytest.raises(InvalidUsage, match=f"{keeper} keeps the ranks of its group"):
        make(group)
    t = torch.ones(2)
    DistributedDataParallel(net())(torch.ones(5, 6)).sum().backward()  # which asks every time
    dist.all_reduce(t)
    assert t.tolist() == [size, size]
    if make in (mesh_of_a_group, fsdp1):
        assert make(dist.new_group(list(range(size))))


@pytest.mark.parametrize(
    ("make", "keeper"),
    [(mesh, "a DeviceMesh"), (mesh_of_a_group, "a DeviceMesh"), (fsdp1, "FSDP"), (fsdp2, "a DeviceMesh"), (tensor_parallel, "a DeviceMesh")],
)
def test_what_keeps_ranks_is_refused_by_a_group_that_shrinks_when_it_is_made(make: Callable[[Any], Any], keeper: str) -> None:
    job(2, keeps_ranks, make, keeper, options=SHRINK)


def others_unharmed(rank: int, size: int) -> None:
    """A loss in the default group's process is one in each of its groups; others go on until they meet it."""
    pair = dist.new_group([1, 2])
    t = torch.ones(1)
    if rank:
        dist.all_reduce(t, group=pair)
    dist.barrier()
    if rank == 0:
        die()
    for _ in range(200):
        t = torch.ones(1)
        dist.all_reduce(t, group=pair)
        assert t.item() == 2.0
    with pytest.raises(RankConnectionLost):
        while True:
            dist.barrier()
    dist.all_reduce(t, group=pair)


def test_a_loss_is_not_noticed_in_groups_without_that_rank() -> None:
    job(SIZE, others_unharmed, lost={0})


def never_formed(rank: int, size: int) -> None:
    """A rank dies before it has come to a new group: the others' first operation fails at once, not by the timeout."""
    if rank == 2:
        die()
    begin = time.monotonic()
    group = dist.new_group([0, 1, 2])
    with pytest.raises(RankConnectionLost):
        dist.all_reduce(torch.ones(1), group=group)
    assert time.monotonic() - begin < SOON


def test_a_group_whose_rank_dies_before_it_has_come() -> None:
    job(SIZE, never_formed, lost={2})


def messages(rank: int, size: int) -> None:
    """What waits for a message of the lost rank, or sends to it."""
    t = torch.empty(1)
    if rank == 2:
        dist.recv(t, 0)
        die()
    if rank == 0:
        dist.send(torch.ones(1), 2)
        with pytest.raises(RankConnectionLost):
            while True:
                dist.send(torch.ones(100_000), 2)
    else:
        with pytest.raises(RankConnectionLost):
            dist.recv(t, 2)


def test_messages_with_a_rank_that_dies() -> None:
    job(SIZE, messages, lost={2})
