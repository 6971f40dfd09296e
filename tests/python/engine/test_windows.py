"""Windows of the engine: bytes put, read, counted and signalled, and their rights."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import gc

import numpy as np
import pytest
import torch
from support.master import Master
from support.ranks import Rank
from support.worlds import in_world

from pccl.engine import Operation, Window, World
from pccl.errors import InvalidArgument, InvalidUsage, OperationTimeout
from pccl.types import DataType, WindowRights


@pytest.mark.parametrize("own", [True, False])
def test_each_reaches_the_memory_of_the_others(master: Master, own: bool) -> None:
    """Bytes at another place or of another member, a count that is lost, a signal before its bytes."""

    def member(world: World) -> None:
        rank, size = world.rank, world.size
        memory = np.zeros(8, np.int64) if own else None
        window = Window(world, memory, 0 if own else 64)
        right = (rank + 1) % size
        window.put(np.arange(3) + 10 * rank, right, 16).wait()
        window.signal(right).wait()
        left = (rank - 1) % size
        window.wait_signal(left, 30).wait()
        mine = memory if memory is not None else np.frombuffer(window.view(rank), np.int64)
        assert (mine[2:5] == np.arange(3) + 10 * left).all()
        for _ in range(10):
            window.fetch_add(rank + 1, 0, 0)[0].wait()
        world.barrier().wait()
        total = np.zeros(1, np.int64)
        window.get(total, 0).wait()
        assert total[0] == 10 * sum(range(1, size + 1))
        operation, before = window.compare_swap(0, rank + 1, right, 8)
        operation.wait()
        assert before[0] == 0
        world.barrier().wait()
        assert mine[1] == left + 1
        assert window.part(right).nbytes == 64 and window.part(right).rank == right and not window.part(right).lost
        window.destroy()
        with pytest.raises(InvalidUsage, match="window was destroyed"):
            window.signal(0)

    in_world(master.address, 3, member)


def test_rights_and_bounds_are_kept(master: Master) -> None:
    """A write into memory that is only to be read."""

    def member(world: World) -> None:
        window = Window(world, None, 16, WindowRights.READ)
        other = 1 - world.rank
        with pytest.raises(InvalidArgument):
            window.put(np.ones(1), other).wait()
        with pytest.raises(InvalidArgument):
            window.get(np.ones(3), other).wait()
        with pytest.raises(InvalidArgument, match="FLOAT is none of INT32"):
            window.fetch_add(1, other, 0, DataType.FLOAT)
        view = window.view(other)
        if view is not None:
            assert view.readonly and len(view) == 16
        for timeout in (0.05, 0):  # 0 is a limit, too
            with pytest.raises(OperationTimeout):
                window.wait_signal(other, timeout).wait(30)
        world.barrier().wait()
        window.destroy()

    in_world(master.address, 2, member)


def test_what_was_made_of_a_view_outlives_its_window(master: Master) -> None:
    """Memory that is not mapped any more, which would end the interpreter; of a process of its own."""

    def member(world: World) -> None:
        rank = world.rank
        ours, own = Window(world, nbytes=8192), Window(world, bytearray([rank] * 16))
        views = [view for view in (ours.view(0), ours.view(1)) if view is not None]  # of the other's none where it cannot be mapped
        mine = own.view(rank)
        assert mine is not None
        ours.put(np.full(8192, 7, np.uint8), 1 - rank).wait()
        world.barrier().wait()
        arrays = [np.frombuffer(view, np.uint8)[4090:8000] for view in views]
        later = torch.frombuffer(mine[8:], dtype=torch.uint8)
        ours.destroy()
        own.destroy()
        world.barrier().wait()
        del views, mine, ours, own
        gc.collect()
        for array in arrays:
            assert (array == 7).all()
        world.barrier().wait()
        for array in arrays:
            array[:] = 9
            assert array.sum() == 9 * array.size
        assert later.tolist() == [rank] * 8

    Rank(in_world, (master.address, 2, member), {}).result()


def test_any_number_of_waits_for_signals_is_open_at_once(master: Master, monkeypatch: pytest.MonkeyPatch) -> None:
    """A launch that asks for the end of each that is open; waits that take the room of the signals that they wait for, of the other side's
    or their own."""
    many = 2500
    asked, done = [0], Operation.done

    def ask(self: Operation) -> bool:
        asked[0] += 1
        return done(self)

    monkeypatch.setattr(Operation, "done", ask)

    def member(world: World) -> None:
        window = Window(world, np.zeros(2))
        other = 1 - world.rank
        waits = [window.wait_signal(other, 60) for _ in range(many)]
        world.barrier().wait()
        assert not any(wait.ended for wait in waits)
        for _ in range(many):
            window.signal(other).wait()
        for wait in waits[::-1] if world.rank else waits:
            wait.wait()
        world.barrier().wait()
        assert not world._flying
        window.destroy()

    in_world(master.address, 2, member)
    assert asked[0] < 2 * 3 * many
