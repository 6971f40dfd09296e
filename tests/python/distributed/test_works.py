"""Works and futures: who waits, who is called, what a failure is, and what torch does with it."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import datetime
import os
import threading
import time
from typing import Any

import pytest
import torch
import torch._dynamo  # noqa: F401 - before the ranks are forked: each would import it anew
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from support.callbacks import waits_in_callbacks
from support.torch_ranks import faces, job
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from pccl.errors import InvalidArgument, InvalidUsage, OperationTimeout

SECOND = datetime.timedelta(seconds=1)


def futures(rank: int, size: int) -> None:
    t = torch.full((1000,), rank + 1.0)
    work = dist.all_reduce(t, async_op=True)
    future = work.get_future()
    assert work.get_future() is future
    thread: list[str] = []

    def called(done: Any) -> float:
        thread.append(threading.current_thread().name)
        return float(done.value()[0][0])

    then = future.then(called)
    assert then.wait() == size * (size + 1) / 2
    assert work.is_completed() and work.is_success() and work.exception() is None
    assert work.wait() and work.result()[0] is t
    late = work.get_future()
    assert late.done()
    again = dist.all_reduce(torch.ones(1), async_op=True)
    again.wait()
    assert again.get_future().wait()[0].tolist() == [float(size)]
    # a callback that issues the next one
    chained = dist.all_reduce(torch.ones(3), async_op=True).get_future().then(
        lambda done: dist.all_reduce(done.value()[0], async_op=True).get_future()
    )
    assert chained.wait().wait()[0].tolist() == [float(size * size)] * 3
    # one that raises harms nobody
    bad = dist.all_reduce(torch.ones(1), async_op=True).get_future().then(lambda _: 1 / 0)
    with pytest.raises(RuntimeError, match="division by zero"):
        bad.wait()
    t = torch.ones(1)
    dist.all_reduce(t)
    assert t.item() == size


def test_futures() -> None:
    job(2, futures)


@faces
def test_callbacks_that_wait(face: Any) -> None:
    assert job(2, waits_in_callbacks, options=face, timeout=20.0) == [(12.0, 6.0)] * 2


def copies_without_a_wait(rank: int, size: int) -> None:
    """Results for a tensor that is not contiguous arrive also when nobody waits."""
    view = torch.zeros(4, 2)[:, 0]
    view.fill_(1.0)
    dist.all_reduce(view, async_op=True)
    until = time.monotonic() + 30
    while view.tolist() != [float(size)] * 4:
        assert time.monotonic() < until


def test_copies_are_made_without_a_wait() -> None:
    job(2, copies_without_a_wait)


def waits(rank: int, size: int) -> None:
    t = torch.empty(1)
    if rank == 0:
        work = dist.irecv(t, 1)
        assert not work.is_completed()
        with pytest.raises(TimeoutError, match="timed out"):
            work.wait(datetime.timedelta(milliseconds=20))
        ticks: list[int] = []
        stop = threading.Event()

        def tick() -> None:
            while not stop.is_set():
                ticks.append(1)

        ticker = threading.Thread(target=tick)
        ticker.start()
        dist.send(torch.ones(1), 1)
        assert work.wait()
        stop.set()
        ticker.join()
        assert t.item() == 5.0 and ticks, "other threads run while one waits"
        results: list[bool] = []
        work = dist.irecv(t, 1)
        several = [threading.Thread(target=lambda: results.append(work.wait())) for _ in range(4)]
        for each in several:
            each.start()
        dist.send(torch.ones(1), 1)
        for each in several:
            each.join()
        assert results == [True] * 4
    else:
        for _ in range(2):
            dist.recv(t, 0)
            dist.send(torch.tensor([5.0]), 0)


def test_waits_by_several_threads_and_with_limits() -> None:
    job(2, waits)


def deadlines(rank: int, size: int) -> None:
    store = dist.distributed_c10d._get_default_store()
    dist.barrier()
    if rank == 0:
        with pytest.raises(OperationTimeout, match="barrier: Timed out .*: timed out after 1 s, waiting for rank 1:"):
            dist.barrier()
        with pytest.raises(OperationTimeout, match="Timed out"):
            dist.recv(torch.empty(1), 1)
        store.set("first", "")
        assert dist.group.WORLD.get_error() == torch._C._distributed_c10d.ErrorType.TIMEOUT
    else:
        store.wait(["first"], 60 * SECOND)
        with pytest.raises(OperationTimeout, match="Timed out"):
            dist.barrier()  # which the other has given up
    with pytest.raises(ValueError, match="timeout is -1 s"):
        dist.group.WORLD.set_timeout(-SECOND)
    assert dist.group.WORLD.timeout == SECOND
    dist.group.WORLD.set_timeout(60 * SECOND)
    t = torch.ones(1)
    dist.all_reduce(t)
    assert t.item() == size
    options = dist.BarrierOptions()
    options.timeout = SECOND / 4
    if rank == 0:
        with pytest.raises(OperationTimeout):
            dist.group.WORLD.barrier(opts=options).wait()
        store.set("second", "")
    else:
        store.wait(["second"], 60 * SECOND)
        with pytest.raises(OperationTimeout):
            dist.barrier()
    dist.barrier()


def test_timeouts_are_enforced() -> None:
    job(2, deadlines, timeout=1.0)


def forked(rank: int, size: int) -> None:
    """A child forked of a rank gets errors, and harms nothing."""
    if rank == 0:
        child = os.fork()
        if child == 0:
            try:
                with pytest.raises(InvalidUsage, match="forked"):
                    dist.all_reduce(torch.ones(1))
                dist.destroy_process_group()
                os._exit(17)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 17
    t = torch.ones(1)
    dist.all_reduce(t)
    assert t.item() == size
    loader = torch.utils.data.DataLoader(list(range(8)), batch_size=4, num_workers=2)
    assert [batch.tolist() for batch in loader] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    dist.all_reduce(t)
    assert t.item() == size * size


def test_forks() -> None:
    job(2, forked)


class Failing:
    """Has a group's method return works that have failed, from its call number `first` on, `count` times."""

    def __init__(self, method: str, first: int, count: int = 1) -> None:
        self.group, self.method, self.first, self.count, self.calls = dist.group.WORLD, method, first, count, 0

    def __enter__(self) -> "Failing":
        issue = getattr(self.group, self.method)

        def failing(*arguments: Any, **named: Any) -> Any:
            self.calls += 1
            if self.first <= self.calls < self.first + self.count:
                return self.group.send([torch.sparse_coo_tensor(size=(1,))], 0)  # refused here, before anybody is told of it
            return issue(*arguments, **named)

        setattr(self.group, self.method, failing)
        return self

    def __exit__(self, *_: object) -> None:
        delattr(self.group, self.method)


