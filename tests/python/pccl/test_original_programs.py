"""Programs as they were written for the original's package run, and every number is checked at every step.

PCCL_STRESS_SECONDS makes the two stress patterns longer (8 h of the original's: 28800); PCCL_STRESS_SEED begins with another draw.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import os
import queue
import random
import signal
import threading
import time
from pathlib import Path
from typing import Optional

import pytest

from support.master import Master
from support.programs import Program

PROGRAMS = Path(__file__).parent / "programs"
SECONDS = float(os.environ.get("PCCL_STRESS_SECONDS", "12"))
SEED = int(os.environ.get("PCCL_STRESS_SEED", "1"))


@pytest.mark.parametrize("peers", [2, 3])
def test_a_quantised_asynchronous_loop_of_1000_steps(master: Master, peers: int) -> None:
    """All peers have the same bits in the end, and each result was as near to the exact sum as one quantisation of each input allows."""
    programs = [Program(PROGRAMS / "quantized_loop.py", master.address, slot, peers, 1000) for slot in range(peers)]
    try:
        for program in programs:
            program.succeeds()
        assert len({program.said[-1] for program in programs}) == 1 and programs[0].said[-1].startswith("digest ")
    finally:
        for program in programs:
            program.kill()


class Churn:
    """Peers that come and are killed at random moments, which are counted in steps that some peer has made, not in time."""

    def __init__(self, program: str, address: str, most: int, seed: int) -> None:
        self.program = program
        self.address = address
        self.most = most
        self.draw = random.Random(seed)
        self.peers: dict[int, Program] = {}  # by slot
        self.steps: "queue.Queue[tuple[int, Optional[str]]]" = queue.Queue()
        self.seen: set[int] = set()  # world sizes that were reduced with
        self.last = 0

    def spawn(self) -> None:
        slot = self.draw.choice([slot for slot in range(self.most) if slot not in self.peers])
        peer = self.peers[slot] = Program(PROGRAMS / self.program, self.address, slot)
        threading.Thread(target=self._follow, args=(slot, peer), daemon=True).start()

    def _follow(self, slot: int, peer: Program) -> None:
        while True:
            line = peer.line()
            if line is None and self.peers.get(slot) is not peer:
                return  # it was killed
            self.steps.put((slot, line))
            if line is None:
                return

    def kill(self) -> None:
        slot = self.draw.choice(list(self.peers))
        self.peers.pop(slot).kill()

    def proceed(self, steps: int) -> None:
        """Until somebody has made so many steps more than anybody had."""
        until = self.last + steps
        while self.last < until:
            slot, line = self.steps.get(timeout=60)
            assert line is not None and line.startswith("step "), f"peer {slot} ended: {self.what_was_said(slot)}"
            words = line.split()
            self.last = max(self.last, int(words[1]))
            self.seen.add(words[3].count("1"))

    def what_was_said(self, slot: int) -> list[str]:
        peer = self.peers[slot]
        peer.process.wait(timeout=60)
        return peer.said[-20:]

    def go_on_for(self, seconds: float) -> int:
        """Returns how often somebody came or was killed."""
        changes = 0
        self.spawn()
        self.spawn()
        until = time.monotonic() + seconds
        while time.monotonic() < until or changes < 10:
            self.proceed(self.draw.randint(1, 10))
            wanted = self.draw.randint(2, self.most)
            if len(self.peers) < wanted:
                self.spawn()
            elif len(self.peers) > 2:
                self.kill()
            changes += 1
        while len(self.peers) < 2:
            self.spawn()
        self.proceed(10)
        return changes

    def end(self) -> None:
        while self.peers:
            self.kill()


@pytest.mark.timeout(SECONDS + 120)
@pytest.mark.parametrize("program, most", [("churn_peer.py", 10), ("overlap_peer.py", 6)])
def test_peers_come_and_are_killed_at_random_and_no_step_is_wrong(master: Master, program: str, most: int) -> None:
    churn = Churn(program, master.address, most, SEED)
    try:
        changes = churn.go_on_for(SECONDS)
    finally:
        churn.end()
    print(f"{program}: {changes} changes, {churn.last} steps, with {sorted(churn.seen)} peers")
    assert max(churn.seen) >= 3 and churn.last > 50


def test_a_peer_that_was_stopped_for_long_comes_back_by_connecting_again() -> None:
    """The original has no limit of time at all: a stopped peer would stop the run for ever."""
    source = """
import sys, numpy
import pccl
communicator = pccl.Communicator(sys.argv[1])
communicator.connect()
print("in")
while True:
    try:
        communicator.update_topology()
        if communicator.get_attribute(pccl.Attribute.GLOBAL_WORLD_SIZE) > 1:
            one = numpy.ones(4)
            communicator.all_reduce(one, one, op=pccl.ReduceOp.SUM)
            print("sum", one.tolist())
    except pccl.MasterConnectionFailed as error:
        print("excluded", error.cause.name)
        communicator.connect(n_attempts=30)
        print("in again")
    except pccl.PCCLError as error:
        assert error.result in (
            pccl.Result.RANK_CONNECTION_LOST, pccl.Result.TOO_FEW_PEERS, pccl.Result.UPDATE_TOPOLOGY_FAILED,
        ), error
"""
    with Master(0, "--dead-ms", "500") as master, Program(source, master.address) as first:
        first.until("in")
        with Program(source, master.address) as second:
            second.until("sum [2.0")
            second.signal(signal.SIGSTOP)
            with Program(source, master.address) as third:  # comes in, so the others have gone on
                third.until("sum [2.0")
                second.signal(signal.SIGCONT)
                second.until("excluded")
                second.until("in again")
                second.until("sum [3.0")
                first.until("sum [3.0")
