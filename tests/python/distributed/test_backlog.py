"""More is called than the library takes at once: it waits its turn, and ends with the right values, or with the error of a loss."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import os
import signal
from typing import Any

import pytest
import torch
import torch.distributed as dist

from pccl.distributed.group import MOST
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
