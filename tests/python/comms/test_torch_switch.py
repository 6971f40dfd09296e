"""torch's switch `use_torchcomms`: groups of torch.distributed that are communicators of the package under the name torchcomms."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import copy
import datetime
import os
import subprocess
import sys
import textwrap
from typing import Any, Iterator

import pytest
import torch
import torch.distributed as dist
from torch import nn

from pccl.comms import objcol
from pccl.comms.alias import install_as_torchcomms
from support.ranks import run
from support.training import three_steps


@pytest.fixture(params=("gloo", "mccl", "cpu:xccl"))
def backend(request: pytest.FixtureRequest) -> Iterator[str]:
    yield request.param


def test_groups_are_communicators(backend: str) -> None:
    def rank() -> None:
        torchcomms: Any = install_as_torchcomms()
        dist.config.use_torchcomms = True
        own = int(os.environ["RANK"])
        kept = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), 3, own == 0)
        for round_ in range(2):  # made and destroyed again and again
            place = dist.PrefixStore(str(round_), kept)
            dist.init_process_group(backend, timeout=datetime.timedelta(seconds=30), store=place, rank=own, world_size=3)
            own, size, world = dist.get_rank(), dist.get_world_size(), dist.group.WORLD
            assert type(world) is torchcomms._comms._BackendWrapper and dist.get_backend() == backend
            assert world.get_comm().get_backend() == backend.removeprefix("cpu:")
            assert world.options.backend == backend.removeprefix("cpu:") and world.options._timeout == datetime.timedelta(seconds=600)
            assert isinstance(world.options, torchcomms._comms._BackendWrapperOptions)
            tensor = torch.full((4,), own + 1.0)
            work = dist.all_reduce(tensor, async_op=True)
            assert work is not None
            with pytest.raises(RuntimeError, match="wait timeout not supported"):
                work.wait(datetime.timedelta(seconds=1))
            work.wait()
            assert tensor.tolist() == [6.0] * 4
            views = list(torch.zeros(size * 2).split(2))
            dist.all_gather(views, torch.full((2,), float(own)))
            assert [view[1].item() for view in views] == [0.0, 1.0, 2.0]
            gathered = [torch.zeros(1) for _ in range(size)] if own == 1 else None
            dist.gather(torch.tensor([float(own)]), gathered, 1)
            assert gathered is None or [one.item() for one in gathered] == [0.0, 1.0, 2.0]
            for members in ([0, 2], [1, 2], [0, 1, 2]):
                group = dist.new_group(members)
                if own not in members:
                    assert group is dist.GroupMember.NON_GROUP_MEMBER
                    continue
                part = torch.tensor([float(own)])
                dist.all_reduce(part, group=group)
                assert part.item() == sum(members) and dist.get_process_group_ranks(group) == members
                dist.destroy_process_group(group)
            halves = dist.split_group(split_ranks=[[2, 0]])
            if own == 1:
                assert halves is None or halves == dist.GroupMember.NON_GROUP_MEMBER
            else:
                part = torch.tensor([own + 1.0])
                dist.all_reduce(part, group=halves)
                assert part.item() == 4 and halves is not None and halves.size() == 2
            mesh = dist.device_mesh.init_device_mesh("cpu", (3,), mesh_dim_names=("data",))
            dist.all_reduce(tensor.fill_(1), group=mesh.get_group("data"))
            assert tensor[0].item() == 3
            got = torch.zeros(1)
            for one in dist.batch_isend_irecv([
                dist.P2POp(dist.isend, torch.tensor([own + 5.0]), (own + 1) % size), dist.P2POp(dist.irecv, got, (own - 1) % size),
            ]):
                one.wait()
            assert got.item() == (own - 1) % size + 5
            if backend == "gloo":
                dist.monitored_barrier(timeout=datetime.timedelta(seconds=20))
            objects: list[Any] = [None] * size
            dist.all_gather_object(objects, (own, "x"))
            assert objects == [(k, "x") for k in range(size)]
            objcol.all_gather_object(world.get_comm(), objects, own)
            assert objects == [0, 1, 2]
            dist.barrier()
            dist.destroy_process_group()
            assert world.get_comm()._finalized

    run(3, rank)


def test_a_name_that_torch_knows_of_us_works_without_the_switch_too() -> None:
    def rank() -> None:
        install_as_torchcomms()
        assert not dist.config.use_torchcomms
        dist.init_process_group("mccl")
        tensor = torch.ones(1)
        dist.all_reduce(tensor)
        assert tensor.item() == 2 and dist.group.WORLD.get_comm().get_backend() == "mccl"
        dist.destroy_process_group()

    run(2, rank)


def test_groups_whose_communicators_the_program_has_finalized_are_destroyed_in_order() -> None:
    """An error of the second finalize in the middle of torch's destroy, after which its groups can neither be destroyed nor made anew."""

    def rank() -> None:
        install_as_torchcomms()
        dist.config.use_torchcomms = True
        for which in ("world", "part", "destroyed", "none", "both"):
            dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=30))
            world, part = dist.group.WORLD, dist.new_group([0, 1])
            dist.all_reduce(torch.ones(1), group=part)
            if which != "none":
                for group in (part, world) if which == "both" else (world,) if which == "world" else (part,):
                    group.get_comm().finalize()
                    with pytest.raises(RuntimeError, match="already finalized"):
                        group.get_comm().finalize()
            if which == "destroyed":
                dist.destroy_process_group(part)
                tensor = torch.ones(1)
                dist.all_reduce(tensor)
                assert tensor.item() == 2
            dist.destroy_process_group()
            assert not dist.is_initialized() and world.get_comm()._finalized

    run(2, rank)


def test_torch_finds_the_package_by_itself() -> None:
    """The alias is there before torch is imported, and the variable turns the switch on."""
    program = """
    import pccl.comms, sys
    if WHEN == "found":
        del __import__("os").environ["TORCH_DISTRIBUTED_USE_TORCHCOMMS"]
    pccl.comms.install_as_torchcomms()
    assert ("torch" in sys.modules) is (WHEN == "asked")
    import torch.distributed as dist
    if WHEN == "found":
        dist.config.use_torchcomms = True
    assert dist.distributed_c10d._use_torchcomms_enabled()
    dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    print(type(dist.group.WORLD).__name__)
    dist.destroy_process_group()
    """
    environment = {**os.environ, "TORCH_DISTRIBUTED_USE_TORCHCOMMS": "1", "RANK": "0", "WORLD_SIZE": "1"}
    for when in ("found", "asked"):
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program).replace("WHEN", repr(when))], env=environment,
            capture_output=True, text=True, timeout=100,
        )
        assert done.returncode == 0 and done.stdout == "BackendWrapper\n", done.stderr


@pytest.mark.parametrize("how", ("ddp", "fsdp2"))
def test_training(how: str) -> None:
    """As on one process, with groups that the switch makes."""
    expected = three_steps(copy.copy, 0, 1)

    def rank() -> None:
        install_as_torchcomms()
        dist.config.use_torchcomms = True
        dist.init_process_group("gloo")

        def wrap(model: nn.Module) -> nn.Module:
            if how == "ddp":
                return nn.parallel.DistributedDataParallel(model)
            from torch.distributed.fsdp import fully_shard

            fully_shard(model, mesh=dist.device_mesh.init_device_mesh("cpu", (2,)))
            return model

        for mine, alone in zip(three_steps(wrap, dist.get_rank(), 2), expected):
            torch.testing.assert_close(mine, alone)
        dist.destroy_process_group()

    run(2, rank)
