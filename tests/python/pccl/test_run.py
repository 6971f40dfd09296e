"""`pccl.run` holds the loop: peers come, die, are excluded and come back, and the program has nothing but its step."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import array
import signal
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pccl
from pccl.engine import World
from support.master import Master
from support.programs import Program
from support.worlds import together

RUNNER = Path(__file__).parent / "programs" / "runner.py"


def test_all_peers_make_the_same_steps_and_have_the_same_state(master: Master) -> None:
    def peer(index: int) -> tuple[int, list[float], list[int]]:
        weights, steps = np.zeros(4), []

        def train(step: pccl.Step) -> None:
            steps.append(step.index)
            gradient = np.full(4, float(index))
            info = step.all_reduce(gradient)
            assert info.local_world_size == step.world_size == 3
            weights[:] += gradient + step.index

        count = pccl.run(master.address, train, state={"weights": weights}, steps=20, min_peers=3)
        return count, weights.tolist(), steps

    for count, weights, steps in together(3, peer):
        assert count == 20 and weights == [20 * 1.0 + sum(range(20))] * 4 and steps == list(range(20))


def test_a_newcomer_gets_the_state_and_the_number_of_the_step(master: Master) -> None:
    reached = threading.Event()

    def peer(index: int) -> tuple[float, int, int]:
        state = array.array("d", [0])
        first: list[Any] = []

        def train(step: pccl.Step) -> None:
            first.append(step)
            if step.index == 5:
                reached.set()
            assert state[0] == step.index
            mine = array.array("d", [1])
            step.all_reduce(mine)
            state[0] += mine[0]
            if step.world_size == 3 and step.index >= 10:
                step.end()

        if index == 2:
            reached.wait()
        pccl.run(master.address, train, state={"state": state})
        return state[0], first[0].index, first[0].synced.rx_bytes

    results = together(3, peer)
    assert len({state for state, _, _ in results}) == 1
    assert results[2][1] > 5 and results[2][2] == 16  # the state and the number of the step, 8 bytes each


def test_a_peer_is_a_newcomer_until_its_first_update(master: Master) -> None:
    """A program with a loop of its own makes no update in a newcomer's first iteration."""
    with pccl.Communicator(master.address) as communicator:
        assert not communicator.newcomer
        communicator.connect()
        assert communicator.newcomer
        communicator.update_topology()
        assert not communicator.newcomer


def until_by(program: Program, who: str) -> None:
    """Reads on to a step that these slots, as bits, made together."""
    while not program.until("done").endswith(f" by {who}"):
        pass


def test_killed_peers_cost_no_step_and_new_ones_take_their_place(master: Master) -> None:
    """Whatever the killed one was at, the others' next step is theirs alone, and no step is left out or counted twice."""
    with Program(RUNNER, master.address, 0) as first, Program(RUNNER, master.address, 1) as second:
        first.until("done 0 ")
        second.until("done 0 ")
        for slot in (2, 3, 4):
            with Program(RUNNER, master.address, slot) as third:
                third.until("done")
                until_by(first, f"{1 << slot | 0b11:b}")
                third.kill()
            until_by(first, "11")
        first.tell("end")
        for survivor in (first, second):
            survivor.succeeds()
            steps = [line.split()[1] for line in survivor.said if line.startswith("done")]
            assert steps == [str(step) for step in range(len(steps))]
            assert survivor.said[-1].startswith(f"end {len(steps)} True ")
        assert first.said == second.said


def test_who_is_left_alone_repeats_the_step_when_somebody_has_come(master: Master) -> None:
    with Program(RUNNER, master.address, 0) as first:
        with Program(RUNNER, master.address, 1) as second:
            second.until("done 10 ")
            second.kill()
        with Program(RUNNER, master.address, 2) as third:
            assert third.until("done").endswith(" by 101")
            until_by(first, "101")
            third.tell("end")
            third.succeeds()
        first.succeeds()
        steps = [int(line.split()[1]) for line in first.said if line.startswith("done")]
        assert steps == list(range(len(steps)))


