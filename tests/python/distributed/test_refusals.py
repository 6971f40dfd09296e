"""A collective that one rank cannot make keeps its place: the others get an error at once, and do not take that rank's next call for it."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any, Callable

import pytest
import torch
import torch.distributed as dist
from support.torch_ranks import faces, job

from pccl.engine import Operation, World
from pccl.errors import InvalidArgument


def _root(number: int) -> Any:
    options = dist.BroadcastOptions()
    options.rootRank = number
    return options


def list_too_short(wrong: bool) -> None:
    dist.all_gather([torch.zeros(2) for _ in range(2 if wrong else 3)], torch.ones(2))


def output_too_small(wrong: bool) -> None:
    dist.all_gather_into_tensor(torch.zeros(5 if wrong else 6), torch.ones(2))


def another_size(wrong: bool) -> None:
    dist.reduce_scatter(torch.zeros(2), [torch.ones(3 if wrong else 2) for _ in range(3)])


def splits(wrong: bool) -> None:
    dist.all_to_all_single(torch.zeros(3), torch.ones(3), [4, -1, 0] if wrong else [1, 1, 1], [1, 1, 1])


def root(wrong: bool) -> None:
    dist.group.WORLD.broadcast([torch.ones(2)], _root(-1 if wrong else 0)).wait()


def operator(wrong: bool) -> None:
    dist.all_reduce(torch.ones(2), dist.ReduceOp.BAND if wrong else dist.ReduceOp.SUM)


def sparse(wrong: bool) -> None:
    t = torch.sparse_coo_tensor([[0]], [1.0], (4,))
    dist.all_reduce(t, dist.ReduceOp.MAX if wrong else dist.ReduceOp.SUM)


def two_tensors(wrong: bool) -> None:
    dist.group.WORLD.allreduce([torch.ones(2)] * (2 if wrong else 1)).wait()


def one_of_several(wrong: bool) -> None:
    """The others' are right, and the values of none are asked for."""
    outputs = [torch.zeros(6), torch.zeros(5 if wrong else 6), torch.zeros(6)]
    dist.group.WORLD.all_gather_single_coalesced(outputs, [torch.ones(2)] * 3).wait()


def several(wrong: bool) -> None:
    tensors = [torch.ones(2, dtype=torch.float32 if wrong else torch.int32) for _ in range(5)]
    options = dist.AllreduceCoalescedOptions()
    options.reduceOp = dist.ReduceOp.BAND
    dist.group.WORLD.allreduce_coalesced(tensors, options).wait()


WAYS: list[Callable[[bool], None]] = [
    list_too_short, output_too_small, another_size, splits, root, operator, sparse, two_tensors, one_of_several, several,
]


def refused(rank: int, size: int) -> None:
    for number, way in enumerate(WAYS):
        wrong = rank == number % size
        with pytest.raises(ValueError, match=None if wrong else "a peer could not make this call as it was given") as caught:
            way(wrong)
        assert wrong or isinstance(caught.value, InvalidArgument)
        t = torch.full((2,), rank + 10.0 * number)
        dist.all_reduce(t)
        assert t.tolist() == [3 + 30.0 * number] * 2, f"out of step after {way.__name__}"


@faces
def test_a_call_that_one_rank_cannot_make_keeps_its_place(face: Any) -> None:
    job(3, refused, options=face)


def before_it_has_begun(rank: int, size: int) -> None:
    """A group that is made first by the rank that then calls what it cannot."""
    store = dist.distributed_c10d._get_default_store()
    if rank:
        store.wait(["called"])
    group = dist.new_group([0, 1], use_local_synchronization=True)
    t = torch.full((2,), rank + 1.0)
    works = [dist.all_reduce(torch.ones(2), dist.ReduceOp.SUM if rank else dist.ReduceOp.BAND, group=group, async_op=True)]
    works.append(dist.all_reduce(t, group=group, async_op=True))
    if rank == 0:
        store.set("called", "")
    with pytest.raises(ValueError, match="a peer could not make" if rank else "BAND is for integers"):
        works[0].wait()
    works[1].wait()
    assert t.tolist() == [3.0, 3.0]


def test_it_keeps_it_in_a_group_that_has_not_begun() -> None:
    job(2, before_it_has_begun)


def kept_places(rank: int, size: int) -> None:
    """Every rank makes the same mistake; a barrier keeps its place, as it is in flight until all ranks have come."""
    places: list[Operation] = []

    def refuse(world: World) -> Operation:
        places.append(world.barrier())
        return places[-1]

    World.refuse = refuse  # type: ignore[method-assign]
    group: Any = dist.distributed_c10d._get_default_group()
    tensors = [torch.ones(2, dtype=torch.float32) for _ in range(5)]
    options = dist.AllreduceCoalescedOptions()
    options.reduceOp = dist.ReduceOp.BAND
    works = [
        dist.all_reduce(torch.ones(2), dist.ReduceOp.BAND, async_op=True), group.allreduce_coalesced(tensors, options),
        dist.all_gather([], torch.ones(1), async_op=True),
    ]
    flying = group._backlogs["collectives"].flying()
    assert len(places) == 7 and all(place in flying or place.ended for place in places)
    for work in works:
        with pytest.raises(ValueError, match="BAND is for integers|has 0 tensors"):
            work.wait()
    assert all(place.ended for place in places)


def test_what_keeps_a_place_is_counted_and_waited_for() -> None:
    """Nobody saw to its end, so that it held one of the places of what may be in flight."""
    job(2, kept_places)
