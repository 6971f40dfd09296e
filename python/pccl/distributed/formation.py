"""How a group's world comes to be: in the background of a program that already calls it.

`new_group` registers and returns; what is called meanwhile is launched, in the order of the calls, when the world has begun, and fails if it
never does.  So groups that members make in different orders do not wait for each other.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import math
import threading
import time
from typing import Callable, Optional

from pccl.distributed.deadlines import GRACE, look_by
from pccl.distributed.work import Work
from pccl.engine import World
from pccl.errors import make_error
from pccl.types import Cause, Result

#: Launches a work in the world that has begun.
Launch = Callable[[Work, World], None]


class Formation:
    """The world of a group, from the call that makes it on.  `world` is None until it has begun."""

    def __init__(self, make: Callable[[], World], launch: Launch, background: bool, seconds: float) -> None:
        """`make` returns the world, connected, or raises within so many `seconds`; in a thread of its own with `background`, where it is no
        longer waited for than that, else here, where it may raise."""
        self._prepare(launch)
        self._seconds = seconds
        if background:
            self._until = time.monotonic() + seconds + GRACE
            threading.Thread(target=self._form, args=(make,), name="pccl-formation", daemon=True).start()
            look_by(self, self._until)
        else:
            self._begin(make())

    def _prepare(self, launch: Launch) -> None:
        self.world: Optional[World] = None
        self.error: Optional[Exception] = None
        self._launch = launch
        self._lock = threading.RLock()  # what a work's callback calls comes in here again
        self._waiting: list[Work] = []
        self._over = threading.Event()
        self._closed = False

    @classmethod
    def none(cls, error: Exception, launch: Launch) -> "Formation":
        """The formation of a group without a world: all calls fail with `error`."""
        formation = cls.__new__(cls)
        formation._prepare(launch)
        formation._give_up(error)
        return formation

    def submit(self, work: Work) -> None:
        """Launches it now, or when the world has begun."""
        world = self.world
        if world is None:
            with self._lock:
                world, error = self.world, self.error
                if world is None and error is None:
                    work.postpone(self)
                    self._waiting.append(work)
                    return
        if world is None:
            work.end(error)
        else:
            self._launch(work, world)

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Whether the world has begun, or will not, before `timeout` seconds passed."""
        return self._over.wait(timeout)

    def look(self, now: float) -> float:
        """Closes it when its time has passed: the call that makes the world may still wait for a silent machine."""
        if self.over:
            return math.inf
        if now < self._until:
            return self._until
        text = f"timed out after {self._seconds:g} s: the group has not come to be; look whether all of its ranks, and the master, run"
        error = make_error(Result.RANK_CONNECTION_LOST, "process group", text, Cause.DEADLINE)
        threading.Thread(target=self.close, args=(error,), name="pccl-formation-over", daemon=True).start()  # it may call back
        return math.inf

    @property
    def over(self) -> bool:
        """Whether the world has begun, or will not."""
        return self._over.is_set()

    def close(self, error: Exception) -> Optional[World]:
        """Later calls fail with `error`.  Returns the world, if it has begun: the caller owns it now."""
        with self._lock:
            self._closed = True
            world, self.world = self.world, None
            self.error = error
        self._give_up(error)
        return world

    def _form(self, make: Callable[[], World]) -> None:
        try:
            world = make()
        except Exception as error:  # noqa: B902 - it is that of all that is called
            self._give_up(error)
            return
        self._begin(world)

    def _begin(self, world: World) -> None:
        with self._lock:
            if not self._closed:
                for work in self._waiting:
                    self._launch(work, world)
                self._waiting.clear()
                self.world = world
                self._over.set()
                return
        world.destroy()

    def _give_up(self, error: Exception) -> None:
        with self._lock:
            self.error = self.error or error
            waiting, self._waiting = self._waiting, []
        for work in waiting:
            work.end(error)
        self._over.set()