def failures(rank: int, size: int) -> None:
    refused = "can be all-reduced only"
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))
    ddp = DistributedDataParallel(net, bucket_cap_mb=0.00001, find_unused_parameters=True)
    for first in (1, 2):  # the first bucket, the second one
        with Failing("allreduce", first), pytest.raises(RuntimeError, match=refused):
            ddp(torch.ones(2, 4)).sum().backward()
        ddp._update_process_group(dist.group.WORLD)
        ddp.zero_grad()
        ddp(torch.full((2, 4), rank + 1.0)).sum().backward()
        assert net[0].weight.grad is not None
        grads = [torch.empty_like(net[1].bias.grad) for _ in range(size)]
        dist.all_gather(grads, net[1].bias.grad)
        assert torch.equal(grads[0], grads[1]) and grads[0].tolist() == [2.0, 2.0]
        ddp.zero_grad()
    with Failing("allgather", 1), pytest.raises(ValueError, match=refused):
        DistributedDataParallel(nn.Linear(2, 2))
    with Failing("broadcast", 1), pytest.raises(ValueError, match=refused):
        DistributedDataParallel(nn.Linear(2, 2))
    with Failing("allreduce", 1), pytest.raises(ValueError, match=refused):
        functional.wait_tensor(functional.all_reduce(torch.ones(1), "sum", dist.group.WORLD))
    DistributedDataParallel(nn.Linear(2, 2))(torch.ones(1, 2)).sum().backward()


def test_failures_come_through_torch() -> None:
    job(2, failures)


def wrong_order(rank: int, size: int) -> None:
    """Two ranks that call differently get errors, and no mixed data."""
    t = torch.full((4,), rank + 1.0)
    with pytest.raises(InvalidArgument):
        if rank == 0:
            dist.all_reduce(t)
        else:
            dist.broadcast(t, 0)
    assert t.tolist() == [rank + 1.0] * 4
    with pytest.raises(InvalidArgument):
        dist.all_reduce(t, dist.ReduceOp.SUM if rank else dist.ReduceOp.MAX)
    with pytest.raises(InvalidArgument):
        dist.all_reduce(t.double() if rank else t)
    assert t.tolist() == [rank + 1.0] * 4
    dist.all_reduce(t)
    assert t.tolist() == [3.0] * 4


def test_calls_that_differ() -> None:
    job(2, wrong_order)
