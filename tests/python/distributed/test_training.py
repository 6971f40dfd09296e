"""What trains over a process group: the same losses and parameters over "pccl" as over Gloo or in one process."""
# SPDX-License-Identifier: MIT
import copy
import tempfile
from typing import Any, Callable

import pytest
import torch
import torch._dynamo  # noqa: F401 - before the ranks are forked, as all below: each would import it anew
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.distributed.checkpoint as checkpoints
from support.torch_ranks import job
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FullyShardedDataParallel, MixedPrecisionPolicy, fully_shard
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.parallel import DistributedDataParallel

STEPS = 4


def model(width: int = 16) -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Linear(width, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Linear(width, 4))


def plain_model() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 12), nn.ReLU(), nn.Linear(12, 4))


def batch(step: int, rank: int) -> tuple[torch.Tensor, torch.Tensor]:
    numbers = torch.Generator().manual_seed(100 * step + rank)
    return torch.randn(6, 8, generator=numbers), torch.randn(6, 4, generator=numbers)


def train(net: nn.Module, parameters: Any, rank: int, steps: int = STEPS) -> list[float]:
    optimizer = torch.optim.SGD(parameters, lr=0.05)
    losses = []
    for step in range(steps):
        x, y = batch(step, rank)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def values(net: nn.Module) -> list[list[float]]:
    return [parameter.detach().reshape(-1).tolist() for parameter in net.parameters()]


def data_parallel(rank: int, size: int, arguments: dict[str, Any]) -> tuple[list[float], list[list[float]]]:
    net = DistributedDataParallel(model(), bucket_cap_mb=0.0005, **arguments)
    return train(net, net.parameters(), rank), values(net)


