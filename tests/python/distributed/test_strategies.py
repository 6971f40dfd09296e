"""Ways of training that PyTorch brings beside plain data parallelism: each as in one process, or as over Gloo."""
# SPDX-License-Identifier: MIT
import contextlib
import copy
import pathlib
from collections import OrderedDict
from typing import Any

import pytest
import torch
import torch._dynamo  # noqa: F401 - before the ranks are forked: each would import it anew
import torch.distributed as dist
import torch.distributed.checkpoint as checkpoints
import torch.distributed.nn.functional as differentiable
from support.torch_ranks import faces, job
from support.training import batch, net, trained
from torch import nn
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, post_localSGD_hook, powerSGD_hook
from torch.distributed.algorithms.model_averaging.hierarchical_model_averager import HierarchicalModelAverager
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, fully_shard
from torch.distributed.optim import PostLocalSGDOptimizer
from torch.distributed.pipelining import PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B
from torch.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel

import pccl.distributed

STEPS = 4


def whole(tensor: Any) -> torch.Tensor:
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def train(model: nn.Module, rank: int, optimizer: Any = None) -> list[list[float]]:
    """Steps on this rank's data; the parameters after them, whole."""
    optimizer = optimizer or torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(STEPS):
        x, y = batch(step, rank)
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
    return [whole(parameter).detach().reshape(-1).tolist() for parameter in model.parameters()]


def as_in_one_process(results: list[Any], ranks: int, rel: float = 1e-4) -> None:
    expected = trained(lambda step: range(ranks), STEPS)
    for result in results:
        for got, value in zip(result, expected, strict=True):
            assert got == pytest.approx(value, rel=rel, abs=1e-5)


# -- Data parallel: hooks whose callbacks wait, steps on one's own, compiled --


def compressed(rank: int, size: int) -> list[list[float]]:
    """PowerSGD of a rank at which nothing is lost, in one bucket; its callbacks call all-reduces and wait for them."""
    model = DistributedDataParallel(net())
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=10, start_powerSGD_iter=2, min_compression_rate=0.1)
    model.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    return train(model, rank)


@faces
def test_compressed_gradients(face: Any) -> None:
    as_in_one_process(job(2, compressed, options=face), 2)


def compressed_in_turn(rank: int, size: int) -> Any:
    """PowerSGD in several buckets, each of whose callbacks call all-reduces."""
    buckets = []

    def hook(state, bucket):  # type: ignore[no-untyped-def]  # torch looks at annotations
        buckets.append(bucket.index())
        return powerSGD_hook.powerSGD_hook(state, bucket)

    model = DistributedDataParallel(net(), bucket_cap_mb=0.0001)
    state = powerSGD_hook.PowerSGDState(None, matrix_approximation_rank=10, start_powerSGD_iter=2, min_compression_rate=0.1)
    model.register_comm_hook(state, pccl.distributed.in_turn(hook))
    for _ in range(5):  # orders that differ from rank to rank would meet in some of the steps
        trained_to = train(model, rank)
    assert max(buckets) >= 1
    return trained_to


@faces
def test_gradients_that_are_compressed_in_several_buckets(face: Any) -> None:
    """What callbacks of two buckets call is taken for each other's."""
    expected = trained(lambda step: range(3), STEPS, rounds=5)
    for result in job(3, compressed_in_turn, options=face):
        for got, value in zip(result, expected, strict=True):
            assert got == pytest.approx(value, rel=1e-4, abs=1e-5)


def failing_in_turn(rank: int, size: int) -> None:
    def fail(_: Any) -> Any:
        raise ValueError("planted")

    model = DistributedDataParallel(net())
    model.register_comm_hook(None, pccl.distributed.in_turn(lambda _, bucket: dist.all_reduce(bucket.buffer(), async_op=True).get_future().then(fail)))
    with pytest.raises(RuntimeError, match="planted"):
        model(batch(0, rank)[0]).sum().backward()


def test_a_hook_in_turn_that_fails_is_told_by_the_backward_pass() -> None:
    job(2, failing_in_turn)


def in_half(rank: int, size: int) -> list[list[float]]:
    model = DistributedDataParallel(net())
    model.register_comm_hook(None, default_hooks.fp16_compress_hook)
    return train(model, rank)


def test_gradients_in_half_precision() -> None:
    as_in_one_process(job(2, in_half), 2, rel=0.02)


