"""The examples as a person runs them, with one member killed or frozen: its world's members are told, the other world does not notice."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import pathlib
import random
import re
import signal
from collections import defaultdict
from typing import Iterator

import pytest
from support.master import Master
from support.multiworld import Child, Children, run_script
from support.pages import programs

STEPS, PAUSE = 100, 0.02
STALL = 3.0         #: the package's own
BOUND = {signal.SIGKILL: 2.0, signal.SIGSTOP: STALL + 2.0}  #: until members are told: at once, or after the stall time
LONGEST_GAP = 2.0   #: of the world that goes on: below the stall time, and far above what a step takes on a machine with other work
KINDS = ("broadcast", "reduce", "all_reduce", "all_gather", "gather", "scatter")
SIZE = 3


@pytest.fixture
def children() -> Iterator[Children]:
    with Children() as running:
        yield running


def numbers(text: str) -> list[float]:
    return [float(number) for number in re.findall(r"\d+\.", text)]


def check_values(kind: str, world: str, members: list[Child], last: int) -> None:
    """Each step up to `last` has brought everybody what it should have, by what they printed."""
    said: dict[int, dict[tuple[int, str], list[float]]] = defaultdict(dict)
    for member in members:
        for _, found in member.find(rf"^{world} step (\d+) rank (\d): (sends|got|input|sum|gathered|scatters) (.*)"):
            said[int(found[1])][int(found[2]), found[3]] = numbers(found[4])
    for step in range(1, last + 1):
        words = said[step]
        inputs = [words.get((rank, "input"), []) for rank in range(SIZE)]
        if kind == "broadcast":
            assert len(words[0, "sends"]) == 3
            assert words[1, "got"] == words[2, "got"] == words[0, "sends"]
        elif kind == "scatter":
            assert [words[rank, "got"] for rank in range(SIZE)] == [words[0, "scatters"][3 * rank:3 * rank + 3] for rank in range(SIZE)]
        elif kind in ("reduce", "all_reduce"):
            total = [sum(parts) for parts in zip(*inputs)]
            assert all(words[rank, "sum"] == total for rank in range(1 if kind == "reduce" else SIZE)) and total
        else:
            whole = [number for part in inputs for number in part]
            assert all(words[rank, "gathered"] == whole for rank in range(1 if kind == "gather" else SIZE)) and len(whole) == 3 * SIZE


def longest_gap(child: Child, pattern: str) -> float:
    times = [when for when, _ in child.find(pattern)]
    return max(later - earlier for earlier, later in zip(times, times[1:]))


@pytest.mark.parametrize(
    ("kind", "harm"),
    [(kind, signal.SIGKILL) for kind in KINDS] + [(kind, signal.SIGSTOP) for kind in ("reduce", "all_gather", "scatter")],
    ids=lambda value: value.name if isinstance(value, signal.Signals) else value,
)
def test_collectives(kind: str, harm: signal.Signals, master: Master, children: Children) -> None:
    """Five processes, two worlds, one harmed at a seeded step: 100 right steps in the other world, without a long gap."""
    seeded = random.Random(f"{kind} {harm}")
    options = ("--port", master.port, "--pause", PAUSE, "--steps", STEPS, "--seed", seeded.randrange(1000))
    leader = children.example(f"{kind}/m8d.py", *options, "--worldinfo", "1,0", "--worldinfo", "2,0")
    workers = {(w, r): children.example(f"{kind}/m8d.py", *options, "--worldinfo", f"{w},{r}") for w in (1, 2) for r in (1, 2)}
    broken, rank, step = seeded.choice((1, 2)), seeded.choice((1, 2)), seeded.randint(5, 50)
    victim = workers.pop((broken, rank))
    whole = 3 - broken
    victim.wait_for(rf"world{broken} step {step} rank {rank}: done")
    when = victim.signal(harm)
    survivor = workers[broken, 3 - rank]
    for member in (leader, survivor):
        told, found = member.wait_for("^caught an exception: (.*)")
        assert found[1].startswith(f"world{broken} broken: lost rank {rank}: ")
        assert told - when < BOUND[harm]
    for member in (leader, *workers.values()):
        assert member.join() == 0, member.text()
    for member in (leader, workers[whole, 1], workers[whole, 2]):
        assert longest_gap(member, f"world{whole} .*: done with step") < LONGEST_GAP
        assert [int(found[1]) for _, found in member.find(rf"world{whole} .*: done with step: (\d+)")] == list(range(1, STEPS + 1))
    check_values(kind, f"world{whole}", [leader, workers[whole, 1], workers[whole, 2]], STEPS)
    last = max(int(found[1]) for _, found in leader.find(rf"world{broken} .*: done with step: (\d+)"))
    assert last < STEPS
    check_values(kind, f"world{broken}", [leader, survivor, victim], last - 1)


@pytest.mark.parametrize("harm", [signal.SIGKILL, signal.SIGSTOP], ids=["SIGKILL", "SIGSTOP"])
@pytest.mark.parametrize("leader_first", [True, False])
def test_messages(harm: signal.Signals, leader_first: bool, master: Master, children: Children) -> None:
    """One of two senders is harmed: the other's stream goes on, and its leader is told of the first."""
    options = ("--port", master.port, "--pause", PAUSE)
    leading = ("send_recv/m8d.py", *options, "--worldinfo", "1,0", "--worldinfo", "2,0")
    leader = children.example(*leading) if leader_first else None
    senders = [children.example("send_recv/m8d.py", *options, "--worldinfo", f"{world},1") for world in (1, 2)]
    leader = leader or children.example(*leading)
    for world in (1, 2):
        leader.wait_for(f"^received tensor.*1.* from rank 1 in world{world}")
    when = senders[0].signal(harm)
    told, _ = leader.wait_for("^caught an exception: world1 broken: lost rank 1: ")
    assert told - when < BOUND[harm]
    before = len(list(leader.find("received .* in world2")))
    leader.wait_for("received .* in world2", before + 20)
    assert longest_gap(leader, "received .* in world2") < LONGEST_GAP
    senders[1].signal(signal.SIGKILL)
    leader.wait_for("^caught an exception: world2 broken: ")
    leader.wait_for("^got out of the loop")
    assert leader.join() == 0, leader.text()