class Unused(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(2)
        self.used, self.other = nn.Linear(8, 4), nn.Linear(8, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.used(x) if dist.get_rank() else self.used(x) + self.other(x)


def unused_parameters(rank: int, size: int) -> tuple[list[float], list[list[float]]]:
    net = DistributedDataParallel(Unused(), find_unused_parameters=True)
    return train(net, net.parameters(), rank), values(net)


def hooked(rank: int, size: int) -> tuple[list[float], list[list[float]]]:
    def hook(_: Any, bucket: dist.GradBucket) -> torch.futures.Future[torch.Tensor]:
        tensor = bucket.buffer()
        return dist.all_reduce(tensor, async_op=True).get_future().then(lambda done: done.value()[0] / size)

    net = DistributedDataParallel(model())
    net.register_comm_hook(None, hook)
    return train(net, net.parameters(), rank), values(net)


def zero(rank: int, size: int) -> tuple[list[float], list[list[float]]]:
    net = DistributedDataParallel(model())
    optimizer = ZeroRedundancyOptimizer(net.parameters(), torch.optim.SGD, lr=0.05)
    losses = []
    for step in range(STEPS):
        x, y = batch(step, rank)
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, values(net)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (data_parallel, ({},)),
        (data_parallel, ({"static_graph": True},)),
        (data_parallel, ({"gradient_as_bucket_view": True, "broadcast_buffers": False},)),
        (unused_parameters, ()),
        (hooked, ()),
        (zero, ()),
    ],
    ids=["plain", "static graph", "views without buffers", "unused parameters", "hook", "zero redundancy"],
)
def test_data_parallel_as_over_gloo(function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    ours, theirs = (job(2, function, *arguments, backend=backend) for backend in ("pccl", "gloo"))
    assert ours[0][1] == ours[1][1], "parameters differ between ranks"
    for (losses, parameters), (other_losses, other_parameters) in zip(ours, theirs):
        assert losses == pytest.approx(other_losses, rel=1e-5)
        for own, other in zip(parameters, other_parameters):
            assert own == pytest.approx(other, rel=1e-4, abs=1e-6)


def alone(size: int) -> tuple[list[float], list[list[float]]]:
    """The same training in one process: the mean of the ranks' losses and gradients."""
    net = plain_model()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
    losses = []
    for step in range(STEPS):
        optimizer.zero_grad()
        parts = [nn.functional.mse_loss(net(x), y) for x, y in (batch(step, rank) for rank in range(size))]
        loss = sum(parts) / size
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, values(net)


def close(results: list[Any], size: int) -> None:
    losses, parameters = alone(size)
    mean = [sum(each) / len(results) for each in zip(*(own for own, _ in results))]
    assert mean == pytest.approx(losses, rel=1e-5)
    for _, own in results:
        for got, expected in zip(own, parameters, strict=True):
            assert got == pytest.approx(expected, rel=1e-4, abs=1e-6)


def sharded(rank: int, size: int, shape: tuple[int, ...], mixed: bool = False) -> Any:
    names = ("replicate", "shard")[-len(shape):]
    mesh = init_device_mesh("cpu", shape, mesh_dim_names=names)
    net = plain_model()
    arguments: dict[str, Any] = {"mesh": mesh}
    if mixed:
        arguments["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in net:
        if isinstance(layer, nn.Linear):
            fully_shard(layer, **arguments)
    fully_shard(net, **arguments)
    losses = train(net, net.parameters(), rank)
    return losses, [parameter.full_tensor().detach().reshape(-1).tolist() for parameter in net.parameters()]


def test_fully_shard() -> None:
    close(job(3, sharded, (3,)), 3)


def test_fully_shard_in_bfloat16() -> None:
    for losses, _ in job(2, sharded, (2,), True):
        assert len(losses) == STEPS and all(loss == loss for loss in losses)


def test_shards_and_replicas() -> None:
    close(job(4, sharded, (2, 2)), 4)


def premultiplied(rank: int, size: int) -> Any:
    net = fully_shard(plain_model())
    net.set_gradient_divide_factor(2.0 * size)
    x, y = batch(0, rank)
    nn.functional.mse_loss(net(x), y).backward()
    return [parameter.grad.full_tensor().reshape(-1).tolist() for parameter in net.parameters()]


def test_gradients_divided_by_a_factor() -> None:
    net = plain_model()
    sum(nn.functional.mse_loss(net(x), y) for x, y in (batch(0, rank) for rank in range(2))).backward()
    expected = [(parameter.grad / 4).reshape(-1).tolist() for parameter in net.parameters()]
    for gradients in job(2, premultiplied):
        for got, value in zip(gradients, expected, strict=True):
            assert got == pytest.approx(value, rel=1e-5, abs=1e-7)


def sharded_before(rank: int, size: int) -> Any:
    net = FullyShardedDataParallel(plain_model(), device_id=torch.device("cpu"))
    losses = train(net, net.parameters(), rank)
    norm = net.clip_grad_norm_(1e9)
    with FullyShardedDataParallel.summon_full_params(net):
        return (losses, values(net)), norm.item()


def test_fully_sharded_data_parallel() -> None:
    results = job(2, sharded_before)
    close([result for result, _ in results], 2)
    assert results[0][1] == results[1][1] > 0


def tensor_parallel(rank: int, size: int) -> Any:
    mesh = init_device_mesh("cpu", (size,))
    net = plain_model()
    split = parallelize_module(copy.deepcopy(net), mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    x, y = batch(0, 0)
    losses = []
    for each in (net, split):
        loss = nn.functional.mse_loss(each(x), y)
        loss.backward()
        losses.append(loss.item())
    gradients = [p.grad.full_tensor() for p in split.parameters() if hasattr(p.grad, "full_tensor")]
    expected = [p.grad for p, q in zip(net.parameters(), split.parameters()) if hasattr(q.grad, "full_tensor")]
    return losses, max((got - value).abs().max().item() for got, value in zip(gradients, expected, strict=True))


def test_tensor_parallel() -> None:
    for losses, difference in job(2, tensor_parallel):
        assert losses[0] == pytest.approx(losses[1], rel=1e-5)
        assert difference < 1e-6


def checkpoint(rank: int, size: int, folder: str) -> Any:
    net = fully_shard(plain_model())
    train(net, net.parameters(), rank)
    checkpoints.save({"model": net.state_dict()}, checkpoint_id=folder)
    other = fully_shard(plain_model())
    state = {"model": other.state_dict()}
    checkpoints.load(state, checkpoint_id=folder)
    other.load_state_dict(state["model"])
    pairs = zip(net.parameters(), other.parameters())
    return all(torch.equal(a.full_tensor(), b.full_tensor()) for a, b in pairs)


def test_checkpoint_is_saved_and_loaded() -> None:
    with tempfile.TemporaryDirectory() as folder:
        assert job(2, checkpoint, folder) == [True, True]


def joined(rank: int, size: int) -> list[float]:
    net = DistributedDataParallel(plain_model())
    with Join([net]):
        return train(net, net.parameters(), rank, steps=2 + rank)


def test_ranks_with_different_numbers_of_steps() -> None:
    assert [len(losses) for losses in job(2, joined)] == [2, 3]


def compiled(rank: int, size: int) -> list[float]:
    def summed(x: torch.Tensor) -> torch.Tensor:
        return functional.all_reduce(x * 2, "sum", dist.group.WORLD) + 1

    return torch.compile(summed, backend="aot_eager", fullgraph=True)(torch.full((3,), rank + 1.0)).tolist()


def test_compiled_functional_collective() -> None:
    assert job(2, compiled) == [[7.0] * 3] * 2