def test_an_excluded_peer_comes_back_by_itself() -> None:
    with Master(0, "--dead-ms", "3000") as master:  # shorter than that are the others' pauses, too, where much else runs
        with Program(RUNNER, master.address, 0) as first, Program(RUNNER, master.address, 1) as second:
            first.until("done 0 ")
            second.until("done 0 ")
            with Program(RUNNER, master.address, 2) as third:
                until_by(third, "111")
                until_by(first, "111")
                third.signal(signal.SIGSTOP)
                until_by(first, "11")
                third.signal(signal.SIGCONT)
                until_by(first, "111")
                third.tell("end")
                for program in (first, second, third):
                    program.succeeds()
                assert first.said[-1] == second.said[-1] == third.said[-1]


def test_alone_a_step_is_made_where_one_peer_is_enough(master: Master) -> None:
    numbers, target, calls = np.arange(3.0), np.zeros(3), []

    def train(step: pccl.Step) -> None:
        calls.append(step.index)
        assert step.all_reduce(numbers, target, op=pccl.ReduceOp.SUM).local_world_size == 1
        assert target.tolist() == [0, 1, 2]
        assert step.all_reduce_many([numbers], op=pccl.ReduceOp.SUM).local_world_size == 1
        assert numbers.tolist() == [0, 1, 2]

    assert pccl.run(master.address, train, steps=3, min_peers=1) == 3
    assert calls == [0, 1, 2]


@pytest.mark.parametrize("optimize", [True, False])
def test_the_ring_is_put_in_order_where_that_is_wanted(master: Master, optimize: bool) -> None:
    class Counting(pccl.Communicator):
        optimized = 0

        def optimize_topology(self) -> None:
            super().optimize_topology()
            self.optimized += 1

    def peer(_: int) -> int:
        with Counting(master.address) as communicator:
            pccl.run(communicator, lambda step: step.all_reduce(np.zeros(1)), steps=3, optimize=optimize)
            return communicator.optimized

    assert all((times >= 3) == optimize for times in together(2, peer))


def test_the_first_step_waits_for_all_who_begin_and_later_ones_do_not(master: Master) -> None:
    """Two are there long before the third, and one of them leaves later."""

    def peer(index: int) -> list[int]:
        sizes: list[int] = []

        def train(step: pccl.Step) -> None:
            sizes.append(step.all_reduce(np.zeros(1)).local_world_size)
            if index == 1 and step.index == 4:
                raise InterruptedError

        class Watching(pccl.Communicator):
            def sync_shared_state(self, *arguments: Any) -> pccl.SharedStateSyncInfo:
                if self.get_attribute(pccl.Attribute.LOCAL_WORLD_SIZE) == 2:
                    two.set()
                return super().sync_shared_state(*arguments)

        if index == 2:
            assert two.wait(60)
        try:
            with Watching(master.address) as communicator:
                pccl.run(communicator, train, steps=10, begin_with=3)
        except InterruptedError:
            pass
        return sizes

    two = threading.Event()
    first, second, third = together(3, peer)
    assert second == [3] * 5 and first == third == [3] * 5 + [2] * 5


class Clock:
    """A clock that the test moves.  The event in `waits` for a time is set when a peer waits at that time."""

    def __init__(self) -> None:
        self.now = 0.0
        self.waits: dict[float, threading.Event] = {0.0: threading.Event(), 100.0: threading.Event()}

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.waits[self.now].set()


