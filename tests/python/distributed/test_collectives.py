"""Every collective, type and operator of torch.distributed: bit for bit what Gloo gives where it has them, and by formula where it has not."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import random
from typing import Any

import pytest
import torch
import torch._dynamo  # noqa: F401 - before the ranks are forked: each would import it anew
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
from support.torch_ranks import faces, job

from pccl.distributed import Group

NUMBERS = [torch.float32, torch.float64, torch.float16, torch.int8, torch.uint8, torch.int32, torch.int64]
BITS = [torch.int8, torch.uint8, torch.int32, torch.int64, torch.bool]
OPS = dist.ReduceOp
Case = tuple[str, Any]


def tensor(rank: int, dtype: torch.dtype, shape: tuple[int, ...]) -> torch.Tensor:
    """Small whole numbers, whose sums and products are exact, whatever the order."""
    numbers = torch.Generator().manual_seed(17 * rank + sum(shape))
    return torch.randint(0, 2 if dtype is torch.bool else 4, shape, generator=numbers).to(dtype)


def shapes(size: int) -> list[tuple[int, ...]]:
    return [(), (0,), (1,), (7,), (1023,), (5, 3)] if size < 5 else [(0,), (1023,)]


def everything(rank: int, size: int) -> list[Case]:
    """What both backends can do."""
    found: list[Case] = []

    def note(name: str, *results: torch.Tensor) -> None:
        found.append((name, [result.tolist() for result in results]))

    for dtype in [*NUMBERS, torch.bool]:
        for shape in shapes(size):
            for op in (OPS.SUM, OPS.PRODUCT, OPS.MIN, OPS.MAX):
                t = tensor(rank, dtype, shape)
                dist.all_reduce(t, op)
                note(f"all_reduce {op} {dtype} {shape}", t)
            t = tensor(rank, dtype, shape)
            dist.reduce(t, size - 1)
            if rank == size - 1:
                note(f"reduce {dtype} {shape}", t)
            t = tensor(rank, dtype, shape)
            dist.broadcast(t, size - 1)
            note(f"broadcast {dtype} {shape}", t)
            t = tensor(rank, dtype, shape)
            outputs = [torch.empty_like(t) for _ in range(size)]
            dist.all_gather(outputs, t)
            note(f"all_gather {dtype} {shape}", *outputs)
            outputs = [torch.empty_like(t) for _ in range(size)]
            dist.gather(t, outputs if rank == 0 else None, 0)
            if rank == 0:
                note(f"gather {dtype} {shape}", *outputs)
            inputs = [tensor(rank + to, dtype, shape) for to in range(size)] if rank == 1 else None
            dist.scatter(t, inputs, 1)
            note(f"scatter {dtype} {shape}", t)
    for dtype in BITS:
        for op in (OPS.BAND, OPS.BOR, OPS.BXOR):
            t = tensor(rank, dtype, (9,))
            dist.all_reduce(t, op)
            note(f"all_reduce {op} {dtype}", t)
    t = torch.complex(tensor(rank, torch.float32, (5,)), tensor(rank + 1, torch.float32, (5,)))
    dist.all_reduce(t)
    note("all_reduce complex", torch.view_as_real(t))
    outputs = [torch.empty_like(t) for _ in range(size)]
    dist.all_gather(outputs, t)
    note("all_gather complex", *[torch.view_as_real(output) for output in outputs])
    flat = torch.empty(3 * size)
    dist.all_gather_into_tensor(flat, tensor(rank, torch.float32, (3,)))
    note("all_gather_into_tensor", flat)
    flat[3 * rank:3 * rank + 3] = rank
    dist.all_gather_into_tensor(flat, flat[3 * rank:3 * rank + 3])
    note("all_gather_into_tensor in place", flat)
    out = torch.empty(2)
    dist.reduce_scatter_tensor(out, tensor(rank, torch.float32, (2 * size,)))
    note("reduce_scatter_tensor", out)
    out = torch.empty(2 * size, 2)
    dist.all_to_all_single(out, tensor(rank, torch.float32, (2 * size, 2)))
    note("all_to_all_single", out)
    send = [(rank + to) % 3 for to in range(size)]
    rows = torch.arange(sum(send) * 2.0).view(-1, 2) + 100 * rank
    out = torch.empty(sum((rank + of) % 3 for of in range(size)), 2)
    dist.all_to_all_single(out, rows, [(rank + of) % 3 for of in range(size)], send)
    note("all_to_all_single uneven", out)
    ts = [tensor(rank, torch.float32, (n,)) for n in (4, 1, 9)]
    dist.all_reduce_coalesced(ts)
    note("all_reduce_coalesced", *ts)
    objects: list[Any] = [None] * size
    dist.all_gather_object(objects, {"rank": rank, "text": "x" * rank})
    found.append(("all_gather_object", objects))
    objects = [None] * size
    dist.gather_object(("of", rank), objects if rank == 0 else None, 0)
    found.append(("gather_object", objects))
    objects = ["a", {1: 2}] if rank == 1 else [None, None]
    dist.broadcast_object_list(objects, 1)
    found.append(("broadcast_object_list", objects))
    one: list[Any] = [None]
    dist.scatter_object_list(one, [f"for {to}" for to in range(size)] if rank == 0 else None, 0)
    found.append(("scatter_object_list", one))
    dist.barrier()
    note("functional all_reduce", functional.all_reduce(tensor(rank, torch.float32, (5,)), "sum", dist.group.WORLD).clone())
    note("functional all_gather", functional.all_gather_tensor(tensor(rank, torch.float32, (5,)), 0, dist.group.WORLD).clone())
    note(
        "functional reduce_scatter",
        functional.reduce_scatter_tensor(tensor(rank, torch.float32, (2 * size,)), "sum", 0, dist.group.WORLD).clone(),
    )
    note("functional broadcast", functional.broadcast(tensor(rank, torch.float32, (5,)), 0, dist.group.WORLD).clone())
    note("functional all_to_all", functional.all_to_all_single(torch.arange(float(size)) + rank, None, None, dist.group.WORLD).clone())
    return found


@faces
@pytest.mark.parametrize("size", [2, 3, 5])
def test_as_gloo(size: int, face: Any) -> None:
    ours, theirs = (job(size, everything, backend=backend, options=options) for backend, options in (("pccl", face), ("gloo", None)))
    for rank in range(size):
        for (name, got), (_, expected) in zip(ours[rank], theirs[rank], strict=True):
            assert got == expected, f"rank {rank}: {name}"


def test_alone_as_gloo() -> None:
    ours, theirs = (job(1, alone, backend=backend)[0] for backend in ("pccl", "gloo"))
    assert ours == theirs


def alone(rank: int, size: int) -> list[Any]:
    t = torch.arange(3.0)
    dist.all_reduce(t)
    outputs = [torch.empty(3)]
    dist.all_gather(outputs, t)
    objects: list[Any] = [None]
    dist.all_gather_object(objects, "x")
    dist.barrier()
    return [t.tolist(), outputs[0].tolist(), objects]


def beyond(rank: int, size: int) -> None:
    """What Gloo lacks."""
    total = sum(range(1, size + 1))
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        t = torch.full((65,), rank + 1.0, dtype=dtype)
        dist.all_reduce(t, OPS.AVG)
        assert torch.equal(t, torch.full((65,), total / size, dtype=dtype)), dtype
        t = torch.full((65,), rank + 1.0, dtype=dtype)
        dist.all_reduce(t, dist._make_nccl_premul_sum(0.5))
        assert torch.equal(t, torch.full((65,), total / 2, dtype=dtype)), dtype
    t = torch.full((3,), -(rank + 1) * 2 - 1)
    dist.all_reduce(t, OPS.AVG)
    assert t.tolist() == [-((2 * total + size) // size)] * 3, "truncates towards zero"
    for dtype in (torch.uint16, torch.uint32, torch.uint64, torch.int16):
        t = torch.full((9,), rank + 1, dtype=torch.int64).to(dtype)
        dist.all_reduce(t)
        assert t.to(torch.int64).tolist() == [total] * 9, dtype
    for dtype in (torch.float8_e4m3fn, torch.float8_e5m2fnuz, torch.complex128):
        outputs = [torch.empty(4, dtype=dtype) for _ in range(size)]
        dist.all_gather(outputs, torch.full((4,), rank + 1.0).to(dtype))
        assert [output.to(torch.complex128).tolist() for output in outputs] == [[of + 1.0] * 4 for of in range(size)], dtype
    inputs = [torch.full((to + 1,), rank + 10.0 * to) for to in range(size)]
    out = torch.empty(rank + 1)
    dist.reduce_scatter(out, inputs)
    assert out.tolist() == [10.0 * rank * size + total - size] * (rank + 1)
    flags = [torch.tensor([rank == 0, True]) for _ in range(size)]
    seen = torch.empty(2, dtype=torch.bool)
    dist.reduce_scatter(seen, flags, OPS.BXOR)
    assert seen.tolist() == [True, size % 2 == 1]
    inputs = [torch.full((rank + to,), 100.0 * rank + to) for to in range(size)]
    outputs = [torch.empty(rank + of) for of in range(size)]
    dist.all_to_all(outputs, inputs)
    assert [output.tolist() for output in outputs] == [[100.0 * of + rank] * (rank + of) for of in range(size)]
    outputs = [torch.empty(of + 1) for of in range(size)]
    dist.all_gather(outputs, torch.full((rank + 1,), float(rank)))
    assert [output.tolist() for output in outputs] == [[float(of)] * (of + 1) for of in range(size)]
    stacked = torch.empty(size, 3)
    dist.all_gather_into_tensor(stacked, torch.full((3,), float(rank)))
    assert stacked.tolist() == [[float(of)] * 3 for of in range(size)]
    whole = torch.empty(6)
    views = [whole[2:3], whole[0:1], whole[4:5], whole[3:4]][:size]
    dist.all_gather(views, torch.tensor([rank + 1.0]))
    assert [view.item() for view in views] == [of + 1.0 for of in range(size)]
    with dist._coalescing_manager(async_ops=True) as manager:
        first, second = torch.full((3,), float(rank)), torch.full((2, 2), 1.0)
        dist.all_reduce(first)
        dist.all_reduce(second)
    manager.wait()
    assert first.tolist() == [float(total - size)] * 3 and second.tolist() == [[float(size)] * 2] * 2
    parts = [torch.empty(2) for _ in range(2)]
    wholes = [torch.full((2 * size,), rank + 1.0 + i) for i in range(2)]
    with dist._coalescing_manager():
        for part, each in zip(parts, wholes):
            dist.reduce_scatter_tensor(part, each)
    assert [part.tolist() for part in parts] == [[float(total)] * 2, [float(total + size)] * 2]


@faces
@pytest.mark.parametrize("size", [2, 4])
def test_what_gloo_lacks(size: int, face: Any) -> None:
    job(size, beyond, options=face)


def strided(rank: int, size: int) -> None:
    """Tensors that are not contiguous: only their own elements change."""
    for asynchronous in (False, True):
        whole = torch.zeros(4, 6)
        view = whole[1:3, 1:5].t()
        view.copy_(torch.full((4, 2), rank + 1.0))
        work = dist.all_reduce(view, async_op=asynchronous)
        if asynchronous:
            work.wait()
        total = size * (size + 1) / 2
        assert view.tolist() == [[total] * 2] * 4
        assert whole.sum().item() == 8 * total
    outputs = [torch.zeros(3, 4).t() for _ in range(size)]
    dist.all_gather(outputs, torch.full((4, 3), float(rank)))
    assert [output.tolist() for output in outputs] == [[[float(of)] * 3] * 4 for of in range(size)]
    flat = torch.zeros(size, 2)[:, ::2]
    dist.all_gather_into_tensor(flat, torch.tensor([[rank + 1.0]]))
    assert flat.reshape(-1).tolist() == [of + 1.0 for of in range(size)]
    t = torch.zeros(4)[::2]
    if rank == 0:
        dist.send(torch.tensor([1.0, 2.0, 3.0])[::2], 1)
    elif rank == 1:
        dist.recv(t, 0)
        assert t.tolist() == [1.0, 3.0]
    if isinstance(dist.group.WORLD, Group):  # torch's own hand a back-end a copy, and forget what comes into it
        negated = torch.tensor([1 + 2j, 3j]).conj().imag
        assert negated.is_neg()
        dist.all_reduce(negated)
        assert negated.tolist() == [-2.0 * size, -3.0 * size]
    overlapping = torch.arange(2.0 * size)
    dist.reduce_scatter_tensor(overlapping[2 * rank:2 * rank + 2], overlapping)
    assert overlapping[2 * rank:2 * rank + 2].tolist() == [2.0 * rank * size, (2.0 * rank + 1) * size]
    row = torch.arange(2.0 * size) + 10 * rank
    other = (rank + 1) % size
    dist.all_gather_into_tensor(row, row[2 * other:2 * other + 2])  # not its own part
    assert row.tolist() == [number for of in range(size) for number in (2.0 * ((of + 1) % size) + 10 * of, 2.0 * ((of + 1) % size) + 1 + 10 * of)]
    swapped = torch.arange(float(size)) + 10 * rank
    dist.all_to_all_single(swapped, swapped)
    assert swapped.tolist() == [10.0 * of + rank for of in range(size)]
    parts = list(torch.arange(2.0 * size).chunk(size)) if rank == 0 else None
    into = parts[1] if parts else torch.empty(2)
    dist.scatter(into, parts, 0)
    assert into.tolist() == [2.0 * rank, 2.0 * rank + 1]
    leaf = torch.nn.Parameter(torch.full((3,), 1.0))
    dist.all_reduce(leaf)
    assert leaf.tolist() == [float(size)] * 3


@faces
def test_tensors_that_lie_otherwise(face: Any) -> None:
    job(2, strided, options=face)


def sparse(rank: int, size: int, asynchronous: bool) -> None:
    indices = torch.tensor([[0, rank + 1, rank + 1], [0, 0, 1]])
    t = torch.sparse_coo_tensor(indices, torch.arange(6.0).view(3, 2), (size + 1, 2, 2))
    expected = sum(
        torch.sparse_coo_tensor(torch.tensor([[0, of + 1, of + 1], [0, 0, 1]]), torch.arange(6.0).view(3, 2), (size + 1, 2, 2)).to_dense()
        for of in range(size)
    )
    work = dist.all_reduce(t, async_op=asynchronous)
    if asynchronous:
        work.wait()
    assert torch.equal(t.to_dense(), expected)
    with pytest.raises(ValueError, match="summed up only"):
        dist.all_reduce(t, OPS.MAX)
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.EmbeddingBag(10, 3, mode="sum", sparse=True))
    net(torch.tensor([[rank, 5]])).sum().backward()
    assert net.module.weight.grad.to_dense().sum(1).nonzero().view(-1).tolist() == sorted({*range(size), 5})


@faces
@pytest.mark.parametrize("asynchronous", [False, True])
def test_sparse_tensors(asynchronous: bool, face: Any) -> None:
    job(3, sparse, asynchronous, options=face)


def messages(rank: int, size: int) -> None:
    right, left = (rank + 1) % size, (rank - 1) % size
    # rings, whole batches, both directions at once, large ones
    for count in (1, 100_000):
        got = torch.empty(count)
        works = dist.batch_isend_irecv(
            [dist.P2POp(dist.isend, torch.full((count,), float(rank)), right), dist.P2POp(dist.irecv, got, left)]
        )
        for work in works:
            work.wait()
        assert got[0].item() == got[-1].item() == left
    # tags may be received in any order
    if rank == 0:
        works = [dist.isend(torch.tensor([float(tag)]), 1, tag=tag) for tag in (3, 1, 2)]
        for work in works:
            work.wait()
    elif rank == 1:
        for tag in (1, 2, 3):
            t = torch.empty(1)
            assert dist.recv(t, 0, tag=tag) == 0
            assert t.item() == tag
    # from whomever
    if rank == 0:
        seen = set()
        for _ in range(size - 1):
            t = torch.empty(2)
            source = dist.recv(t)
            assert t.tolist() == [float(source)] * 2
            seen.add(source)
        assert seen == set(range(1, size))
    else:
        dist.send(torch.full((2,), float(rank)), 0)
    objects = [{"rank": rank}] if rank == 0 else [None]
    if rank == 0:
        dist.send_object_list(objects, 1)
    elif rank == 1:
        dist.recv_object_list(objects, 0)
        assert objects == [{"rank": 0}]
    dist.barrier()


def test_messages() -> None:
    job(3, messages)


def mistakes(rank: int, size: int) -> None:
    with pytest.raises(ValueError, match="for integers"):
        dist.all_reduce(torch.ones(2), OPS.BAND)
    with pytest.raises(ValueError, match="AVG of bool"):
        dist.all_reduce(torch.tensor([True]), OPS.AVG)
    eighths = torch.zeros(2, dtype=torch.uint8).view(torch.float8_e4m3fnuz)  # a type that the library moves only
    for t in (eighths, torch.ones(2, dtype=torch.complex64)):
        with pytest.raises(ValueError, match=f"PRODUCT is not for {t.dtype}"):
            dist.reduce(t, 0, OPS.PRODUCT)
    with pytest.raises(ValueError, match="SUM is not for torch.float8_e4m3fnuz"):
        dist.all_reduce(eighths)
    for sizes in ([3] * size, [2**20] * size):  # of what one's own tensor is not
        with pytest.raises(pccl_errors().InvalidArgument, match=f"send has 2 elements, but counts says {sizes[0]}"):
            dist.all_gather([torch.empty(n) for n in sizes], torch.ones(2))
        with pytest.raises(pccl_errors().InvalidArgument, match=f"receive has 2 elements, but counts says {sizes[0]}"):
            dist.reduce_scatter(torch.ones(2), [torch.ones(n) for n in sizes])
    for n in (size - 1, size + 1):
        lists = [torch.ones(2) for _ in range(n)]
        for call, name in ((dist.all_gather, "outputs"), (lambda each, own: dist.reduce_scatter(own, each), "inputs")):
            with pytest.raises(ValueError, match=f"list of {name} has {n} tensors, and the group {size} ranks"):
                call(lists, torch.ones(2))
    with pytest.raises(ValueError, match="rows"):
        dist.all_to_all_single(torch.empty(size + 1), torch.empty(size + 1))
    with pytest.raises(pccl_errors().InvalidArgument, match="peers disagree.* f32"):
        dist.all_reduce(torch.ones(2 + rank))
    t = torch.ones(2)
    dist.all_reduce(t)  # nothing has become of the order of the calls
    assert t.tolist() == [float(size)] * 2
    work = dist.all_reduce(torch.ones(2 + rank), async_op=True)
    future = work.get_future()
    with pytest.raises(RuntimeError, match="peers disagree"):
        future.wait()
    assert work.is_completed() and not work.is_success() and "disagree" in str(work.exception())


def pccl_errors() -> Any:
    import pccl.errors

    return pccl.errors


def test_mistakes() -> None:
    job(2, mistakes)


def shuffled(rank: int, size: int) -> None:
    """Many asynchronous operations, awaited in an order of each rank's own."""
    tensors = [torch.full((1 + 37 * i % 1000,), float(i + rank)) for i in range(200)]
    works = [dist.all_reduce(t, async_op=True) for t in tensors]
    order = list(range(200))
    random.Random(rank).shuffle(order)
    for i in order:
        works[i].wait()
        assert tensors[i][-1].item() == sum(i + of for of in range(size))


@faces
def test_many_at_once(face: Any) -> None:
    job(3, shuffled, options=face)
