"""How the ranks of a world find each other: rank 0 posts the master's address and the world's name on a board; the others read it.

A record has a number that each attempt increments, and each attempt's world has a name of its own.  A board may outlive a job: a record
from before a rank came may belong to an earlier job, whose world nobody enters.  So the rank tries it, and polls for a newer number
meanwhile: a restarted job never meets its own past.  A record posted later is of this job, and its failure is the result.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import secrets
import time
from typing import Any, Callable, NamedTuple, Optional, Protocol

from pccl.engine.world import World
from pccl.errors import PCCLError, make_error
from pccl.types import Cause, Result

_FIRST_LOOK, _LONGEST_LOOK = 0.005, 0.2  # seconds between two looks at the board
_PAST = 30.0   # how long a record that was there before may turn out to be of the past, once it has led nowhere
_GRACE = 5.0   # that a master has to say that the time is over
_OWN_MASTER_SECONDS = 1.0  # that members wait for a lost master of their own, when they need it: nobody starts it again

#: Worlds, by name, that this process was in, or tried to be in, with its rank.  Several ranks of a world may be threads of one process.
_tried: set[tuple[str, int]] = set()


class Record(NamedTuple):
    """The record that rank 0 posts."""

    master: str  #: "host:port"
    world: str   #: its name there
    own: bool = False  #: a member has started the master, which ends with the job: once lost it does not come back


class Board(Protocol):
    """A store of any kind that all ranks can read."""

    def post(self, record: Record) -> None:
        """Under a number that nobody had before, and is greater than all."""

    def newest(self, known: int) -> int:
        """The highest number that something stands under, or will at once, by a glance; `known` if there is none above."""

    def read(self, number: int) -> Record:
        """The record of this number; may wait for it."""


#: Makes the world of a record, which is not connected yet.
Enter = Callable[[Record], World]


def world_of(where: Record, **parameters: Any) -> World:
    """The world that a record tells of, not connected; `parameters` are `World`'s."""
    world = World(where.master, name=where.world, **parameters)
    if where.own:
        world.set_master_loss_timeout(_OWN_MASTER_SECONDS)
    return world


def lead(board: Board, master: str, own: bool, prefix: str, enter: Enter) -> tuple[World, Record]:
    """Rank 0's part: a new world, connected, of a name that begins so, and nobody had before; `own`: it has started the master."""
    record = Record(master, prefix + secrets.token_hex(16), own)
    board.post(record)
    return connected(enter(record)), record


def follow(board: Board, rank: int, until: float, enter: Enter, nobody: Exception) -> tuple[World, Record]:
    """The part of each other `rank`.  Raises why the world has not come to be before `until`, of the monotonic clock; `nobody`, if rank 0 posted none."""
    past = board.newest(0)
    number, limit = 0, until
    failure: Optional[PCCLError] = None
    while number := _newer(board, number, limit, failure):
        record = board.read(number)
        if (record.world, rank) in _tried:
            continue
        _tried.add((record.world, rank))
        world = enter(record)
        try:
            if _connected(world, board, number, until):
                return world, record
        except PCCLError as error:
            world.destroy()
            if number > past:
                raise
            failure, limit = error, min(until, time.monotonic() + _PAST)
        except BaseException:
            world.destroy()
            raise
        else:
            world.destroy()
    raise failure or nobody


def connected(world: World) -> World:
    """The same; or it is destroyed, and why is raised."""
    try:
        world.connect()
    except BaseException:
        world.destroy()
        raise
    return world


def _connected(world: World, board: Board, number: int, until: float) -> bool:
    """Whether the world has begun; given up when something newer is posted.  PCCLError: it will not begin."""
    operation = world.connect_async()
    look, there = _FIRST_LOOK, True
    while not operation.wait(look):
        look = min(look * 1.5, _LONGEST_LOOK)
        if time.monotonic() >= until + _GRACE:
            raise make_error(Result.RANK_CONNECTION_LOST, "connect", "timed out: the master gives no word; look whether it runs", Cause.DEADLINE)
        try:
            if there and board.newest(number) > number:
                return False
        except Exception:  # noqa: B902 - of any store: rank 0 has taken it away, as it is in, and so is everybody
            there = False
    return True


def _newer(board: Board, known: int, until: float, failure: Optional[PCCLError]) -> int:
    """The next number that something stands under; 0: none until then."""
    look = _FIRST_LOOK
    while True:
        try:
            newest = board.newest(known)
        except Exception as error:  # noqa: B902 - of any store
            raise failure or error
        if newest != known:
            return newest
        if time.monotonic() >= until:
            return 0
        time.sleep(look)
        look = min(look * 1.5, _LONGEST_LOOK)