def test_patience_begins_anew_with_each_wait(master: Master, monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of the steps between two waits does not count."""
    clock = Clock()
    monkeypatch.setattr(sys.modules["pccl.run"], "time", clock)

    def peer(index: int) -> int:
        def train(step: pccl.Step) -> None:
            if index == 1:
                raise InterruptedError  # it leaves, so that the first one waits again
            if step.index == 0:
                clock.now = 100.0
            else:
                step.end()

        if index > 0:
            assert clock.waits[0.0 if index == 1 else 100.0].wait(60)
        try:
            return pccl.run(master.address, train, patience=60)
        except InterruptedError:
            return 0

    assert together(3, peer) == [2, 0, 2]


def test_patience_ends_when_the_first_step_needs_more(master: Master) -> None:
    with pytest.raises(pccl.TooFewPeers, match="1 peers in this group after 0.3 s; a step needs 2, as begin_with says"):
        pccl.run(master.address, lambda step: None, min_peers=1, begin_with=2, patience=0.3)


def test_arguments_that_are_none_are_named(master: Master) -> None:
    wrong: Any = None
    with pytest.raises(TypeError, match="master is None; pass a Communicator"):
        pccl.run(wrong, print, steps=1)
    for wrong in (np.ones(4), [np.ones(4)]):
        with pytest.raises(TypeError, match="run: an entry of state is .*1.*; pass a dictionary of tensors by name"):
            pccl.run(master.address, print, state=wrong, steps=1)
    wrong = 3
    with pytest.raises(TypeError, match="run: state is 3; pass a dictionary of tensors by name"):
        pccl.run(master.address, print, state=wrong, steps=1)


@pytest.mark.parametrize("name", ["steps", "start", "min_peers", "begin_with", "shards", "n_attempts"])
def test_numbers_that_are_none_are_named(master: Master, name: str) -> None:
    for wrong in ("x", 1.5):
        with pytest.raises(TypeError, match=f"{name} is {wrong!r}, a .*; pass a whole number from 0 to"):
            pccl.run(master.address, print, **{name: wrong})  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=f"{name} is -1; pass a whole number from 0 to"):
        pccl.run(master.address, print, **{name: -1})  # type: ignore[arg-type]


def test_a_step_that_cannot_be_called_and_a_time_that_is_none_are_named(master: Master) -> None:
    wrong: Any = None
    with pytest.raises(TypeError, match="step is None; pass a function of one argument, a Step"):
        pccl.run(master.address, wrong)
    wrong = [1]
    with pytest.raises(TypeError, match="is no length of time; pass seconds, or None"):
        pccl.run(master.address, print, patience=wrong)
    with pytest.raises(ValueError, match="-1 s is no length of time"):
        pccl.run(master.address, print, patience=-1)


def test_patience_ends_when_nobody_comes(master: Master) -> None:
    with pytest.raises(pccl.TooFewPeers, match="1 peers in this group.*needs 2"):
        pccl.run(master.address, lambda step: None, patience=0.3)


def test_many_tensors_and_quantisation(master: Master) -> None:
    def peer(index: int) -> None:
        def train(step: pccl.Step) -> None:
            tensors = [np.full(100 + i, float(index + i), np.float32) for i in range(30)]
            info = step.all_reduce_many(iter(tensors), max_in_flight=7)
            assert all((tensor == 0.5 + i).all() for i, tensor in enumerate(tensors)) and info.tx_bytes > 0
            assert step.all_reduce_many([]).tx_bytes == 0
            spread = np.linspace(-1, 1, 1000, dtype=np.float32)
            exact = spread.copy()
            info = step.all_reduce(spread, quantization_options=pccl.QuantizationOptions())
            assert 0 < np.abs(spread - exact).max() < 2 * 2 / 255 and info.tx_bytes < 2000

        assert pccl.run(master.address, train, steps=3) == 3

    together(2, peer)


def test_where_all_come_from_checkpoints_the_newest_wins(master: Master) -> None:
    def peer(index: int) -> tuple[int, float]:
        start = [100, 120, 110][index]
        state = array.array("d", [start])
        steps = []

        def train(step: pccl.Step) -> None:
            steps.append(step.index)
            step.all_reduce(array.array("d", [0]))
            state[0] += 1

        with pccl.Communicator(master.address) as communicator:
            gate.wait()
            pccl.run(communicator, train, state={"state": state}, steps=130, start=start, min_peers=3)
        return steps[0], state[0]

    gate = threading.Barrier(3)
    assert together(3, peer) == [(120, 130.0)] * 3


def test_who_comes_back_yields_to_who_has_stayed(master: Master) -> None:
    """Even two to one: who was excluded may lack the step that the other has made, and was not there since."""

    def peer(index: int) -> list[float]:
        state = np.zeros(3)
        away: list[int] = []

        def train(step: pccl.Step) -> None:
            if step.index == 3 and index > 0 and not away:
                away.append(step.index)
                state[:] = 7
                step.communicator.world.leave()
                excluded = pccl.MasterConnectionFailed(pccl.Result.MASTER_CONNECTION_FAILED, "all_reduce")
                excluded.error_class = pccl.ErrorClass.REJOIN
                raise excluded
            step.all_reduce(np.zeros(1))
            state[:] += 1

        pccl.run(master.address, train, state={"state": state}, steps=6, min_peers=3)
        return state.tolist()

    assert together(3, peer) == [[6.0] * 3] * 3


@pytest.mark.parametrize("optimize", [True, False])
def test_a_grid_of_peer_groups_steps_when_all_are_complete(master: Master, optimize: bool) -> None:
    """Two shards of two peers each, as with FSDP: every shard reduces among its own."""

    def peer(index: int) -> list[float]:
        shard = index % 2
        weights = np.zeros(2)

        def train(step: pccl.Step) -> None:
            assert step.world_size == 2
            if step.index < 4:  # in the last one the other shard may be done, and have left
                assert step.communicator.get_attribute(pccl.Attribute.GLOBAL_WORLD_SIZE) == 4
            gradient = np.full(2, float(index))
            step.all_reduce(gradient, op=pccl.ReduceOp.SUM)
            weights[:] += gradient

        with Watching(master.address, peer_group=shard) as communicator:
            if shard == 1:
                complete.wait()  # the first shard is, before the other has anybody
            pccl.run(communicator, train, state={"weights": weights}, steps=5, shards=2, optimize=optimize)
        return weights.tolist()

    class Watching(pccl.Communicator):
        def get_attribute(self, attribute: pccl.Attribute) -> int:
            size = super().get_attribute(attribute)
            if attribute is pccl.Attribute.GLOBAL_WORLD_SIZE and size == 2:
                complete.set()
            return size

    complete = threading.Event()
    assert together(4, peer) == [[10.0, 10.0], [20.0, 20.0]] * 2  # 0 + 2, 1 + 3, five times


def test_exceptions_of_a_step_are_the_callers_and_the_others_go_on(master: Master) -> None:
    """With the loop's own communicator this peer has left before the exception is out."""

    def peer(index: int) -> str:
        def train(step: pccl.Step) -> None:
            if index == 0 and step.index == 5:
                raise RuntimeError("mine")
            step.all_reduce(np.zeros(1))

        try:
            return f"{pccl.run(master.address, train, steps=50)} steps"
        except RuntimeError as error:
            return str(error)

    assert together(3, peer) == ["mine", "50 steps", "50 steps"]


def test_the_end_of_another_world_that_a_step_uses_is_the_callers(master: Master) -> None:
    """It says "begin anew", which does not mean this run: peers that entered it again would offer a state of a wrong revision."""

    def peer(index: int) -> str:
        made: list[int] = []
        with World(master.address, name="other", size=3, rank=index, formation_timeout=30) as other:
            other.connect()

            def train(step: pccl.Step) -> None:
                made.append(step.index)
                if index == 1 and step.index == 3:
                    other.destroy()
                    raise InterruptedError
                numbers = np.ones(4)
                other.all_reduce(numbers, numbers).wait()
                step.all_reduce(numbers)

            try:
                pccl.run(master.address, train, begin_with=3)
            except InterruptedError:
                return "left"
            except pccl.PCCLError as error:
                assert set(made) == {0, 1, 2, 3} and made.count(3) <= 2
                return type(error).__name__
            return "went on"

    assert together(3, peer) == ["RankConnectionLost", "left", "RankConnectionLost"]


def test_what_the_master_removes_a_peer_for_is_said_and_not_tried_for_ever(master: Master) -> None:
    """An entry too many: the two that agree go on, the third is told why."""

    def peer(index: int) -> str:
        def train(step: pccl.Step) -> None:
            step.all_reduce(np.zeros(1))
            if index < 2 and step.index == 1000:
                removed.wait(60)
                step.end()

        state = {"a": np.zeros(1), "b": np.zeros(1)} if index < 2 else {"a": np.zeros(1)}
        if index == 2:
            began.wait()
        try:
            if index < 2:
                began.set()
            return str(pccl.run(master.address, train, state=state))
        except pccl.MasterConnectionFailed as error:
            removed.set()
            return error.cause.name

    began, removed = threading.Event(), threading.Event()
    assert together(3, peer) == ["1001", "1001", "KICKED"]


def test_a_run_that_somebody_revokes_begins_again_with_those_who_come_back(master: Master) -> None:
    """Who has ended it has left; the others are told to connect again, and bring the state with them."""

    def peer(index: int) -> str:
        state = array.array("d", [0])

        def train(step: pccl.Step) -> None:
            assert state[0] == step.index
            if index == 0 and step.index >= 5:
                step.communicator.world.revoke()
                revoked.set()
            over = array.array("d", [revoked.is_set()])
            step.all_reduce(over, op=pccl.ReduceOp.MIN)
            state[0] += 1
            if over[0]:
                step.end()

        try:
            return f"{pccl.run(master.address, train, state={'state': state}) == state[0]}"
        except pccl.MasterConnectionFailed as error:
            return error.cause.name

    revoked = threading.Event()
    assert together(3, peer) == ["LEFT", "True", "True"]


def test_a_new_master_in_the_place_of_one_that_died_gets_the_newest_state() -> None:
    """All peers are without a run then; nobody begins from nothing."""

    def peer(index: int) -> tuple[int, float]:
        state = array.array("d", [0])

        def train(step: pccl.Step) -> None:
            assert state[0] == step.index
            if step.index == 10 and index == 0 and not died.is_set():
                first.end(signal.SIGKILL)
                died.set()
                replaced.wait()
            step.all_reduce(array.array("d", [0]))
            state[0] += 1

        with pccl.Communicator(first.address) as communicator:
            communicator.world.set_master_loss_timeout(0.5)
            steps = pccl.run(communicator, train, state={"state": state}, steps=50, min_peers=3, n_attempts=30)
        return steps, state[0]

    def replace() -> None:
        died.wait()
        second.append(Master(first.port))
        replaced.set()

    died, replaced, second = threading.Event(), threading.Event(), []
    with Master.at_a_port_that_stays() as first:
        replacing = threading.Thread(target=replace)
        replacing.start()
        try:
            assert together(3, peer) == [(50, 50.0)] * 3
        finally:
            died.set()
            replacing.join()
            for master in second:
                master.end(status=None)


def test_calls_that_differ_are_a_mistake_for_all(master: Master) -> None:
    def peer(index: int) -> str:
        def train(step: pccl.Step) -> None:
            step.all_reduce(np.zeros(2 + index))

        try:
            pccl.run(master.address, train)
        except pccl.InvalidArgument as error:
            return error.cause.name
        return "none"

    assert together(2, peer) == ["MISMATCH", "MISMATCH"]


def test_a_step_that_one_peer_does_not_reduce_in_is_a_mistake(master: Master) -> None:
    """One waits in a reduce, the other in the next vote: no retry could ever end that."""

    def peer(index: int) -> str:
        def train(step: pccl.Step) -> None:
            step.all_reduce(np.zeros(1))
            if index == 0:
                step.all_reduce(np.zeros(1))

        try:
            pccl.run(master.address, train, steps=10, patience=0.5)
        except pccl.PCCLError as error:
            return error.cause.name
        return "none"

    results = together(2, peer)
    assert results[0] == "CONFLICT" and results[1] == "ALONE", results  # the first has left; the other waits for peers
