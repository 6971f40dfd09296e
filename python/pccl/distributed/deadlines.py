"""Timeouts where the library alone does not keep them: all members abort an operation at its deadline.  A frozen member
does not answer until it counts as lost, after the stall time.

So a thread of the process reads, shortly before each deadline, the ranks that are waited for: the error's text names them.  Shortly after
the deadline it checks whether the operation has ended.  It sleeps until the nearest of these times, and is woken only for a nearer one.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import math
import os
import threading
import time
import weakref
from typing import Callable, Iterable, Optional, Protocol

from pccl.engine import Operation, World, completion
from pccl.errors import PCCLError
from pccl.types import Cause

#: Seconds after its deadline in which an operation ends by the library, if all of its members answer.
GRACE = 1.0
_ANSWER = 0.1  # seconds after its deadline in which an operation mostly ends
_MOST_AHEAD = 1.0  # seconds before a deadline that one looks for whom it waits
_LONGEST_SLEEP = 3600.0


class Watched(Protocol):
    """Something that has deadlines."""

    def look(self, now: float) -> float:
        """Does what is due at `now`, of the monotonic clock, and returns when to look again; inf: never."""


class _Watch:
    """The thread, from the first deadline on."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._watched: "weakref.WeakSet[Watched]" = weakref.WeakSet()
        self.next = math.inf  #: when it looks next
        self._thread: Optional[threading.Thread] = None

    def by(self, watched: Watched, when: float) -> None:
        """That is looked at by then."""
        with self._changed:
            self._watched.add(watched)
            if when < self.next:
                self.next = when
                self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name="pccl-deadlines", daemon=True)
                self._thread.start()

    def _serve(self) -> None:
        while True:
            with self._changed:
                while (rest := self.next - time.monotonic()) > 0:
                    self._changed.wait(min(rest, _LONGEST_SLEEP))
                self.next = math.inf
            self._look_at_all()

    def _look_at_all(self) -> None:
        with self._changed:
            watched = list(self._watched)
        for each in watched:
            completion.run(self._look, each)

    def _look(self, watched: Watched) -> None:
        when = watched.look(time.monotonic())
        with self._changed:
            self.next = min(self.next, when)


_watch = _Watch()


def look_by(watched: Watched, when: float) -> None:
    """Has the thread look at it by then."""
    _watch.by(watched, when)


def _begin_anew_in_child() -> None:
    global _watch
    _watch = _Watch()


os.register_at_fork(after_in_child=_begin_anew_in_child)


class Deadlines:
    """The deadlines of a group's operations."""

    def __init__(
        self, flying: Callable[[], Iterable[Operation]], give_up: Callable[[Operation], None], timed_out: Callable[[Operation], None],
    ) -> None:
        """`flying` returns what is under way.  `give_up` is told of an operation that nothing has ended, `timed_out` of one that has failed at
        its deadline; nobody may be waiting for it."""
        self._flying = flying
        self._give_up = give_up
        self._timed_out = timed_out
        self._watch: Optional[_Watch] = None  # that has been told of this
        self._late = ""  # who was waited for when a deadline was near

    def entered(self, operation: Operation) -> None:
        """Called when `operation` is in progress."""
        if operation.until - _MOST_AHEAD < _watch.next or self._watch is not _watch:
            self._watch = _watch
            look_by(self, operation.until - _ahead(operation))

    def look(self, now: float) -> float:
        nearest = math.inf
        for operation in self._flying():
            first, last = operation.until - _ahead(operation), operation.until + GRACE
            if now < first:
                nearest = min(nearest, first)
            elif last < math.inf and not operation.done():
                if now < operation.until:
                    self._late = waited_for(operation.world)
                answered = operation.until + _ANSWER
                if now < last:
                    nearest = min(nearest, answered if now < answered else last)
                else:
                    self._give_up(operation)
            elif operation.error is not None and operation.error.cause is Cause.DEADLINE:
                self._timed_out(operation)
        return nearest

    def late(self, operations: Iterable[Operation], given_up: bool) -> Optional[Operation]:
        """One that is beyond its timeout; or near to it, if another rank has `given_up` what it called a little earlier."""
        now = time.monotonic()
        return next((one for one in operations if now >= one.until - (_ahead(one) if given_up else 0.0)), None)

    def text(self, operation: Operation) -> str:
        """Why that has failed, which was beyond its timeout."""
        return f"timed out after {operation.timeout:g} s{self._late}"


def _ahead(operation: Operation) -> float:
    """How long before its deadline one looks for whom it waits."""
    return 0.0 if operation.timeout is None else min(_MOST_AHEAD, operation.timeout / 4)


def waited_for(world: World) -> str:
    """The ranks, or other events, that the world's calls wait for now, as a part of a sentence; "": none.

    If some ranks have not made a call that others have made, these ranks alone are named: the others wait for them, too.
    """
    try:
        ranks = {member.id: member.rank for member in world.members() if not member.is_self}
        waits = [wait for wait in world.waits() if wait.peer in ranks or not wait.peer]
    except PCCLError:
        return ""
    first = [wait for wait in waits if wait.phase == "launch"] or waits
    numbers = sorted({ranks.get(wait.peer, -1) for wait in first})
    return f", waiting for {' and '.join(f'rank {n}' if n >= 0 else 'the master' for n in numbers)}" if numbers else ""
