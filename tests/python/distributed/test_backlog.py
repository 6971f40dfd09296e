"""More is called than the library takes at once: it waits its turn, and ends with the right values, or with the error of a loss."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import contextlib
import os
import signal
from typing import Any, Iterator

import pytest
import torch
import torch.distributed as dist

from pccl.engine import World
from pccl.engine.backlog import MOST
from pccl.errors import RankConnectionLost
from support.torch_ranks import LOST, job

MANY = 2000


def _store() -> Any:
    return dist.distributed_c10d._get_default_store()


def _far_ahead(rank: int, size: int) -> list[float]:
    tensors = [torch.full((3,), float(rank + number)) for number in range(MANY)]
    if rank == 1:
        _store().wait(["issued"])
    works = [dist.all_reduce(tensor, async_op=True) for tensor in tensors]
    futures = [work.get_future() for work in works[::100]]
    if rank == 0:
        _store().set("issued", "")
    assert works[-1].wait() and all(work.wait() for work in works)
    for number, future in enumerate(futures):
        assert future.wait()[0].tolist() == [200.0 * number + 1] * 3
    last = torch.ones(1)
    dist.all_reduce(last)  # waits in turn, too
    return [tensor[2].item() for tensor in tensors] + last.tolist()


def test_a_rank_is_thousands_of_collectives_ahead() -> None:
    expected = [2.0 * number + 1 for number in range(MANY)] + [2.0]
    assert job(2, _far_ahead) == [expected, expected]


def _receives_first(rank: int, size: int) -> list[float]:
    other = 1 - rank
    into = [torch.zeros(1) for _ in range(3 * MOST)]
    receives = [dist.irecv(tensor, other) for tensor in into]
    sends = [dist.isend(torch.tensor([1000.0 * rank + number]), other) for number in range(3 * MOST)]
    for work in [*sends, *receives]:
        assert work is not None and work.wait()
    return [tensor.item() for tensor in into]


def test_receives_that_are_called_first_leave_room_for_sends() -> None:
    first, second = job(2, _receives_first)
    assert first == [1000.0 + number for number in range(3 * MOST)]
    assert second == [float(number) for number in range(3 * MOST)]


def _killed(rank: int, size: int) -> int:
    if rank == 1:
        _store().wait(["issued"])
        os.kill(os.getpid(), signal.SIGKILL)
    works = [dist.all_reduce(torch.ones(2), async_op=True) for _ in range(MANY)]
    _store().set("issued", "")
    failed = 0
    for work in works:
        with pytest.raises(RuntimeError):
            work.wait()
        failed += 1
    return failed


def test_what_waits_for_its_turn_ends_with_a_death() -> None:
    assert job(2, _killed, lost=(1,)) == [MANY, LOST]


@contextlib.contextmanager
def _most_at_once(most: list[int]) -> Iterator[None]:
    """Notes how many operations are in flight at each launch of an all-reduce, and of what else a coalesced call is made."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("all_reduce", "all_gather", "reduce_scatter", "all_gather_v"):
            launch = getattr(World, name)

            def noting(world: World, *arguments: Any, launch: Any = launch, **named: Any) -> Any:
                most.append(len(world._flying))
                return launch(world, *arguments, **named)

            patch.setattr(World, name, noting)
        yield


def _coalesced(rank: int, size: int, name: str, waits: str) -> int:
    """One call of many tensors, and one more behind it."""
    group, most = dist.group.WORLD, []
    tensors = [torch.full((2,), float(rank + number)) for number in range(MANY)]
    sums = [2.0 * number + 1 for number in range(MANY)]
    if rank == 1:
        _store().wait(["issued"])
    with _most_at_once(most):
        if name == "allreduce_coalesced":
            work, results = group.allreduce_coalesced(tensors), [(tensor, [total] * 2) for tensor, total in zip(tensors, sums)]
        elif name == "all_gather_single_coalesced":
            outputs = [torch.zeros(4) for _ in tensors]
            work = group.all_gather_single_coalesced(outputs, tensors)
            results = [(output, [float(number)] * 2 + [number + 1.0] * 2) for number, output in enumerate(outputs)]
        elif name == "reduce_scatter_single_coalesced":
            outputs = [torch.zeros(1) for _ in tensors]
            work = group.reduce_scatter_single_coalesced(outputs, tensors)
            results = [(output, [total]) for output, total in zip(outputs, sums)]
        else:
            whole = [[torch.zeros(2) for _ in tensors] for _ in range(size)]
            work = group.allgather_coalesced(whole, tensors)
            results = [(output, [float(r + number)] * 2) for r in range(size) for number, output in enumerate(whole[r])]
        last = torch.ones(1)
        behind = dist.all_reduce(last, async_op=True)
        if rank == 0:
            _store().set("issued", "")
        if waits == "future":
            work.get_future().wait()
        assert work.wait() and behind.wait() and last.item() == size
    for tensor, expected in results:
        assert tensor.tolist() == expected
    return max(most)


@pytest.mark.parametrize("waits", ["wait", "future"])
@pytest.mark.parametrize(
    "name", ["allreduce_coalesced", "all_gather_single_coalesced", "reduce_scatter_single_coalesced", "allgather_coalesced"]
)
def test_a_coalesced_call_of_many_tensors_goes_piece_by_piece(name: str, waits: str) -> None:
    assert max(job(2, _coalesced, name, waits)) <= MOST + 2


def _coalesced_killed(rank: int, size: int) -> None:
    if rank == 1:
        _store().wait(["issued"])
        os.kill(os.getpid(), signal.SIGKILL)
    work = dist.group.WORLD.allreduce_coalesced([torch.ones(2) for _ in range(MANY)])
    future = work.get_future()
    _store().set("issued", "")
    with pytest.raises(RuntimeError):
        future.wait()
    with pytest.raises(RankConnectionLost):
        work.wait()


def test_a_coalesced_call_that_is_half_launched_ends_with_a_death() -> None:
    job(2, _coalesced_killed, lost=(1,))
