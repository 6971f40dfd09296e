"""Ranks that meet over a board: what a rank makes of records of the past, of newer ones, and of a board that goes away."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import threading
import time
from typing import Callable, Optional

import pytest
from support.master import Master
from support.worlds import together

from pccl.engine import World, meeting
from pccl.engine.meeting import Record, follow, lead
from pccl.errors import MasterConnectionFailed, OperationTimeout


class InMemory:
    """A board of this process; `looked` is called before each look, and may raise, or post."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.looks = 0
        self.looked: Optional[Callable[[int], None]] = None

    def post(self, record: Record) -> None:
        self.records.append(record)

    def newest(self, known: int) -> int:
        self.looks += 1
        if self.looked is not None:
            self.looked(self.looks)
        return max(known, len(self.records))

    def read(self, number: int) -> Record:
        return self.records[number - 1]


def entering(rank: int, size: int, seconds: float) -> Callable[[Record], World]:
    return lambda record: World(record.master, name=record.world, size=size, rank=rank, formation_timeout=seconds)


def ends(world: World) -> int:
    """Its size; leaves when all have it."""
    size = world.size
    world.barrier().wait()
    world.destroy()
    return size


def followed(board: InMemory, seconds: float, rank: int = 1) -> World:
    return follow(board, rank, time.monotonic() + seconds, entering(rank, 2, seconds), KeyError("nobody"))[0]


def test_a_rank_that_tries_the_past_goes_to_what_is_newer(master: Master) -> None:
    board = InMemory()
    board.post(Record(master.address, "a world that nobody else comes to"))
    tries = threading.Event()
    board.looked = lambda looks: tries.set() if looks > 2 else None

    def rank(number: int) -> int:
        if number == 1:
            return ends(followed(board, 30))
        assert tries.wait(30)
        return ends(lead(board, master.address, False, "x", entering(0, 2, 30))[0])

    assert together(2, rank) == [2, 2]


def test_a_board_that_goes_away_meanwhile_is_not_needed(master: Master) -> None:
    board = InMemory()
    gone = threading.Event()

    def looked(looks: int) -> None:
        if looks > 2:
            gone.set()
            raise ConnectionError("the board has gone")

    board.looked = looked

    def rank(number: int) -> int:
        if number == 1:
            return ends(followed(board, 30))
        assert gone.wait(30)
        return ends(meeting.connected(entering(0, 2, 30)(board.records[0])))

    board.post(Record(master.address, "it goes away"))
    assert together(2, rank) == [2, 2]


def test_how_a_record_that_came_later_fails_is_the_answer_at_once(master: Master) -> None:
    """Nothing newer is waited for."""
    board = InMemory()
    board.looked = lambda looks: board.post(Record(master.address, "alone")) if looks == 2 else None
    with pytest.raises(OperationTimeout, match="have not come in time: 0"):
        follow(board, 1, time.monotonic() + 60, entering(1, 2, 0.5), KeyError("nobody"))


def test_a_record_that_was_there_leads_nowhere_and_nothing_comes(master: Master, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meeting, "_PAST", 0.2)
    board = InMemory()
    with Master() as past:
        board.post(Record(past.address, "gone with its master"))
    enter = entering(1, 2, 30)

    def entering_soon(record: Record) -> World:
        world = enter(record)
        world.set_connect_timeout(0.2)
        return world

    with pytest.raises(MasterConnectionFailed):
        follow(board, 1, time.monotonic() + 60, entering_soon, KeyError("nobody"))


def test_a_record_that_was_there_leads_nowhere_and_a_newer_one_comes(master: Master) -> None:
    """The failure of an old record is not the result."""
    board, failed = InMemory(), threading.Event()
    with Master() as past:
        board.post(Record(past.address, "gone before a newer one"))

    class Gone(World):
        def destroy(self) -> None:
            super().destroy()
            failed.set()

    def enter(record: Record) -> World:
        if record.master == master.address:
            return entering(1, 2, 30)(record)
        world = Gone(record.master, name=record.world, size=2, rank=1, formation_timeout=30)
        world.set_connect_timeout(0.2)
        return world

    def rank(number: int) -> int:
        if number == 1:
            return ends(follow(board, 1, time.monotonic() + 30, enter, KeyError("nobody"))[0])
        assert failed.wait(30)
        return ends(lead(board, master.address, False, "newer/", entering(0, 2, 30))[0])

    assert together(2, rank) == [2, 2]


def test_a_board_with_nothing(master: Master) -> None:
    with pytest.raises(KeyError, match="nobody"):
        follow(InMemory(), 1, time.monotonic() + 0.2, entering(1, 2, 1), KeyError("nobody"))


def test_a_world_that_this_process_was_in_is_not_tried_again(master: Master) -> None:
    board = InMemory()

    def rank(number: int) -> int:
        if number == 1:
            return ends(followed(board, 30))
        return ends(lead(board, master.address, False, "once/", entering(0, 2, 30))[0])

    assert together(2, rank) == [2, 2]
    with pytest.raises(KeyError, match="nobody"):
        follow(board, 1, time.monotonic() + 0.2, entering(1, 2, 30), KeyError("nobody"))
