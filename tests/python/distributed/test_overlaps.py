"""Operands of one call that share memory: the same result as with Gloo, or an error on all ranks, and never different bits."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any

import torch
import torch._dynamo  # noqa: F401 - before the ranks are forked: each would import it anew
import torch.distributed as dist
from support.torch_ranks import faces, job

COUNT = 70_000  # elements: more than one frame, so that calls that run together would meet in the middle


Results = list[Any]


def told(*tensors: torch.Tensor) -> Results:
    """In a form that goes to another process by value."""
    return [tensor.numpy() for tensor in tensors]


def equal(result: Any, expected: torch.Tensor) -> bool:
    return torch.equal(torch.from_numpy(result).reshape(-1), expected)


def numbers(rank: int, count: int = COUNT) -> torch.Tensor:
    return torch.arange(count, dtype=torch.float64) % 7 + rank + 1


def reduced_together(rank: int, size: int) -> Results:
    """What Gloo does, too: all inputs are read before any output is written."""
    twice, parts = numbers(rank), numbers(rank)
    dist.all_reduce_coalesced([twice, twice])
    dist.all_reduce_coalesced([parts[:-5], parts[9:], parts[4:-4]])
    columns = numbers(rank).view(-1, 2)
    dist.all_reduce_coalesced([columns[:, 0], columns[:, 1], columns[:, 0]])
    return told(twice, parts, columns)


def summed(size: int, count: int = COUNT) -> torch.Tensor:
    return sum(numbers(rank, count) for rank in range(size))  # type: ignore[return-value]


@faces
def test_all_reduces_of_one_call_share_memory(face: Any) -> None:
    for results in job(3, reduced_together, options=face):
        for result in results:
            assert equal(result, summed(3))
    for results in job(3, reduced_together, backend="gloo"):
        assert equal(results[0], summed(3))


def gathered(rank: int, size: int) -> Results:
    group, found = dist.distributed_c10d._get_default_group(), []
    one, other = torch.zeros(size * COUNT, dtype=torch.float64), numbers(rank + 10)
    group.allgather_into_tensor_coalesced([one, one], [numbers(rank), other]).wait()
    found.append(one)
    whole = torch.zeros((size + 1) * COUNT, dtype=torch.float64)
    whole[COUNT * rank:COUNT * (rank + 1)] = numbers(rank)
    inputs = [whole[COUNT * rank:COUNT * (rank + 1)]] * 2
    group.allgather_into_tensor_coalesced([whole[:-COUNT], whole[COUNT:]], inputs).wait()  # the second writes over the input of both
    found.append(whole)
    same = torch.zeros(COUNT, dtype=torch.float64)
    dist.all_gather([same] * size, numbers(rank))
    found.append(same)
    rows = torch.zeros(2, COUNT, dtype=torch.float64)
    group.allgather_coalesced([[rows[0], rows[1], rows[0]] for _ in range(size)], [numbers(rank), other, numbers(rank + 20)]).wait()
    found.append(rows)
    return told(*found)


@faces
def test_gathers_of_one_call_share_memory(face: Any) -> None:
    """Later outputs are written over earlier ones, as the list has them."""
    size = 3
    for one, whole, same, rows in job(size, gathered, options=face):
        assert equal(one, torch.cat([numbers(rank + 10) for rank in range(size)]))
        assert equal(whole, torch.cat([numbers(0), *[numbers(rank) for rank in range(size)]]))
        assert equal(same, numbers(size - 1))
        assert equal(rows[0], numbers(size + 19)) and equal(rows[1], numbers(size + 9))


def scattered(rank: int, size: int) -> Results:
    group = dist.distributed_c10d._get_default_group()
    out = torch.zeros(COUNT, dtype=torch.float64)
    inputs = [torch.cat([numbers(rank + to) for to in range(size)]), torch.cat([numbers(rank + 10 * to) for to in range(size)])]
    group.reduce_scatter_tensor_coalesced([out, out], inputs).wait()
    crossed = [tensor.clone() for tensor in inputs]
    group.reduce_scatter_tensor_coalesced([crossed[1][:COUNT], crossed[0][:COUNT]], crossed).wait()  # each output is in the other's input
    listed = numbers(rank)
    dist.all_to_all([listed] * size, [numbers(rank + to) for to in range(size)])
    return told(out, *(tensor[:COUNT] for tensor in crossed), listed)


@faces
def test_scatters_of_one_call_share_memory(face: Any) -> None:
    size = 3
    for rank, (out, first, second, listed) in enumerate(job(size, scattered, options=face)):
        sums = [sum(numbers(of + factor * rank) for of in range(size)) for factor in (1, 10)]
        assert equal(out, sums[1])
        assert equal(first, sums[1]) and equal(second, sums[0])
        assert equal(listed, numbers(size - 1 + rank))


def expanded(rank: int, size: int) -> list[str]:
    said = []
    for shares in (rank == 1, rank == 0, False):
        whole = torch.ones(6)
        tensor = whole.as_strided((3, 2), (1, 1)) if shares and rank else whole[:1].expand(6) if shares else whole
        try:
            dist.all_reduce(tensor.view(3, 2) if tensor.dim() == 1 and not shares else tensor)
            said.append(str(whole.tolist()))
        except (RuntimeError, ValueError) as error:
            said.append("shared here" if "share memory" in str(error) else "refused" if "as it was given" in str(error) else str(error))
    return said


def test_results_for_elements_that_share_memory_are_refused() -> None:
    """On all ranks, also where one alone passes such a tensor; the next call is as ever."""
    assert job(2, expanded) == [["refused", "shared here", str([2.0] * 6)], ["shared here", "refused", str([2.0] * 6)]]