def local(rank: int, size: int) -> list[list[float]]:
    model = DistributedDataParallel(net())
    pair, _ = dist.new_subgroups(2)
    state = post_localSGD_hook.PostLocalSGDState(process_group=None, subgroup=pair, start_localSGD_iter=1)
    model.register_comm_hook(state, post_localSGD_hook.post_localSGD_hook)
    averager = HierarchicalModelAverager(period_group_size_dict=OrderedDict([(2, 2), (3, 4)]), warmup_steps=1)
    return train(model, rank, PostLocalSGDOptimizer(torch.optim.SGD(model.parameters(), lr=0.1), averager))


def test_local_steps_in_two_levels() -> None:
    ours, theirs = (job(4, local, backend=backend) for backend in ("pccl", "gloo"))
    for own, other in zip(ours, theirs):
        for got, value in zip(own, other, strict=True):
            assert got == pytest.approx(value, rel=1e-4, abs=1e-6)


def compiled(rank: int, size: int, sharded: bool) -> list[list[float]]:
    model = net()
    model = fully_shard(model) if sharded else DistributedDataParallel(model)
    return train(torch.compile(model, backend="aot_eager"), rank)


@faces
@pytest.mark.parametrize("sharded", [False, True], ids=["data parallel", "sharded"])
def test_compiled(face: Any, sharded: bool) -> None:
    as_in_one_process(job(2, compiled, sharded, options=face), 2)


# -- Shards --


