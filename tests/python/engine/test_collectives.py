"""Every collective and message of the engine against an independent computation, for each type, by numpy arrays, tensors and buffers."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import array
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch
from support.master import Master
from support.worlds import in_world

from pccl.engine import World
from pccl.errors import InvalidArgument
from pccl.quantization import QuantizationOptions
from pccl.types import DataType, QuantizationAlgorithm, ReduceOp

MEMBERS = 3
NUMBERS = [t for t in DataType if t not in (DataType.BOOL, DataType.FLOAT8_E4M3, DataType.FLOAT8_E5M2)]


def values(rank: int, count: int, datatype: DataType) -> Any:
    """Small whole numbers, so that sums and products are exact in every type; by hash, so that no two ranks have the same."""
    return ((np.arange(count) * 7 + rank * 3) % 5 + 1).astype(datatype.to_numpy_dtype())


def inputs(count: int, datatype: DataType) -> Any:
    return np.stack([values(rank, count, datatype).astype(np.float64) for rank in range(MEMBERS)])


@pytest.mark.parametrize("datatype", NUMBERS)
def test_every_type_reduces_to_the_values_of_numpy(master: Master, datatype: DataType) -> None:
    """A type that is passed under another's number."""
    whole = inputs(1001, datatype)
    wanted = {ReduceOp.SUM: whole.sum(0), ReduceOp.PROD: whole.prod(0), ReduceOp.MIN: whole.min(0), ReduceOp.MAX: whole.max(0)}

    def member(world: World) -> None:
        for op, result in wanted.items():
            out = np.zeros(1001, datatype.to_numpy_dtype())
            world.all_reduce(values(world.rank, 1001, datatype), out, op).wait()
            assert (out.astype(np.float64) == result).all(), op

    in_world(master.address, MEMBERS, member)


def test_moving_collectives_take_every_type(master: Master) -> None:
    """One byte or eight where two belong."""

    def member(world: World) -> None:
        for datatype in DataType:
            mine = (np.arange(5 * datatype.itemsize, dtype=np.uint8) + world.rank).view(datatype.to_numpy_dtype())
            out = np.zeros(5 * MEMBERS, mine.dtype)
            world.all_gather(mine, out).wait()
            for rank in range(MEMBERS):
                assert (out[5 * rank : 5 * rank + 5].view(np.uint8) == np.arange(5 * datatype.itemsize) + rank).all(), datatype

    in_world(master.address, MEMBERS, member)


def test_equal_parts(master: Master) -> None:
    """A root, a rank or a part that is another's."""
    n = 7
    x = inputs(n * MEMBERS, DataType.FLOAT)

    def member(world: World) -> None:
        rank, mine = world.rank, values(world.rank, n * MEMBERS, DataType.FLOAT)
        for root in range(MEMBERS):
            out = np.zeros(n * MEMBERS, np.float32)
            world.broadcast(mine if rank == root else None, out, root).wait()
            assert (out == x[root]).all()
            out = np.zeros(n * MEMBERS, np.float32)
            world.reduce(mine, out if rank == root else None, root).wait()
            assert (out == (x.sum(0) if rank == root else 0)).all()
            part = np.zeros(n, np.float32)
            world.scatter(mine if rank == root else None, part, root).wait()
            assert (part == x[root][n * rank : n * rank + n]).all()
            out = np.zeros(n * MEMBERS, np.float32)
            world.gather(mine[:n], out if rank == root else None, root).wait()
            assert (out == (x[:, :n].ravel() if rank == root else 0)).all()
        part = np.zeros(n, np.float32)
        world.reduce_scatter(mine, part, ReduceOp.SUM).wait()
        assert (part == x.sum(0)[n * rank : n * rank + n]).all()
        out = np.zeros(n * MEMBERS, np.float32)
        world.all_to_all(mine, out).wait()
        assert (out == x[:, n * rank : n * rank + n].ravel()).all()
        world.barrier().wait()

    in_world(master.address, MEMBERS, member)


