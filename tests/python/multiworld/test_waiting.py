"""Waiting in coroutines, in threads and for several worlds at once; and what becomes of an operation that nobody waits for."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import asyncio
import threading
import time
from typing import Callable, Optional

import numpy as np
import pytest
from support.master import Master
from support.multiworld import SECONDS, each, enter, in_worlds
from support.worlds import together

from pccl.errors import RankConnectionLost
from pccl.multiworld import BrokenWorldException, WorldCommunicator, WorldManager, waiting
from pccl.types import Cause, ReduceOp

# -- Cancels --


class Flight:
    """An operation that ends some time after it was cancelled."""

    land, error = None, None

    def __init__(self) -> None:
        self.callbacks: list[Callable[[], None]] = []
        self.events: list[str] = []

    def when_done(self, callback: Callable[[], None]) -> None:
        self.callbacks.append(callback)

    def cancel(self) -> None:
        self.events.append("cancelled")
        threading.Timer(0.05, self.end).start()

    def end(self) -> None:
        self.events.append("ended")
        for callback in self.callbacks:
            callback()

    def wait(self, timeout: Optional[float] = None) -> bool:
        return "ended" in self.events


def test_a_task_ends_when_its_operation_has() -> None:
    """Not when that is told to: until then it has the tensors."""

    async def run() -> None:
        flight = Flight()
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(waiting.settled(flight), 0.01)
        assert flight.events == ["cancelled", "ended"]

    asyncio.run(run())


@pytest.mark.parametrize("backend", ["pccl", "gloo"])
def test_a_cancelled_receive_leaves_the_send_pending(backend: str, master: Master, free_port: int) -> None:
    """A program polls with ``wait_for``: the message comes to the first receive that is there for it, whatever tensor that has."""

    async def body(*c: WorldCommunicator) -> None:
        polled = []
        for tensor in (np.zeros(2), np.zeros((2, 2))[:, 0]):
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(c[0].recv(tensor, 1, "w"), 0.01)
            polled.append(tensor)
        sends = [asyncio.create_task(c[1].send(np.full(2, value), 0, "w")) for value in (5.0, 6.0)]
        received = [np.zeros(2), np.zeros((2, 2))[:, 1]]
        for tensor in received:
            await c[0].recv(tensor, 1, "w")
        await asyncio.gather(*sends)
        assert [list(tensor) for tensor in received] == [[5.0, 5.0], [6.0, 6.0]]
        if backend == "pccl":  # gloo borrows them until the world ends
            assert not any(tensor.any() for tensor in polled)
        await asyncio.gather(c[1].send(np.full(2, 7.0), 0, "w"), c[0].recv(received[0], 1, "w"))
        assert list(received[0]) == [7.0, 7.0] and not c[1].is_broken("w")

    in_worlds(2, master.port if backend == "pccl" else free_port, body, backend=backend)


@pytest.mark.parametrize("backend", ["pccl", "gloo"])
def test_a_receive_that_is_cancelled_as_its_message_arrives(backend: str, master: Master, free_port: int) -> None:
    """The message is kept for the next receive from that rank, of whichever form, and comes before later ones."""

    async def body(*c: WorldCommunicator) -> None:
        tasks = [asyncio.create_task(c[0].recv(np.zeros(2), 1, "w")) for _ in range(2)]
        await asyncio.sleep(0)
        for task, value in zip(tasks, (1.0, 2.0)):
            c[1].send_blocking(np.full(2, value), 0, "w")  # the event loop does not learn of it yet
            task.cancel()
        assert all(isinstance(outcome, asyncio.CancelledError) for outcome in await each(*tasks))
        received = [np.zeros(2), np.zeros((2, 2))[:, 1]]
        await asyncio.gather(c[1].send(np.full(2, 3.0), 2, "w"), c[2].recv(received[0], 1, "w"))  # between others it changes nothing
        assert received[0][0] == 3.0
        with pytest.raises(ValueError, match="cancelled receive from rank 1 has a message of 2 elements"):
            await c[0].recv(np.zeros(3), 1, "w")
        cancelled = asyncio.create_task(c[0].recv(received[0], 1, "w"))
        await asyncio.sleep(0)
        cancelled.cancel()  # it has taken the message over, and gives it back
        assert isinstance((await each(cancelled))[0], asyncio.CancelledError)
        c[0].recv_blocking(received[0], 1, "w")
        assert await c[0].recv_any({"w": received[1]}, 1) == "w"
        assert [list(tensor) for tensor in received] == [[1.0, 1.0], [2.0, 2.0]]
        await asyncio.gather(c[1].send(np.full(2, 4.0), 0, "w"), c[0].recv(received[0], 1, "w"))
        assert list(received[0]) == [4.0, 4.0]

    in_worlds(3, master.port if backend == "pccl" else free_port, body, backend=backend)


def test_a_cancelled_collective(master: Master) -> None:
    """It is given up at all of its members, which get an error and keep their world."""

    async def body(*c: WorldCommunicator) -> None:
        tasks = [asyncio.create_task(c[rank].all_reduce(np.zeros(1), world_name="w")) for rank in (0, 1)]
        await asyncio.sleep(0)
        tasks[0].cancel()
        outcomes = await each(*tasks)
        assert isinstance(outcomes[0], asyncio.CancelledError)
        assert isinstance(outcomes[1], RankConnectionLost) and outcomes[1].cause is Cause.CANCELLED
        with pytest.raises(RankConnectionLost):
            await c[2].all_reduce(np.zeros(1), world_name="w")
        memories = [np.ones(1) for _ in range(3)]
        await asyncio.gather(*(c[rank].all_reduce(memories[rank], world_name="w") for rank in range(3)))
        assert memories[2][0] == 3.0

    in_worlds(3, master.port, body)


def test_more_than_the_library_takes_at_once(master: Master) -> None:
    """1,024 of a world may be unfinished: the rest waits for its turn, in the order of the calls, and ends with the world."""
    many = 1500

    async def body(*c: WorldCommunicator) -> None:
        received = [np.zeros(1) for _ in range(many)]
        receives = [asyncio.create_task(c[0].recv(tensor, 1, "w")) for tensor in received]
        await asyncio.sleep(0)
        sums = [[np.full(1, float(number)) for number in range(many)] for _ in c]
        await asyncio.gather(
            *receives,
            *(c[1].send(np.full(1, float(number)), 0, "w") for number in range(many)),
            *(c[rank].all_reduce(tensor, world_name="w") for rank in range(2) for tensor in sums[rank]),
        )
        assert [tensor[0] for tensor in received] == list(range(many))
        assert [tensor[0] for tensor in sums[0]] == [tensor[0] for tensor in sums[1]] == [2 * number for number in range(many)]
        receives = [asyncio.create_task(c[0].recv(tensor, 1, "w")) for tensor in received]
        await asyncio.sleep(0)
        receives[-1].cancel()  # it has not been launched
        c[1].remove_world("w")
        outcomes = await each(*receives)
        assert isinstance(outcomes.pop(), asyncio.CancelledError)
        assert all(isinstance(outcome, BrokenWorldException) for outcome in outcomes)

    in_worlds(2, master.port, body)


def test_waiting_costs_nothing(master: Master) -> None:
    """No loop spins while an operation is awaited."""

    async def body(*c: WorldCommunicator) -> None:
        waiting = [asyncio.create_task(c[0].recv(np.zeros(1), 1, "w")) for _ in range(10)]
        threads = threading.active_count()
        before, begun = time.process_time(), time.monotonic()
        await asyncio.sleep(1.0)
        assert time.process_time() - before < 0.5 * (time.monotonic() - begun)
        assert threading.active_count() == threads
        for _ in waiting:
            await c[1].send(np.zeros(1), 0, "w")
        await asyncio.gather(*waiting)

    in_worlds(2, master.port, body)


# -- Several worlds at once --


def test_recv_any(master: Master) -> None:
    """What comes first is taken first, whatever is posted elsewhere; nothing is lost, also when the wait is cancelled."""

    async def body(*c: WorldCommunicator) -> None:
        tensors = {name: np.zeros(1) for name in ("a", "b", "c")}

        async def sent(name: str, value: float) -> str:
            _, came = await asyncio.gather(c[1].send(np.full(1, value), 0, name), c[0].recv_any(tensors, 1))
            return came

        for step, name in enumerate("bbacba"):
            assert await sent(name, float(step)) == name
            assert tensors[name][0] == step
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(c[0].recv_any(tensors, 1), 0.05)
        await c[1].send(np.full(1, 8.0), 0, "c")  # the receive is posted still: the message arrives
        await c[1].send(np.full(1, 9.0), 0, "a")
        assert [await c[0].recv_any(tensors, {"a": 1, "b": 1, "c": 1}) for _ in range(2)] == ["c", "a"]
        assert (tensors["c"][0], tensors["a"][0]) == (8.0, 9.0)
        with pytest.raises(ValueError, match="another tensor"):
            await c[0].recv_any({"b": np.zeros(1)}, 1)
        with pytest.raises(ValueError, match="src has no rank for a, b; pass one for each world"):
            await c[0].recv_any(tensors, {"c": 1})

    in_worlds(2, master.port, body, ("a", "b", "c"))


def test_recv_any_with_a_world_that_ends(master: Master) -> None:
    """It is named, waiting or not; without it the others go on, and with its successor of the same name."""

    async def body(*c: WorldCommunicator) -> None:
        tensors = {name: np.zeros(1) for name in ("a", "b")}
        waiting = asyncio.create_task(c[0].recv_any(tensors, 1))
        await asyncio.sleep(0.01)
        c[1].remove_world("a")
        with pytest.raises(BrokenWorldException) as caught:
            await waiting
        assert (caught.value.world_name, caught.value.peer) == ("a", 1)
        with pytest.raises(BrokenWorldException):
            await c[0].recv_any(tensors, 1)
        _, came = await asyncio.gather(c[1].send(np.full(1, 3.0), 0, "b"), c[0].recv_any({"b": tensors["b"]}, 1))
        assert came == "b" and tensors["b"][0] == 3.0
        waiting = asyncio.create_task(c[0].recv_any({"b": tensors["b"]}, 1))
        await asyncio.sleep(0.01)
        c[0].remove_world("b")
        with pytest.raises(BrokenWorldException):
            await waiting
        await enter([communicator._manager for communicator in c], master.port, "a")
        tensors["a"] = np.zeros(1)
        _, came = await asyncio.gather(c[1].send(np.full(1, 4.0), 0, "a"), c[0].recv_any({"a": tensors["a"]}, 1))
        assert came == "a" and tensors["a"][0] == 4.0

    in_worlds(2, master.port, body, ("a", "b"))


def test_many_worlds_at_once(master: Master) -> None:
    """Forty, begun in opposite orders, and all busy at once."""
    names = [f"w{number}" for number in range(40)]

    async def run() -> None:
        managers = [WorldManager(), WorldManager()]
        await asyncio.gather(
            *(managers[0].initialize_world(name, 0, 2, "pccl", port=master.port) for name in names),
            *(managers[1].initialize_world(name, 1, 2, "pccl", port=master.port) for name in reversed(names)),
        )
        memories = {name: (np.full(3, float(n)), np.full(3, 1.0)) for n, name in enumerate(names)}
        await asyncio.gather(*(
            managers[rank].communicator.all_reduce(memories[name][rank], world_name=name) for name in names for rank in (0, 1)
        ))
        assert all(list(memories[name][1]) == [n + 1.0] * 3 for n, name in enumerate(names))
        for manager in managers:
            manager.cleanup()

    asyncio.run(asyncio.wait_for(run(), SECONDS))


# -- Threads --


def test_blocking_twins(master: Master) -> None:
    """Each call has a form for threads, none of which needs an event loop."""

    def member(rank: int) -> None:
        manager = WorldManager()
        c = manager.communicator
        manager.initialize_world_blocking("w", rank, 2, "pccl", port=master.port)
        manager.initialize_world_blocking("v", rank, 2, "pccl", port=master.port)
        memory, pair = np.full(2, rank + 1.0), [np.zeros(2), np.zeros(2)]
        c.all_reduce_blocking(memory, world_name="w")
        assert list(memory) == [3.0, 3.0]
        memory[:] = rank
        c.reduce_blocking(memory, 1, ReduceOp.SUM, "w")
        assert list(memory) == [rank, rank]  # 0 + 1 at rank 1
        c.broadcast_blocking(memory, 1, "w")
        assert list(memory) == [1.0, 1.0]
        memory[:] = rank
        c.all_gather_blocking(pair, memory, "w")
        assert [list(part) for part in pair] == [[0.0, 0.0], [1.0, 1.0]]
        c.gather_blocking(memory, pair if rank == 0 else None, 0, "w")
        c.scatter_blocking(memory, pair if rank == 0 else None, 0, "w")
        assert list(memory) == [rank, rank]
        if rank == 0:
            c.send_blocking(np.full(2, 7.0), 1, "w")
            tensors = {name: np.zeros(2) for name in ("w", "v")}
            assert {c.recv_any_blocking(tensors, 1), c.recv_any_blocking(tensors, 1)} == {"v", "w"}
            assert tensors["w"][0] == 8.0 and tensors["v"][0] == 9.0
            c.send_blocking(memory, 1, "w")  # from now on it may go
        else:
            c.recv_blocking(memory, 0, "w")
            assert memory[0] == 7.0
            c.send_blocking(np.full(2, 9.0), 0, "v")
            c.send_blocking(np.full(2, 8.0), 0, "w")
            c.recv_blocking(memory, 0, "w")
        if rank == 0:
            with pytest.raises(BrokenWorldException, match="lost rank 1"):
                c.recv_blocking(memory, 1, "w")
        else:
            c.remove_world("w")
        manager.cleanup()

    together(2, member)


def test_loops_of_several_threads(master: Master) -> None:
    """One manager, of which several loops use the worlds."""
    manager, other = WorldManager(), WorldManager()

    def in_loop(rank: int) -> None:
        async def run() -> None:
            mine = (manager, other)[rank]
            await mine.initialize_world("w", rank, 2, "pccl", port=master.port)

        asyncio.run(run())

    together(2, in_loop)

    def exchange(number: int) -> None:
        async def run() -> None:
            if number % 2:
                await manager.communicator.recv(np.zeros(1), 1, "w")
            else:
                await other.communicator.send(np.zeros(1), 0, "w")

        asyncio.run(run())

    together(6, exchange)
    manager.cleanup()
    other.cleanup()
