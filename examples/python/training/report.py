"""What one peer tells the person who watches: each step's loss, peers and throughput, who came and went, and how it ended.

A peer that somebody started by hand prints it, and draws its chart.  One that `launch` has started sends it to the launcher, which
prints once what all peers say alike; and it does what the launcher's plan wants of it: it is held in the middle of the step in
which it is to be killed, or waits at the step from which on a newcomer is to be there, so that a plan means the same on a fast
machine and on a slow one.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import argparse
import dataclasses
import hashlib
import signal
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
    """Of a run with these options of `launch`: `unit` is what is counted ("step", "round"), `several` who takes part ("peers", "sites"),
    `what` is told the throughput of ("characters")."""

    def __init__(self, options: argparse.Namespace, pipe: Optional[Connection] = None, plan: Plan = Plan()) -> None:
        self.unit, self.several, self.what, self.every = options.unit, options.several, options.what, options.every
        self.plan = plan
        self._made = self._repeated = 0  # steps that are done, and those that it had to begin again
        self._pipe = pipe
        self._chart = Chart(f"loss over {self.unit}s", self.unit, "loss")
        self._members: Optional[dict[int, str]] = None
        self._first: Optional[int] = None
        self.begun = -1    # the step that it is at
        self._since = time.monotonic()

    def begin(self, step: int, communicator: Any = None) -> None:
        """A step begins, among the members of `communicator`, a `pccl.Communicator`; says who has come and gone since the last one."""
        if self._first is None:
            self._first = step
            self._since = time.monotonic()
        again, self.begun = step == self.begun, step
        self._repeated += again
        if again and communicator is not None:
            self.event(step, f"{self.unit} {step} begins again", all_say_so=True)
        if communicator is not None:
            self._who_is_there(step, {member.id: member.address for member in communicator.peers if not member.lost})

    def _who_is_there(self, step: int, members: dict[int, str]) -> None:
        before, self._members = self._members, members
        if before is None:
            self.event(step, f"begins with {self.unit} {step}, one of {len(members)}")
            return
        for change, ids in (("gone", before.keys() - members.keys()), ("come", members.keys() - before.keys())):
            for number in sorted(ids):
                where = (before if change == "gone" else members)[number]
                self.event(step, f"the peer at {where} has {change}, {len(members)} {self.several} from {self.unit} {step} on", all_say_so=True)

    def middle(self, step: int) -> None:
        """The peer is inside of a step; if it is to be killed there it says so, and waits for that."""
        if self._pipe is not None and 0 < step == self.plan.kill_at:
            self._pipe.send(("victim", step))
            signal.pause()

    def await_newcomer(self, step: int, knocks: Callable[[], bool]) -> bool:
        """Whether the plan has somebody join at this step; then it waits until `knocks` says that somebody is there."""
        if self._pipe is None or not 0 < step == self.plan.join_at:
            return False
        self._pipe.send(("host", step))
        while not knocks():
            time.sleep(0.02)
        return True

    def event(self, step: int, text: str, all_say_so: bool = False) -> None:
        """Something happened at that step, to this peer or to all."""
        if self._pipe is not None:
            self._pipe.send(("event", step, text, all_say_so))
        else:
            say(text)
            if self._first is not None and step != self._first:
                self._chart.mark(step, text)

    def step(self, step: int, peers: int, loss: float, count: int, more: str = "", seconds: Optional[float] = None) -> None:
        """A step is done: the mean loss of so many peers, which have made use of `count` characters, images, ... together, in so many
        seconds; None: since the last one was."""
        self._made += 1
        now = time.monotonic()
        seconds = now - self._since if seconds is None else seconds
        line = f"{self.unit} {step}: {peers} {self.several}, loss {loss:.4f}, {count / max(seconds, 1e-9):,.0f} {self.what}/s{more}"
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
        line = f"{self.unit}s {first} to {step - 1}: {self._made} made, {self._repeated} begun again; parameters {digits}"
        if self._pipe is not None:
            self._pipe.send(("end", first, step, digits, line, text))
            return
        say(f"{line}\n{text}\n{self._chart.text()}")