def test_quantised_sums(master: Master) -> None:
    """Values of 0 and 255, which 8 bits keep: what one member gets is exact, what all get is alike and close."""
    n = 3000

    def member(world: World) -> None:
        rank, options = world.rank, QuantizationOptions(DataType.UINT8, QuantizationAlgorithm.MIN_MAX)
        x = np.random.default_rng(1).choice(np.array([0, 255], np.float32), (MEMBERS, n * MEMBERS))
        mine, part, out = x[rank].copy(), np.zeros(n, np.float32), np.zeros(n * MEMBERS, np.float32)
        world.reduce_scatter(mine, part, quantization=options).wait()
        assert (part == x.sum(0)[n * rank : n * rank + n]).all()
        world.reduce_scatter_v(mine, part, [n] * MEMBERS, quantization=options).wait()
        assert (part == x.sum(0)[n * rank : n * rank + n]).all()
        world.reduce(mine, out, 0, quantization=options).wait()
        assert rank != 0 or (out == x.sum(0)).all()
        world.all_reduce(mine, out, quantization=options).wait()
        assert np.abs(out - x.sum(0)).max() <= MEMBERS
        everybody = np.zeros(n * MEMBERS * MEMBERS, np.float32)
        world.all_gather(out, everybody).wait()
        assert (everybody.reshape(MEMBERS, -1) == out).all()
        with pytest.raises(TypeError, match="quantization is 8; pass a QuantizationOptions"):
            world.all_reduce(mine, out, quantization=8)  # type: ignore[arg-type]

    in_world(master.address, MEMBERS, member)


def test_uneven_parts_and_places(master: Master) -> None:
    """Counts that are taken for places, bytes for elements, or an empty part for none."""
    counts = [0, 3, 5]
    places = [9, 6, 0]

    def member(world: World) -> None:
        rank = world.rank
        mine = values(rank, counts[rank], DataType.INT64)
        out = np.full(9, -1, np.int64)
        world.all_gather_v(mine, out, counts, places).wait()
        wanted = np.full(9, -1, np.int64)
        for r in range(MEMBERS):
            wanted[places[r] : places[r] + counts[r]] = values(r, counts[r], DataType.INT64)
        assert (out == wanted).all()
        out = np.full(9, -1, np.int64)
        world.gather_v(mine, out if rank == 1 else None, counts if rank == 1 else None, 1, places if rank == 1 else None).wait()
        assert (out == (wanted if rank == 1 else -1)).all()
        whole = np.arange(9, dtype=np.int64)
        part = np.zeros(counts[rank], np.int64)
        world.scatter_v(whole if rank == 2 else None, counts if rank == 2 else None, part, 2, places if rank == 2 else None).wait()
        assert (part == whole[places[rank] : places[rank] + counts[rank]]).all()
        world.reduce_scatter_v(whole, part, counts, ReduceOp.SUM, places).wait()
        assert (part == MEMBERS * whole[places[rank] : places[rank] + counts[rank]]).all()
        send_counts = [(rank + r) % 3 for r in range(MEMBERS)]
        receive_counts = [(r + rank) % 3 for r in range(MEMBERS)]
        sent = np.concatenate([np.full(c, 10 * rank + r) for r, c in enumerate(send_counts)]).astype(np.int64)
        got = np.zeros(sum(receive_counts), np.int64)
        world.all_to_all_v(sent, send_counts, got, receive_counts).wait()
        assert (got == np.concatenate([np.full(c, 10 * r + rank) for r, c in enumerate(receive_counts)])).all()

    in_world(master.address, MEMBERS, member)


def test_operators_with_a_factor(master: Master) -> None:
    """A factor that is rounded otherwise than its type, or another member's."""
    factors = {DataType.FLOAT: 0.1, DataType.DOUBLE: 1 / 3, DataType.FLOAT16: 1.5, DataType.BFLOAT16: 0.3}

    def member(world: World) -> None:
        for datatype, factor in factors.items():
            dtype = datatype.to_numpy_dtype()
            out = np.zeros(10, dtype)
            with world.premul_sum(factor, datatype) as op:
                world.all_reduce(values(world.rank, 10, datatype), out, op).wait()
            products = [(values(r, 10, datatype) * dtype.type(factor)).astype(np.float64) for r in range(MEMBERS)]
            # The sum of rounded products, itself rounded once or twice, is within two units of the last place.
            assert np.allclose(out.astype(np.float64), sum(products), rtol=2 * float(ml_dtypes.finfo(dtype).eps), atol=0)
        with pytest.raises(InvalidArgument, match="INT32 is none of"):
            with world.premul_sum(2, DataType.INT32):
                pass

    in_world(master.address, MEMBERS, member)


