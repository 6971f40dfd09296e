"""What each operation brings to whom, in each kind of memory; and what is refused before anything is sent."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import array
import asyncio
from typing import Any, Callable, Coroutine

import numpy as np
import pytest
from support.master import Master
from support.multiworld import each, in_worlds

from pccl.errors import PCCLError
from pccl.multiworld import WorldCommunicator
from pccl.types import Cause, ReduceOp


def floats(rank: int) -> Any:
    return np.arange(4.0) + 10 * rank


def strided(rank: int) -> Any:
    whole = np.zeros(8)
    whole[::2] = floats(rank)
    return whole[::2]


def tensor(rank: int) -> Any:
    torch = pytest.importorskip("torch")
    return torch.arange(4.0, dtype=torch.float64) + 10 * rank


def transposed(rank: int) -> Any:
    torch = pytest.importorskip("torch")
    return (torch.arange(4.0, dtype=torch.float64) + 10 * rank).reshape(2, 2).t().contiguous().t()


def buffer(rank: int) -> Any:
    return array.array("d", floats(rank))


def values(memory: Any) -> list[float]:
    return [float(value) for value in (memory.reshape(-1) if hasattr(memory, "reshape") else memory)]


@pytest.mark.parametrize("backend", ["pccl", "gloo"])
@pytest.mark.parametrize("make", [floats, strided, tensor, transposed, buffer])
def test_values_of_all_operations(make: Callable[[int], Any], backend: str, master: Master, free_port: int) -> None:
    """Each operation, in each kind of memory, among three."""
    data = [[10.0 * rank + i for i in range(4)] for rank in range(3)]
    total = [sum(parts) for parts in zip(*data)]

    async def body(*c: WorldCommunicator) -> None:
        async def all_of(call: Callable[[int, Any], Coroutine[Any, Any, None]]) -> list[Any]:
            memories = [make(rank) for rank in range(3)]
            await asyncio.gather(*(call(rank, memories[rank]) for rank in range(3)))
            return memories

        for memory in await all_of(lambda rank, m: c[rank].all_reduce(m, world_name="w")):
            assert values(memory) == total
        reduced = await all_of(lambda rank, m: c[rank].reduce(m, 1, ReduceOp.MAX, "w"))
        assert [values(memory) for memory in reduced] == [data[0], data[2], data[2]]
        for memory in await all_of(lambda rank, m: c[rank].broadcast(m, 2, "w")):
            assert values(memory) == data[2]
        lists = [[make(0) for _ in range(3)] for _ in range(3)]
        await all_of(lambda rank, m: c[rank].all_gather(lists[rank], m, "w"))
        assert [[values(memory) for memory in gathered] for gathered in lists] == [data] * 3
        at_root = [make(0) for _ in range(3)]
        await all_of(lambda rank, m: c[rank].gather(m, at_root if rank == 2 else None, 2, "w"))
        assert [values(memory) for memory in at_root] == data
        parts = [make(rank) for rank in range(3)]
        scattered = await all_of(lambda rank, m: c[rank].scatter(m, parts if rank == 1 else None, 1, "w"))
        assert [values(memory) for memory in scattered] == data
        sent, received = make(2), make(0)
        await asyncio.gather(c[0].send(sent, 2, "w"), c[2].recv(received, 0, "w"))
        assert values(received) == data[2] == values(sent)

    if backend == "gloo":
        pytest.importorskip("torch")
    in_worlds(3, master.port if backend == "pccl" else free_port, body, backend=backend)


def test_operators(master: Master) -> None:
    """Those of torch and those of pccl are the same."""
    dist = pytest.importorskip("torch.distributed")
    ops = dist.ReduceOp
    pairs = [(ops.SUM, 9), (ops.PRODUCT, 18), (ops.MIN, 3), (ops.MAX, 6), (ops.BAND, 2), (ops.BOR, 7), (ops.BXOR, 5), (ReduceOp.PROD, 18),
             (ops(ops.MAX), 6)]

    async def body(*c: WorldCommunicator) -> None:
        for op, expected in pairs:
            memories = [np.full(2, value, np.int64) for value in (3, 6)]
            await asyncio.gather(*(c[rank].all_reduce(memories[rank], op, "w") for rank in range(2)))
            assert [list(memory) for memory in memories] == [[expected] * 2] * 2, op
        mean = [np.array([3.0]), np.array([6.0])]
        await asyncio.gather(*(c[rank].all_reduce(mean[rank], ops.AVG, "w") for rank in range(2)))
        assert mean == [4.5, 4.5]
        for op in ("SUM", 1, None, ops.PREMUL_SUM):
            with pytest.raises(ValueError, match="pass a ReduceOp"):
                await c[0].all_reduce(np.zeros(1), op, "w")

    in_worlds(2, master.port, body)


def test_what_gloo_has_not(free_port: int) -> None:
    """Operators and types are refused before they could end the world."""
    torch = pytest.importorskip("torch")

    async def body(*c: WorldCommunicator) -> None:
        for wrong in (
            c[0].all_reduce(torch.zeros(1), ReduceOp.AVG, "w"), c[0].reduce(torch.zeros(1), 0, ReduceOp.BIT_OR, "w"),
            c[0].all_reduce(torch.zeros(1), "SUM", "w"), c[0].broadcast(torch.zeros(1, dtype=torch.complex64), 0, "w"),
        ):
            with pytest.raises(ValueError, match="^pccl: "):
                await wrong
        memories = [torch.tensor([1, 2]), torch.tensor([2, 4])]
        await asyncio.gather(*(c[rank].all_reduce(memories[rank], ReduceOp.BIT_OR, "w") for rank in range(2)))
        assert memories[0].tolist() == memories[1].tolist() == [3, 6]

    in_worlds(2, free_port, body, backend="gloo")


def test_wrong_arguments(master: Master) -> None:
    """They are told at once, before anything is sent: the world goes on."""

    async def body(*c: WorldCommunicator) -> None:
        for wrong in (
            c[0].send(np.zeros(1), 0, "w"), c[0].send(np.zeros(1), 2, "w"), c[0].recv(np.zeros(1), -1, "w"),
            c[0].broadcast(np.zeros(1), 5, "w"),
            c[0].all_gather([np.zeros(1)], np.zeros(1), "w"), c[0].all_gather([np.zeros(1), np.zeros(2)], np.zeros(1), "w"),
            c[0].gather(np.zeros(1), None, 0, "w"), c[0].scatter(np.zeros(1), None, 0, "w"), c[0].recv_any({}, 1),
            c[0].scatter(np.zeros(1), [np.zeros(1, np.float32), np.zeros(1)], 0, "w"),
        ):
            with pytest.raises(ValueError):
                await wrong
        with pytest.raises(TypeError):
            await c[0].send("text", 1, "w")
        memories = [np.ones(2), np.ones(2)]
        await asyncio.gather(*(c[rank].all_reduce(memories[rank], world_name="w") for rank in range(2)))
        assert list(memories[0]) == [2.0, 2.0]

    in_worlds(2, master.port, body)


def test_members_that_disagree(master: Master) -> None:
    """An operation whose members differ fails at all, and their world goes on."""

    async def body(*c: WorldCommunicator) -> None:
        outcomes = await each(c[0].all_reduce(np.zeros(2), world_name="w"), c[1].all_reduce(np.zeros(3), world_name="w"))
        assert all(isinstance(outcome, PCCLError) and outcome.cause is Cause.MISMATCH for outcome in outcomes), outcomes
        assert not c[0].is_broken("w")
        await asyncio.gather(c[0].send(np.zeros(1), 1, "w"), c[1].recv(np.zeros(1), 0, "w"))

    in_worlds(2, master.port, body)


@pytest.mark.parametrize("backend", ["pccl", "gloo"])
def test_messages_that_cross(backend: str, master: Master, free_port: int) -> None:
    """A receive that waits is in no send's way, and messages of a pair arrive in their order."""

    async def body(*c: WorldCommunicator) -> None:
        waiting = asyncio.create_task(c[0].recv(last := np.zeros(1), 1, "w"))
        for number in range(20):
            received = np.zeros(1)
            await asyncio.gather(c[0].send(np.array([float(number)]), 1, "w"), c[1].recv(received, 0, "w"))
            assert received[0] == number
        assert not waiting.done()
        await c[1].send(np.array([7.0]), 0, "w")
        await waiting
        assert last[0] == 7.0

    in_worlds(2, master.port if backend == "pccl" else free_port, body, backend=backend)
