"""Operands of one call that share memory: the right result, or an error on all ranks."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist

from pccl.comms import ReduceOp, new_comm
from support.ranks import run

COUNT = 70_000  # elements: more than one frame, so that messages that travel together would meet in the middle


def numbers(rank: int, count: int = COUNT) -> torch.Tensor:
    return torch.arange(count, dtype=torch.float64) % 7 + rank + 1


def with_comm(function: Any, size: int = 3) -> None:
    def rank() -> None:
        comm = new_comm("pccl", torch.device("cpu"), "overlaps", timeout=60)
        function(comm, comm.get_rank(), comm.get_size())
        comm.finalize()

    run(size, rank)


def test_the_last_of_the_outputs_that_share_memory_stays() -> None:
    def body(comm: Any, rank: int, size: int) -> None:
        for _ in range(3):
            one = torch.zeros(COUNT, dtype=torch.float64)
            comm.all_gather([one] * size, numbers(rank))
            assert torch.equal(one, numbers(size - 1))
            one[:] = numbers(rank)
            comm.all_gather([one] * size, one)  # the input, too
            assert torch.equal(one, numbers(size - 1))
            wide = torch.zeros(COUNT + size - 1, dtype=torch.float64)
            comm.all_gather([wide[of:COUNT + of] for of in range(size)], numbers(rank), True).wait()
            assert torch.equal(wide[size - 1:], numbers(size - 1)) and wide[:size - 1].tolist() == [float(of + 1) for of in range(size - 1)]
            comm.gather([one] * size if rank == 1 else [], numbers(rank + 5), 1)
            assert rank != 1 or torch.equal(one, numbers(size + 4))
            comm.all_to_all([one] * size, [numbers(rank + 10 * to) for to in range(size)])
            assert torch.equal(one, numbers(size - 1 + 10 * rank))
            comm.all_to_all([one] * size, [one] * size)
            assert torch.equal(one, numbers(size - 1 + 10 * (size - 1)))
            inputs = [numbers(rank)] * size
            comm.reduce_scatter(inputs[0], inputs, ReduceOp.SUM)
            assert torch.equal(inputs[0], sum(numbers(of) for of in range(size)))

    with_comm(body)


def test_a_batch_sends_what_was_there_before_it_and_keeps_the_last_message() -> None:
    def body(comm: Any, rank: int, size: int) -> None:
        behind, ahead = (rank - 1) % size, (rank + 1) % size
        for asynchronous in (False, True):
            ring, both, a, b = numbers(rank), torch.zeros(COUNT, dtype=torch.float64), torch.full((9,), rank + 1.0), torch.full((9,), -1.0)
            batch = comm.batch_op_create()
            batch.recv(ring, behind)  # over what is sent
            batch.send(ring, ahead)
            for peer in (behind, ahead):
                batch.send(numbers(rank + 20), peer)
            for peer in (behind, ahead):
                batch.recv(both, peer)
            for source, target in ((a, b), (b, a)):  # to itself: a swap
                batch.send(source, rank)
                batch.recv(target, rank)
            batch.issue(asynchronous).wait()
            assert torch.equal(ring, numbers(behind)) and torch.equal(both, numbers(ahead + 20))
            assert a.tolist() == [-1.0] * 9 and b.tolist() == [rank + 1.0] * 9

    with_comm(body)


def test_coalesced_calls_of_the_bridge() -> None:
    """As with Gloo: all inputs are read before any output is written, and rank 1 alone has them in one memory."""
    from pccl.comms.device_mesh import init_device_mesh

    def body(comm: Any, rank: int, size: int) -> None:
        init_device_mesh((comm,), ("world",))
        one = numbers(rank)
        tensors = [one, one] if rank == 1 else [one, numbers(rank)]
        dist.all_reduce_coalesced(tensors)
        assert all(torch.equal(tensor, sum(numbers(of) for of in range(size))) for tensor in tensors)
        group: Any = dist.distributed_c10d._get_default_group()
        whole = torch.zeros(size * COUNT, dtype=torch.float64)
        group.allgather_into_tensor_coalesced([whole, whole], [numbers(rank), numbers(rank + 10)]).wait()
        assert torch.equal(whole, torch.cat([numbers(of + 10) for of in range(size)]))
        crossed = [torch.cat([numbers(rank + to) for to in range(size)]), torch.cat([numbers(rank + 10 * to) for to in range(size)])]
        group.reduce_scatter_tensor_coalesced([crossed[1][:COUNT], crossed[0][:COUNT]], crossed).wait()
        sums = [sum(numbers(of + factor * rank) for of in range(size)) for factor in (1, 10)]
        assert torch.equal(crossed[0][:COUNT], sums[1]) and torch.equal(crossed[1][:COUNT], sums[0])

    with_comm(body)
