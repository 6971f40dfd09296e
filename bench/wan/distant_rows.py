"""distant_rows.py - what distant.py measures: a row for each network and size, and what is wanted of its figures.

A figure is the best of some implementations by one time over the best of others, within a round; sizes are those of the buffer.
SPDX-License-Identifier: MIT
"""
from dataclasses import dataclass

OURS, GLOO, MPI = "pccl", "Gloo", "Open MPI"
SOCKETS = (1, 4, 16, 64)
RAW = tuple(f"raw {n}" for n in SOCKETS)
FORCED = tuple(f"pccl {a}" for a in ("ring", "direct", "halving", "forest", "tiny"))
MB = 1 << 20


@dataclass(frozen=True)
class Goal:
    """(times of `over`) / (times of `under`), or seconds where `under` is empty; wanted: at least, or at most, that."""
    text: str
    over: tuple
    under: tuple = ()
    field: str = "warm_s"        # of both
    under_field: str = "warm_s"
    least: float | None = None
    most: float | None = None


@dataclass(frozen=True)
class Row:
    name: str
    text: str
    network: str
    bytes: int
    names: tuple                 # the implementations
    goals: tuple
    seconds: int                 # what a round takes, about
    calls: int = 5               # warm ones
    budget_s: float = 15         # for them
    congestion: str = "bbr"
    optimise: bool = False       # measure the links before the first call
    turns: int = 1               # of plain sockets in one call
    idle_s: float = 0
    state: bool = False          # not a sum: a state goes from all other hosts to the last one


def speed(least):
    return Goal("speed to best raw", RAW, (OURS,), least=least)


def gloo(least):
    return Goal("speed to Gloo", (GLOO,), (OURS,), least=least)


FIRST = Goal("first call to best raw, cold", (OURS,), RAW, "first_s", "first_s", most=1.3)
AFTER_IDLE = Goal("call after 60 s idle to warm", (OURS,), (OURS,), "idle_s", "warm_s", most=1.2)
ROUND_TRIP = Goal("time to a round trip", (OURS,), ("raw 1",), most=1.05)
BESIDE = (OURS, *RAW, GLOO, MPI)


def drawn(name, text, network, ring=None):
    """Links measured, and all algorithms that sum."""
    goals = [Goal("time to the fastest one forced", (OURS,), FORCED, most=1.05)]
    if ring is not None:
        goals.append(Goal("speed to the ring", ("pccl ring",), (OURS,), least=ring))
    return Row(name, text, network, 16 * MB, (OURS, *FORCED), tuple(goals), 330, optimise=True)


ROWS = (
    Row("small-2", "2 peers, 1 Gb/s, 100 ms", "pair", 4, (OURS, "raw 1", GLOO, MPI), (ROUND_TRIP,), 25, calls=20, turns=2),
    Row("small-4", "4 peers, 1 Gb/s, 100 ms", "four", 4, (OURS, "raw 1", GLOO, MPI), (ROUND_TRIP,), 30, calls=20, turns=2),
    Row("64m-loss-0", "2 peers, 1 Gb/s, 100 ms, BBR", "pair", 64 * MB, BESIDE, (speed(0.70), FIRST), 130),
    Row("64m-loss-0.1", "2 peers, 1 Gb/s, 100 ms, BBR, loss 0.1 %", "pair_lossy", 64 * MB, BESIDE, (speed(0.70), FIRST, gloo(10)), 200),
    Row("64m-loss-1", "2 peers, 1 Gb/s, 100 ms, BBR, loss 1 %", "pair_percent", 64 * MB, BESIDE, (speed(0.70), FIRST), 240),
    Row("256m-loss-0", "2 peers, 1 Gb/s, 100 ms, BBR", "pair", 256 * MB, (OURS, *RAW), (speed(0.87), FIRST), 110),
    Row("256m-loss-0.1", "2 peers, 1 Gb/s, 100 ms, BBR, loss 0.1 %", "pair_lossy", 256 * MB, (OURS, *RAW), (speed(0.87), FIRST), 120),
    Row("256m-loss-1", "2 peers, 1 Gb/s, 100 ms, BBR, loss 1 %", "pair_percent", 256 * MB, (OURS, *RAW), (speed(0.75), FIRST), 130),
    Row("cubic", "2 peers, 1 Gb/s, 100 ms, CUBIC, loss 0.1 %", "pair_lossy", 16 * MB, BESIDE,
        (Goal("speed to raw 64", ("raw 64",), (OURS,), least=0.85), FIRST, gloo(10)), 280,
        congestion="cubic"),
    Row("four-64m", "4 peers, 1 Gb/s, 100 ms, BBR", "four", 64 * MB, BESIDE, (speed(0.70), FIRST), 150),
    Row("four-256m", "4 peers, 1 Gb/s, 100 ms, BBR", "four", 256 * MB, (OURS, *RAW), (speed(0.80), FIRST), 170),
    Row("quick", "2 peers, 2.5 Gb/s, 40 ms, BBR", "pair_quick", 256 * MB, (OURS, *RAW), (speed(0.75), FIRST), 60),
    Row("seed-004", "4 sites, rates of seed 004, links measured", "seed_004", 64 * MB, (OURS, *FORCED, GLOO, MPI),
        (Goal("seconds", (OURS,), most=2.0), Goal("time to the fastest one forced", (OURS,), FORCED, most=1.05),
         Goal("speed to the ring", ("pccl ring",), (OURS,), least=3), gloo(7)), 330, optimise=True),
    drawn("network-a", "8 peers, 125 Mb/s, 100 ms", "network_a"),
    drawn("network-b", "4 peers, 23 Mb/s, and 4, 230 Mb/s, 100 ms", "network_b", 1.6),
    drawn("network-c", "3 sites of 3, 20 Mb/s from peer to peer, 100 ms", "network_c", 5),
    drawn("network-d", "3 sites of 3, 60 Mb/s from site to site, 100 ms", "network_d", 1.2),
    drawn("network-p", "3 sites of 4, lines drawn from a Pareto distribution, loss 0.1 %", "network_p"),
    # 1 GiB at 0.8 of what 1 Gb/s carries, 954 Mb/s
    Row("state", "2 holders and a newcomer, 1 Gb/s, 100 ms", "three", 1024 * MB, (OURS,), (Goal("seconds", (OURS,), most=11.25),), 80,
        state=True),
    Row("idle", "2 peers, 1 Gb/s, 100 ms, BBR", "pair", 64 * MB, (OURS,), (AFTER_IDLE,), 75, idle_s=60),
    Row("idle-cubic", "2 peers, 1 Gb/s, 100 ms, CUBIC, loss 0.1 %", "pair_lossy", 16 * MB, (OURS,), (AFTER_IDLE,), 80,
        congestion="cubic", idle_s=60),
)