def test_messages_by_tag_and_from_anybody(master: Master) -> None:
    """A message of another tag, or a source that is not its sender."""

    def member(world: World) -> None:
        rank = world.rank
        if rank > 0:
            low, high = np.full(4, rank, np.int32), np.full(4, 10 * rank, np.int32)
            sent = [world.send(high, 0, 5), world.send(low, 0, 4)]
            for operation in sent:
                operation.wait()
            world.barrier().wait()  # who left now would end a world in which the other's message is on its way
            return
        for tag, factor in ((4, 1), (5, 10)):
            sources = set()
            for _ in range(MEMBERS - 1):
                out = np.zeros(4, np.int32)
                operation = world.receive(out, tag=tag)
                operation.wait()
                assert (out == factor * operation.source).all()
                sources.add(operation.source)
            assert sources == {1, 2}
        world.barrier().wait()

    in_world(master.address, MEMBERS, member)


def test_memory_of_all_kinds(master: Master) -> None:
    """Memory that is copied, so that results go elsewhere."""
    makers = [
        lambda: torch.ones(6),
        lambda: np.ones(6, np.float32),
        lambda: array.array("f", [1.0] * 6),
        lambda: memoryview(bytearray(np.ones(6, np.float32).tobytes())).cast("f"),
        lambda: torch.ones(6, dtype=torch.bfloat16),
        lambda: torch.ones(2, 3, dtype=torch.float16),
    ]

    def member(world: World) -> None:
        for make in makers:
            memory = make()
            world.all_reduce(memory, memory).wait()
            flat = memory.flatten().tolist() if isinstance(memory, torch.Tensor) else list(memory)
            assert flat == [2.0] * 6

    in_world(master.address, 2, member)


def test_memory_that_cannot_be_used_is_refused_by_name(master: Master) -> None:
    """Bytes of another place, of a type that is none, or of a constant."""

    def member(world: World) -> None:
        good = np.ones(4, np.float32)
        grid = np.ones((4, 4), np.float32)
        for bad, error, words in [
            (grid[:, 0], ValueError, "send has the strides"),
            (torch.ones(4, 4).t()[1:], ValueError, "send has the strides"),
            (np.ones(4, np.complex64), ValueError, "complex64|<c8"),
            (torch.ones(4, dtype=torch.complex64), ValueError, "complex64"),
            (torch.ones(4, device="meta"), ValueError, "device meta"),
            (np.ones(4, ">f4"), ValueError, ">f4"),
            (torch.ones(1, dtype=torch.complex64).conj().imag, ValueError, "with the other sign"),
            ([1.0], TypeError, "send is a list"),
        ]:
            with pytest.raises(error, match=words):
                world.all_reduce(bad, good)
        frozen = good.copy()
        frozen.flags.writeable = False
        with pytest.raises(ValueError, match="receive is read-only"):
            world.all_reduce(good, frozen)
        with pytest.raises(ValueError, match="receive is read-only"):
            world.all_reduce(good, bytes(16))
        with pytest.raises(InvalidArgument, match="FLOAT, the other of DOUBLE"):
            world.all_reduce(good, np.ones(4))
        with pytest.raises(InvalidArgument, match="4 elements, the other 5, where 4 are needed"):
            world.all_reduce(good, np.ones(5, np.float32))
        with pytest.raises(InvalidArgument, match="end at element 5, but it has 4"):
            world.all_gather_v(good[:2], good, [2, 3])
        with pytest.raises(InvalidArgument, match="3 counts for receive, and 2 members"):
            world.all_gather_v(good[:2], good, [2, 1, 1])
        for counts in ([1, 1], [3, 3], [2**20, 2**20]):
            many = np.ones(sum(counts), np.float32)
            with pytest.raises(InvalidArgument, match=f"send has 2 elements, but counts says {counts[0]} for this rank, {world.rank}"):
                world.all_gather_v(good[:2], many, counts)
            with pytest.raises(InvalidArgument, match=f"receive has 2 elements, but counts says {counts[0]} for this rank"):
                world.reduce_scatter_v(many, good[:2], counts)
        own = [2, 2]
        own[world.rank] = 1
        with pytest.raises(InvalidArgument, match="recv_counts of this rank itself is 2: pass the same number as in send_counts"):
            world.all_to_all_v(good, own, good.copy(), [2, 2]).wait()
        world.barrier().wait()  # none of these took a turn

    in_world(master.address, 2, member)