def test_a_sender_without_its_leader(master: Master, children: Children) -> None:
    """The other direction: senders are told that the leader is gone, and end in order."""
    options = ("--port", master.port, "--pause", PAUSE)
    senders = [children.example("send_recv/m8d.py", *options, "--worldinfo", f"{world},1") for world in (1, 2)]
    leader = children.example("send_recv/m8d.py", *options, "--worldinfo", "1,0", "--worldinfo", "2,0")
    for sender in senders:
        sender.wait_for("^sent tensor")
    leader.signal(signal.SIGKILL)
    for world, sender in zip((1, 2), senders):
        sender.wait_for(f"^caught an exception: world{world} broken: lost rank 0: ")
        sender.wait_for("^terminate sending")
        sender.wait_for("^got out of the loop")
        assert sender.join() == 0


def test_failover(master: Master, children: Children) -> None:
    """A worker is killed, and another one comes in its place: each picture is answered once, and rightly, and none waits for long."""
    pytest.importorskip("sklearn")
    options = ("--port", master.port, "--pause", 0.01, "--images", 400)
    leader = children.example("resnet/m8d.py", *options, "--plot", "", "--check", "--multihost", "--rank", 0)
    workers = {rank: children.example("resnet/m8d.py", *options, "--multihost", "--rank", rank) for rank in (1, 2)}
    leader.wait_for("^picture 20: .* by worker")
    workers[1].signal(signal.SIGKILL)
    leader.wait_for("^world1 has begun")
    leader.wait_for("^picture 60: .* by worker 2")
    workers[1] = children.example("resnet/m8d.py", *options, "--multihost", "--rank", 1)
    assert leader.join() == 0, leader.text()
    answers = [(int(found[1]), int(found[2])) for _, found in leader.find(r"^picture (\d+): \w+, by worker (\d)")]
    assert [number for number, _ in answers] == list(range(400))
    assert {by for _, by in answers[-2:]} == {1, 2}  # the new one takes its turns
    assert len(list(leader.find("^world1 has begun"))) == 2
    [(_, summary)] = leader.find(r"^400 pictures, ([\d.]+)% read rightly, [\d,]+ pictures/s, the longest took ([\d.]+) s")
    assert float(summary[1]) > 85 and float(summary[2]) < STALL
    marks = [found[1] for _, found in leader.find("^  [ab]: (.*)")]  # below the chart
    assert marks == ["worker 1 is lost", "worker 1 is there"]
    for worker in workers.values():
        worker.wait_for("broken: lost rank 0")
        assert worker.join() == 0


def test_one_host(master: Master, children: Children) -> None:
    """The leader that starts its workers itself."""
    pytest.importorskip("sklearn")
    leader = children.example("resnet/m8d.py", "--plot", "", "--port", master.port, "--pause", 0, "--images", 10, "--check")
    leader.wait_for("^10 pictures")
    assert leader.join() == 0, leader.text()


def test_one_host_whose_leader_is_interrupted(master: Master, children: Children) -> None:
    """It leaves its worlds, so that its workers end; it would wait for them."""
    pytest.importorskip("sklearn")
    leader = children.example("resnet/m8d.py", "--plot", "", "--port", master.port, "--pause", 0.1)
    leader.wait_for("^picture 3: ")
    leader.signal(signal.SIGINT)
    for worker in (1, 2):
        leader.wait_for(f"worker {worker}: caught an exception: world{worker} broken: lost rank 0")
    assert leader.join() != 0


def test_the_first_example_of_the_document(master: Master, children: Children, tmp_path: pathlib.Path) -> None:
    """As it stands there, but for the port: one sender is killed, the other's stream goes on."""
    program = programs("python/MULTIWORLD.md")[0]
    assert "port=29500" in program and "sleep(1)" in program
    path = tmp_path / "streams.py"
    path.write_text(program.replace("port=29500", f"port={master.port}").replace("sleep(1)", f"sleep({PAUSE})"))
    leader, *senders = (children.start(run_script, str(path), arguments) for arguments in ([], ["world1"], ["world2"]))
    leader.wait_for("^world1: 3.0$")
    senders[0].signal(signal.SIGKILL)
    leader.wait_for("^world1 broken: lost rank 1: ")
    assert senders[1].join() == 0, senders[1].text()
    assert leader.join() == 0, leader.text()
    assert [float(found[1]) for _, found in leader.find(r"^world2: (\d+\.\d)$")] == [float(number) for number in range(60)]


def test_single_world(children: Children, free_port: int) -> None:
    """The counter-example does what it is to show: what comes from the dead one is an exception each time, for ever."""
    options = ("--port", free_port, "--worldsize", SIZE, "--pause", PAUSE, "--multihost")
    leader, *others = (children.example("send_recv/single_world.py", *options, "--rank", rank) for rank in range(SIZE))
    leader.wait_for("received tensor.*2.* from rank 2")
    others[1].signal(signal.SIGKILL)
    leader.wait_for("caught an exception, rank 2")
    others[0].signal(signal.SIGKILL)
    leader.wait_for("caught an exception, rank 1")
