"""What one peer tells the person who watches: each step's loss, peers and throughput, who came and went, and how it ended.

A peer that somebody started by hand prints it, and draws its chart.  One that `launch` has started sends it to the launcher, which
prints once what all peers say alike; and it does what the launcher's plan wants of it: it is held in the middle of the step in
which it is to be killed, or waits at the step from which on a newcomer is to be there, so that a plan means the same on a fast
machine and on a slow one.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import dataclasses
import hashlib
import sys
import time
from multiprocessing.connection import Connection
from typing import Any, Callable, Iterable, Optional

import torch
from chart import Chart


@dataclasses.dataclass(frozen=True)
class Plan:
    """What shall happen to a peer: the step in which it is killed, and the one from which on a newcomer is there; 0: none."""

    kill_at: int = 0
    join_at: int = 0


def digest(tensors: Iterable[torch.Tensor]) -> str:
    """Twelve digits that are equal where all bits of the tensors are."""
    return hashlib.sha256(b"".join(tensor.detach().contiguous().numpy().tobytes() for tensor in tensors)).hexdigest()[:12]


def say(text: str) -> None:
    """A line in one piece, as several processes may have one output."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


class Report:
    """`name` is the peer's, `unit` what it counts ("step", "round"), `what` the things whose throughput is told ("characters")."""

    def __init__(self, name: str, unit: str, what: str, every: int, pipe: Optional[Connection] = None, plan: Plan = Plan()) -> None:
        self.name = name
        self.unit = unit
        self.what = what
        self.every = every
        self.plan = plan
        self.repeated = 0  # steps that it had to begin again
        self._pipe = pipe
        self._chart = Chart(f"loss over {unit}s", unit)
        self._members: Optional[dict[int, str]] = None
        self._first: Optional[int] = None
        self._begun = -1
        self._since = time.monotonic()

    def begin(self, step: int, communicator: Any = None) -> None:
        """A step begins, among the members of `communicator`, a `pccl.Communicator`; says who has come and gone since the last one."""
        if self._first is None:
            self._first = step
        if step == self._begun:
            self.repeated += 1
            self.event(step, f"begins {self.unit} {step} again")
        self._begun = step
        if communicator is not None:
            self._who_is_there(step, {member.id: member.address for member in communicator.peers})

    def _who_is_there(self, step: int, members: dict[int, str]) -> None:
        before, self._members = self._members, members
        if before is None:
            self.event(step, f"begins with {self.unit} {step}, one of {len(members)}")
            return
        for change, ids in (("gone", before.keys() - members.keys()), ("come", members.keys() - before.keys())):
            for number in sorted(ids):
                where = (before if change == "gone" else members)[number]
                self.event(step, f"the peer at {where} has {change}, {len(members)} peers from {self.unit} {step} on", all_say_so=True)

    def middle(self, step: int) -> None:
        """The peer is inside of a step; if it is to be killed there it waits for that."""
        if self._pipe is not None:
            self._pipe.send(("in", step))
            if 0 < step == self.plan.kill_at:
                self._pipe.recv()  # which never comes

    def await_newcomer(self, step: int, knocks: Callable[[], bool]) -> None:
        """Where the plan has somebody join at this step: waits until `knocks` says that somebody is there."""
        if self._pipe is not None and 0 < step == self.plan.join_at:
            while not knocks():
                time.sleep(0.02)

    def event(self, step: int, text: str, all_say_so: bool = False) -> None:
        """Something happened at that step, to this peer or to all."""
        if self._pipe is not None:
            self._pipe.send(("event", step, text, all_say_so))
        else:
            say(text)
            self._chart.mark(step, text)

    def step(self, step: int, peers: int, loss: float, count: int, more: str = "") -> None:
        """A step is done: the mean loss of so many peers, which have made use of `count` characters, images, ... together."""
        now = time.monotonic()
        line = f"{self.unit} {step}: {peers} peers, loss {loss:.4f}, {count / max(now - self._since, 1e-9):,.0f} {self.what}/s{more}"
        self._since = now
        if self._pipe is not None:
            self._pipe.send(("step", step, peers, loss, line))
            return
        self._chart.point("loss", step, loss)
        if step % self.every == 0:
            say(line)

    def end(self, step: int, digits: str, text: str = "") -> None:
        """All is done; `digits` stand for the bits that all peers should have, `text` is what all know in the end."""
        first = step if self._first is None else self._first
        line = f"{self.unit}s {first} to {step - 1}, {self.repeated} begun again, none lost; parameters {digits}"
        if self._pipe is not None:
            self._pipe.send(("end", first, step, digits, line, text))
            return
        say(f"{line}\n{text}\n{self._chart.text()}")
