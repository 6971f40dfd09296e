"""All operations of a communicator, in each form and type, against values computed apart; argument errors; inputs stay intact."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import itertools
from typing import Any, Callable

import numpy
import pytest
import torch

from pccl.comms import ReduceOp, TorchComm, new_comm
from support.ranks import run

SIZES = (1, 2, 3)
COUNTS = (0, 4, 1023)
TYPES = (
    torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.int8, torch.uint8, torch.bool, torch.int32, torch.int64,
)


def with_comm(count: int, function: Callable[[TorchComm], Any], **options: Any) -> list[Any]:
    def rank() -> Any:
        comm = new_comm("pccl", torch.device("cpu"), "test", timeout=30, **options)
        result = function(comm)
        comm.finalize()
        return result

    return run(count, rank)


def input_of(rank: int, count: int, dtype: torch.dtype, salt: int = 0) -> torch.Tensor:
    values = (torch.arange(count, dtype=torch.int64) * 7 + rank * 3 + salt) % 5
    return values.to(dtype)


def each_way(comm: TorchComm, issue: Callable[[bool], Any]) -> None:
    """Synchronously, asynchronously with two waits, and asynchronously with a look until it is done."""
    assert issue(False).is_completed()
    work = issue(True)
    work.wait()
    work.wait()
    assert work.is_completed()
    work = issue(True)
    while not work.is_completed():
        pass
    work.wait_blocking()


@pytest.mark.parametrize("size", SIZES)
def test_every_operation_in_each_type(size: int) -> None:
    def body(comm: TorchComm) -> None:
        rank = comm.get_rank()
        for dtype, count in itertools.product(TYPES, COUNTS):
            inputs = [input_of(r, count, dtype) for r in range(size)]
            mine = inputs[rank].clone()

            def broadcast(way: bool) -> Any:
                tensor = inputs[rank].clone()
                work = comm.broadcast(tensor, size - 1, way)
                work.wait()
                assert torch.equal(tensor, inputs[-1])
                return work

            each_way(comm, broadcast)
            for _ in range(2):
                outputs = [torch.zeros_like(mine) for _ in range(size)]
                comm.all_gather(outputs, mine, True).wait()
                assert all(map(torch.equal, outputs, inputs))
            whole = torch.zeros(count * size, dtype=dtype)
            comm.all_gather(list(whole.split(count) if count else [whole] * size), mine, False)
            assert torch.equal(whole, torch.cat(inputs))
            whole.zero_()
            comm.all_gather_single(whole, mine, False)
            assert torch.equal(whole, torch.cat(inputs))
            sends = [[input_of(r, count, dtype, to) for to in range(size)] for r in range(size)]
            got = [torch.zeros_like(mine) for _ in range(size)]
            comm.all_to_all(got, sends[rank], False)
            assert all(torch.equal(got[r], sends[r][rank]) for r in range(size))
            whole.zero_()
            comm.all_to_all_single(whole, torch.cat(sends[rank]), True).wait()
            assert torch.equal(whole, torch.cat([sends[r][rank] for r in range(size)]))
            for root in range(size):
                target = torch.zeros_like(mine)
                comm.scatter(target, sends[root] if rank == root else [], root, False)
                assert torch.equal(target, sends[root][rank])
                outputs = [torch.zeros_like(mine) for _ in range(size)]
                comm.gather(outputs if rank == root else [], mine, root, True).wait()
                assert rank != root or all(map(torch.equal, outputs, inputs))
                whole.zero_()
                comm.gather_single(whole, mine, root, False)
                assert torch.equal(whole, torch.cat(inputs) if rank == root else torch.zeros_like(whole))
            comm.barrier(False)
            assert torch.equal(mine, inputs[rank])

    with_comm(size, body)


def reduced(op: ReduceOp, inputs: list[torch.Tensor]) -> torch.Tensor:
    """By numpy, in wider types."""
    wide = numpy.stack([tensor.to(torch.float64).numpy() for tensor in inputs])
    integers = numpy.stack([tensor.to(torch.int64).numpy() for tensor in inputs])
    dtype, name = inputs[0].dtype, op.type.name
    whole = not dtype.is_floating_point
    source = integers if whole else wide
    if name == "AVG":
        result = numpy.trunc(source.sum(0) / len(inputs))
        result = result if whole else source.sum(0) / len(inputs)
    elif name == "PREMUL_SUM":
        result = source.sum(0) * op.factor
    else:
        functions: dict[str, Any] = {
            "SUM": numpy.add, "PRODUCT": numpy.multiply, "MIN": numpy.minimum, "MAX": numpy.maximum, "BAND": numpy.bitwise_and,
            "BOR": numpy.bitwise_or, "BXOR": numpy.bitwise_xor,
        }
        result = functions[name].reduce(source, 0)
    return torch.from_numpy(numpy.asarray(result)).to(dtype)


def operators(dtype: torch.dtype) -> list[ReduceOp]:
    ops = [ReduceOp.SUM, ReduceOp.PRODUCT, ReduceOp.MIN, ReduceOp.MAX]
    if dtype.is_floating_point:
        return [*ops, ReduceOp.AVG, ReduceOp.PREMUL_SUM(2.0), ReduceOp.PREMUL_SUM(torch.tensor([0.5]))]
    ops += [ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR]
    return ops if dtype is torch.bool else [*ops, ReduceOp.AVG]


@pytest.mark.parametrize("size", (1, 3))
def test_every_reduction_in_each_type(size: int) -> None:
    def body(comm: TorchComm) -> None:
        rank = comm.get_rank()
        for dtype, count in itertools.product(TYPES, (0, 5)):
            for op in operators(dtype):
                inputs = [input_of(r, count, dtype) for r in range(size)]
                expected = reduced(op, inputs)
                tensor = inputs[rank].clone()
                comm.all_reduce(tensor, op, False)
                torch.testing.assert_close(tensor, expected, msg=f"{op} {dtype}")
                tensor = inputs[rank].clone()
                comm.reduce(tensor, size - 1, op, True).wait()
                torch.testing.assert_close(tensor, expected if rank == size - 1 else inputs[rank])
                parts = [[input_of(r, count, dtype, to) for to in range(size)] for r in range(size)]
                mine = [part.clone() for part in parts[rank]]
                output = torch.zeros(count, dtype=dtype)
                comm.reduce_scatter(output, mine, op, False)
                wanted = reduced(op, [parts[r][rank] for r in range(size)])
                torch.testing.assert_close(output, wanted)
                assert all(map(torch.equal, mine, parts[rank]))
                output = torch.zeros(count, dtype=dtype)
                comm.reduce_scatter_single(output, torch.cat(mine), op, True).wait()
                torch.testing.assert_close(output, wanted)

    with_comm(size, body)


def test_sizes_that_differ() -> None:
    size = 3

    def body(comm: TorchComm) -> None:
        rank = comm.get_rank()
        inputs = [input_of(r, 2 * r, torch.float32) for r in range(size)]
        outputs = [torch.zeros(2 * r) for r in range(size)]
        comm.all_gather_v(outputs, inputs[rank], False)
        assert all(map(torch.equal, outputs, inputs))
        parts = [[input_of(r, to + 1, torch.int32, to) for to in range(size)] for r in range(size)]
        output = torch.zeros(rank + 1, dtype=torch.int32)
        comm.reduce_scatter_v(output, parts[rank], ReduceOp.SUM, True).wait()
        assert torch.equal(output, torch.stack([parts[r][rank] for r in range(size)]).sum(0).to(torch.int32))
        sent = torch.arange(12, dtype=torch.float64).view(6, 2) + 100 * rank  # rank r sends to rank q max(r, q) rows
        rows = [max(rank, q) for q in range(size)]
        received = torch.full((sum(rows) + 1, 2), -1.0, dtype=torch.float64)
        comm.all_to_all_v_single(received, sent, rows, rows, False)
        at = 0
        for q in range(size):
            begin = sum(max(q, k) for k in range(rank))
            wanted = torch.arange(12, dtype=torch.float64).view(6, 2)[begin:begin + rows[q]] + 100 * q
            assert torch.equal(received[at:at + rows[q]], wanted)
            at += rows[q]
        assert torch.equal(received[at:], torch.full((1, 2), -1.0, dtype=torch.float64))
        got = [torch.zeros(rank + q) for q in range(size)]
        comm.all_to_all(got, [torch.full((rank + q,), 10.0 * rank + q) for q in range(size)], False)
        assert all(torch.equal(got[q], torch.full((rank + q,), 10.0 * q + rank)) for q in range(size))

    with_comm(size, body)


def test_parts_that_lie_across_each_other() -> None:
    """Lists whose tensors alternate in memory, and ones at odd addresses."""

    def body(comm: TorchComm) -> None:
        rank, size = comm.get_rank(), comm.get_size()
        memory = torch.zeros(2 * size, 3)
        inputs = [memory[2 * r] for r in range(size)]
        outputs = [memory[2 * r + 1] for r in range(size)]
        for r in range(size):
            inputs[r].fill_(10.0 * rank + r)
        comm.all_to_all(outputs, inputs, True).wait()
        assert [out[0].item() for out in outputs] == [10.0 * r + rank for r in range(size)]
        assert [tensor[2].item() for tensor in inputs] == [10.0 * rank + r for r in range(size)]
        comm.all_gather(outputs, inputs[0], False)  # the input lies between the outputs
        assert [out[1].item() for out in outputs] == [10.0 * r for r in range(size)]
        total = memory[1]
        comm.reduce_scatter(total, inputs, ReduceOp.SUM, False)
        assert total[0].item() == sum(10.0 * r + rank for r in range(size))
        raw = bytearray(64)
        odd = [numpy.frombuffer(raw, numpy.float32, 2, offset) for offset in (0, 9, 19)][:size]
        comm.all_gather(odd, numpy.full(2, rank, numpy.float32), True).wait()
        assert [float(piece[1]) for piece in odd] == [float(r) for r in range(size)]
        comm.scatter(memory[2], [memory[1], memory[3], memory[5]] if rank == 1 else [], 1, False)
        comm.gather([memory[0], memory[2], memory[4]] if rank == 2 else [], memory[2], 2, False)

    with_comm(3, body)


def test_messages() -> None:
    def body(comm: TorchComm) -> None:
        rank, size = comm.get_rank(), comm.get_size()
        following, before = (rank + 1) % size, (rank - 1) % size
        works = []
        got = [torch.zeros(4) for _ in range(3)]
        for k in range(3):  # all send first
            works.append(comm.send(torch.full((4,), 100.0 * k + rank), following, True))
        for k in range(3):
            works.append(comm.recv(got[k], before, True))
        for work in works:
            work.wait()
        assert [tensor[3].item() for tensor in got] == [100.0 * k + before for k in range(3)]
        if rank == 0:
            comm.send(torch.tensor([5, 6]), 1)
        elif rank == 1:
            answer = torch.zeros(2, dtype=torch.int64)
            comm.recv(answer, 0)
            assert answer.tolist() == [5, 6]

    with_comm(3, body)


def test_numpy_and_buffers() -> None:
    import array

    def body(comm: TorchComm) -> None:
        size = comm.get_size()
        mine = numpy.arange(3, dtype=numpy.int32)
        comm.all_reduce(mine, ReduceOp.SUM)
        assert mine.tolist() == [0, size, 2 * size]
        plain = array.array("d", [1.0, 2.0])
        comm.all_reduce(plain, ReduceOp.AVG)
        assert list(plain) == [1.0, 2.0]
        outputs = [bytearray(2) for _ in range(size)]
        comm.all_gather(outputs, bytes([7, comm.get_rank()]))
        assert outputs == [bytearray([7, r]) for r in range(size)]

    with_comm(2, body)


MISTAKES: list[tuple[str, Callable[[TorchComm], Any], str]] = [
    ("dst", lambda c: c.send(torch.zeros(1), 9), "dst must be in range"),
    ("src", lambda c: c.recv(torch.zeros(1), -1), "src must be in range"),
    ("self", lambda c: c.send(torch.zeros(1), c.get_rank()), "Cannot send to self"),
    ("root", lambda c: c.broadcast(torch.zeros(1), 2), "root must be in range"),
    ("contiguous", lambda c: c.all_reduce(torch.zeros(4, 4).t()[1:], ReduceOp.SUM), "must be contiguous"),
    ("bits", lambda c: c.all_reduce(torch.zeros(1), ReduceOp.BXOR), "with non-integral dtype"),
    ("premul", lambda c: c.all_reduce(torch.zeros(1, dtype=torch.int32), ReduceOp.PREMUL_SUM(2)), "PREMUL_SUM is for half"),
    ("dtype", lambda c: c.all_reduce(torch.zeros(1, dtype=torch.complex64), ReduceOp.SUM), "Invalid scalar type"),
    ("list", lambda c: c.all_gather([torch.zeros(1)], torch.zeros(1)), "size must equal comm_size"),
    ("sizes", lambda c: c.all_gather([torch.zeros(1), torch.zeros(2)], torch.zeros(1)), "must have same size"),
    ("single", lambda c: c.all_gather_single(torch.zeros(3), torch.zeros(1)), "size must equal comm_size"),
    ("divisible", lambda c: c.all_to_all_single(torch.zeros(3), torch.zeros(3)), "must be divisible by comm_size"),
    ("splits", lambda c: c.all_to_all_v_single(torch.zeros(3), torch.zeros(3), [1], [1, 1]), "length must equal comm_size"),
    ("rows", lambda c: c.all_to_all_v_single(torch.zeros(3), torch.zeros(3), [1, 3], [1, 1]), "exceeds"),
    ("types", lambda c: c.all_gather_single(torch.zeros(2), torch.zeros(1, dtype=torch.int32)), "Invalid scalar type"),
    ("timeout", lambda c: c.barrier(timeout=-1), "timeout must be non-negative"),
]


def test_argument_mistakes_change_nothing() -> None:
    def body(comm: TorchComm) -> None:
        for name, call, text in MISTAKES:
            with pytest.raises(RuntimeError, match=text):
                call(comm)
            assert comm.barrier().is_completed(), name
        assert not comm.is_aborted()

    with_comm(2, body)


def test_works_are_dropped_and_memory_is_freed_early() -> None:
    def body(comm: TorchComm) -> None:
        for round_ in range(50):
            comm.all_reduce(torch.ones(1000), ReduceOp.SUM, True)
            comm.all_gather([torch.zeros(10) for _ in range(2)], torch.ones(10), True)
        last = torch.ones(3)
        work = comm.all_reduce(last, ReduceOp.SUM, True)
        comm.barrier()
        assert work.is_completed() and last.tolist() == [2.0] * 3

    with_comm(2, body)


def test_reduce_ops_are_values() -> None:
    import copy
    import pickle

    from pccl.comms import RedOpType

    assert [int(kind) for kind in RedOpType] == list(range(9))
    with pytest.raises(RuntimeError, match="no factor"):
        ReduceOp(RedOpType.PREMUL_SUM)
    factor = ReduceOp.PREMUL_SUM(torch.tensor([3.0]))
    assert factor.type is RedOpType.PREMUL_SUM and factor.factor == 3.0 and factor == ReduceOp.PREMUL_SUM(3)
    assert ReduceOp.SUM == ReduceOp(RedOpType.SUM) != ReduceOp.AVG and len({ReduceOp.SUM, ReduceOp(RedOpType.SUM)}) == 1
    memo: dict[int, Any] = {}
    assert copy.deepcopy(factor, memo) is memo[id(factor)]
    assert pickle.loads(pickle.dumps(factor)) == factor
    with pytest.raises(AttributeError):
        factor.type = RedOpType.SUM  # type: ignore[misc]