def grid(rank: int, size: int) -> list[list[float]]:
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "tensor"))
    model = parallelize_module(net(), mesh["tensor"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    fully_shard(model, mesh=mesh["data"])
    return train(model, rank // 2)


def test_shards_of_tensor_parallel() -> None:
    as_in_one_process(job(4, grid), 2)


def offloaded(rank: int, size: int) -> list[list[float]]:
    model = fully_shard(net(), offload_policy=CPUOffloadPolicy(pin_memory=False))
    return train(model, rank)


def test_shards_kept_in_host_memory() -> None:
    as_in_one_process(job(2, offloaded), 2)


def accumulated(rank: int, size: int, sharded: bool) -> list[list[float]]:
    """Gradients of all steps together, which ranks exchange at the last alone."""
    model = fully_shard(net()) if sharded else DistributedDataParallel(net())
    for step in range(STEPS):
        last = step == STEPS - 1
        if sharded:
            model.set_requires_gradient_sync(last)
        x, y = batch(step, rank)
        with contextlib.nullcontext() if sharded or last else model.no_sync():
            nn.functional.mse_loss(model(x), y).backward()
    return [whole(parameter.grad).reshape(-1).tolist() for parameter in model.parameters()]


@pytest.mark.parametrize("sharded", [False, True], ids=["data parallel", "sharded"])
def test_accumulated_gradients(sharded: bool) -> None:
    alone = net()
    for step in range(STEPS):
        for x, y in (batch(step, rank) for rank in range(2)):
            (nn.functional.mse_loss(alone(x), y) / 2).backward()
    for result in job(2, accumulated, sharded):
        for got, parameter in zip(result, alone.parameters(), strict=True):
            assert got == pytest.approx(parameter.grad.reshape(-1).tolist(), rel=1e-4, abs=1e-6)


def saved(rank: int, size: int, folder: str, load: bool) -> Any:
    model = fully_shard(net())
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    values = train(model, rank, optimizer)
    parameters, moments = get_state_dict(model, optimizer)
    if not load:
        checkpoints.save({"model": parameters, "optimizer": moments}, checkpoint_id=folder)
        return values
    checkpoints.load({"model": parameters, "optimizer": moments}, checkpoint_id=folder)
    set_state_dict(model, optimizer, model_state_dict=parameters, optim_state_dict=moments)
    return [whole(parameter).detach().reshape(-1).tolist() for parameter in model.parameters()]


def test_a_checkpoint_goes_on_with_more_ranks(tmp_path: pathlib.Path) -> None:
    before, *_ = job(2, saved, str(tmp_path), False)
    assert job(3, saved, str(tmp_path), True) == [before] * 3


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.norm, self.up, self.down, self.out = nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(16, 8), nn.Linear(8, 12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out(self.down(torch.relu(self.up(self.norm(x)))))


def sequence_parallel(rank: int, size: int) -> Any:
    alone, split = Block(), Block()
    parallelize_module(split, init_device_mesh("cpu", (size,)), {
        "": PrepareModuleInput(input_layouts=(Replicate(),), desired_input_layouts=(Shard(1),)),
        "norm": SequenceParallel(),
        "up": ColwiseParallel(input_layouts=Shard(1)),
        "down": RowwiseParallel(output_layouts=Shard(1)),
        "out": ColwiseParallel(input_layouts=Shard(1), output_layouts=Shard(-1), use_local_output=False),
    })
    numbers = torch.Generator().manual_seed(5)
    x, target = torch.randn(2, 6, 8, generator=numbers), torch.randint(0, 12, (12,), generator=numbers)
    expected = nn.functional.cross_entropy(alone(x).flatten(0, 1), target)
    expected.backward()
    with loss_parallel():
        loss = nn.functional.cross_entropy(split(x).flatten(0, 1), target)
        loss.backward()
    difference = max((one.grad - whole(other.grad)).abs().max().item() for one, other in zip(alone.parameters(), split.parameters()))
    return expected.item(), whole(loss).item(), difference


def test_sequences_and_losses_in_parts() -> None:
    for expected, loss, difference in job(2, sequence_parallel):
        assert loss == pytest.approx(expected, rel=1e-5)
        assert difference < 1e-5


def redistributed(rank: int, size: int) -> Any:
    mesh = init_device_mesh("cpu", (size,))
    rows = distribute_tensor(torch.arange(35.0).reshape(7, 5), mesh, [Shard(0)])
    columns = rows.redistribute(mesh, [Shard(1)])
    return columns.redistribute(mesh, [Replicate()]).to_local().tolist(), whole(rows.sum()).item(), whole(rows.mean(dim=0)).tolist()


def test_tensors_change_their_layout() -> None:
    full = torch.arange(35.0).reshape(7, 5)
    assert job(3, redistributed) == [(full.tolist(), full.sum().item(), full.mean(dim=0).tolist())] * 3


# -- Stages, and gradients through collectives --

SCHEDULES = {"GPipe": (ScheduleGPipe, 1), "1F1B": (Schedule1F1B, 1), "interleaved": (ScheduleInterleaved1F1B, 2)}


def stages_of(count: int) -> list[nn.Module]:
    torch.manual_seed(1)
    return [nn.Sequential(nn.Linear(6, 6), nn.Tanh()) for _ in range(count)]


def stage_batch() -> tuple[torch.Tensor, torch.Tensor]:
    numbers = torch.Generator().manual_seed(2)
    return torch.randn(8, 6, generator=numbers), torch.randn(8, 6, generator=numbers)


def pipeline(rank: int, size: int, name: str) -> dict[int, list[list[float]]]:
    """The gradients of this rank's stages, by their places."""
    schedule_type, each = SCHEDULES[name]
    layers = stages_of(size * each)
    places = [rank + size * i for i in range(each)]
    stages = [PipelineStage(layers[place], place, size * each, torch.device("cpu")) for place in places]
    schedule = schedule_type(stages if each > 1 else stages[0], 4, loss_fn=nn.functional.mse_loss)
    x, target = stage_batch()
    schedule.step(*([x] if rank == 0 else []), **({"target": target} if rank == size - 1 else {}))
    return {place: [parameter.grad.reshape(-1).tolist() for parameter in layers[place].parameters()] for place in places}


@faces
@pytest.mark.parametrize("name", SCHEDULES)
def test_pipelines(face: Any, name: str) -> None:
    size = 3
    layers = stages_of(size * SCHEDULES[name][1])
    x, target = stage_batch()
    nn.functional.mse_loss(nn.Sequential(*layers)(x), target).backward()
    for gradients in job(size, pipeline, name, options=face):
        for place, own in gradients.items():
            for got, parameter in zip(own, layers[place].parameters(), strict=True):
                assert got == pytest.approx(parameter.grad.reshape(-1).tolist(), rel=1e-4, abs=1e-6)


def experts(rank: int, size: int) -> Any:
    """Rows go to other ranks and come back scaled there; their gradients take the same way."""
    rows = (torch.arange(size * 2.0).reshape(size, 2) + 10 * rank).requires_grad_()
    there = differentiable.all_to_all_single(torch.empty(size, 2), rows)
    back = differentiable.all_to_all_single(torch.empty(size, 2), there * (rank + 1))
    back.sum().backward()
    total = differentiable.all_reduce(copy.deepcopy(rows.detach()))
    return back.tolist(), rows.grad.tolist(), total.tolist()


def test_gradients_through_collectives() -> None:
    size = 3
    inputs = [torch.arange(size * 2.0).reshape(size, 2) + 10 * rank for rank in range(size)]
    scale = torch.arange(1.0, size + 1).reshape(size, 1)
    for rank, (back, gradient, total) in enumerate(job(size, experts)):
        assert back == (inputs[rank] * scale).tolist()
        assert gradient == scale.expand(size, 2).tolist()
        assert total == sum(inputs).tolist()
