"""Operations in flight: waited for, timed out, cancelled, told of, dropped; and what is left when a member or a process goes."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest
from support.master import Master
from support.worlds import in_world, together

from pccl.engine import Operation, Window, World
from pccl.engine import world as world_module
from pccl.errors import InvalidUsage, MasterConnectionFailed, OperationTimeout, PCCLError, RankConnectionLost
from pccl.types import Cause, ErrorClass, LossRule, Result


def test_wait_returns_when_its_time_is_over_and_later_with_the_end(master: Master) -> None:
    """A wait that takes its own limit for the operation's end."""

    def member(world: World) -> None:
        out = np.zeros(3)
        if world.rank == 0:
            operation = world.receive(out, 1)
            assert not operation.wait(0.05) and not operation.done()
            world.barrier().wait()
            assert operation.wait() and operation.wait(0) and operation.done()
            assert operation.info is not None and operation.info.rx_bytes == 24 and (out == 1.5).all()
        else:
            world.barrier().wait()
            world.send(np.full(3, 1.5), 0).wait()

    in_world(master.address, 2, member)


def test_times_of_years_and_what_is_no_time(master: Master) -> None:
    """A year that C has no number for, as programs take that want no limit; a time that is over before it begins."""
    year = 365 * 86400.0

    def member(rank: int) -> None:
        with World(master.address, name="for years", size=2, rank=rank, formation_timeout=year) as world:
            world.connect()
            world.set_operation_deadline(float("inf"))
            for seconds in (year, 1e30, float("inf")):
                barrier = world.barrier(deadline=seconds)
                assert barrier.wait(seconds) and barrier.error is None
            for wrong in (-1.0, float("nan")):
                with pytest.raises(ValueError, match=f"{wrong} s is no length of time; pass a number"):
                    world.barrier(deadline=wrong)
            world.barrier().wait()

    together(2, member)
    with pytest.raises(ValueError, match=r"name is 'a\\x00b'; leave the NUL out"):
        World(master.address, name="a\0b", size=2)


def test_cancelled_and_late_operations_say_so(master: Master) -> None:
    """An error that does not tell whose wish it was."""

    def member(world: World) -> None:
        out = np.zeros(3)
        operation = world.receive(out, 1 - world.rank, tag=1)
        operation.cancel()
        with pytest.raises(RankConnectionLost) as caught:
            operation.wait()
        assert caught.value.cause is Cause.CANCELLED and caught.value.function == "receive"
        with pytest.raises(OperationTimeout) as late:
            world.receive(out, 1 - world.rank, tag=2, deadline=0.05).wait()
        assert late.value.cause is Cause.DEADLINE and late.value.error_class is ErrorClass.RETRY
        with pytest.raises(RuntimeError, match="has received nothing"):
            print(operation.source)
        world.barrier().wait()

    in_world(master.address, 2, member)


def test_callbacks_run_in_the_completion_thread_once_each(master: Master) -> None:
    """A callback that is lost between the end and its registration, or one that takes the thread down."""

    def member(world: World) -> None:
        told: list[tuple[int, str, bool]] = []
        everything = threading.Event()

        def tell(number: int, operation: Operation) -> None:
            told.append((number, threading.current_thread().name, operation.done()))
            if len(told) == 200:
                everything.set()

        def fail(operation: Operation) -> None:
            raise ValueError("planted")

        for number in range(100):
            operation = world.all_reduce(np.ones(10), np.zeros(10))
            if number == 50:
                operation.when_done(fail)
            operation.when_done(lambda op, n=number: tell(n, op))
            if number % 3 == 0:
                operation.wait()
            operation.when_done(lambda op, n=number: tell(n + 100, op))
        assert everything.wait(60)
        assert sorted(n for n, _, _ in told) == list(range(200)) and all(over for _, _, over in told)
        world.barrier().wait()

    hook = threading.excepthook
    threading.excepthook = lambda arguments: None if "planted" in str(arguments.exc_value) else hook(arguments)
    try:
        in_world(master.address, 2, member)
    finally:
        threading.excepthook = hook


def test_what_nobody_waits_for_ends_and_lets_go(master: Master) -> None:
    """Buffers that are kept for ever, or given back while bytes still come."""

    def member(world: World) -> None:
        kept = []
        for _ in range(300):
            out = np.zeros(1000)
            kept.append(weakref.ref(out))
            world.all_reduce(np.ones(1000), out)
            del out
        world.barrier().wait()
        world.update()  # which would be refused while something is in flight
        gc.collect()
        assert not any(reference() is not None for reference in kept)

    in_world(master.address, 2, member)


def test_what_has_ended_and_nobody_has_looked_at_keeps_no_room_from_others(master: Master) -> None:
    """A launch that fails since the library's 1,024 are taken, or its 768 beside a window, by operations that have ended."""

    def member(world: World) -> None:
        windows: list[Window] = []
        for beside in (100, 400):  # by the second the communicator has room for 1,024
            if beside == 100:
                windows.append(Window(world, np.zeros(1)))
            out = np.zeros(700 + beside)
            if world.rank == 0:
                unseen = [world.receive(out[i : i + 1], 1) for i in range(700)]
                world.barrier().wait()
                world.barrier().wait()
                unseen[-1].wait()
                later = [world.receive(out[i : i + 1], 1) for i in range(700, out.size)]
                world.barrier().wait()
                for operation in unseen + later:
                    operation.wait()
                assert (out == np.arange(out.size)).all()
            else:
                world.barrier().wait()
                for i in range(out.size):
                    if i == 700:
                        world.barrier().wait()
                        world.barrier().wait()
                    world.send(np.full(1, float(i)), 0).wait()
            world.barrier().wait()
            for window in windows:
                window.destroy()
            windows.clear()

    in_world(master.address, 2, member)


def test_several_threads_wait_for_one_operation(master: Master) -> None:
    """A handle that one thread spends while another is in C with it."""

    def member(world: World) -> None:
        for _ in range(50):
            operation = world.all_reduce(np.ones(5), np.zeros(5))
            assert together(4, lambda _: operation.wait()) == [True] * 4

    in_world(master.address, 2, member)


def test_destroyed_world_ends_what_is_in_flight_with_an_error(master: Master) -> None:
    """A handle of a communicator that is gone."""

    def member(world: World) -> None:
        operation = world.receive(np.zeros(1), 1 - world.rank)
        told = threading.Event()
        operation.when_done(lambda _: told.set())
        world.barrier().wait()
        world.destroy()
        world.destroy()
        with pytest.raises((MasterConnectionFailed, RankConnectionLost)):
            operation.wait()
        assert told.wait(30)
        with pytest.raises(InvalidUsage, match="was destroyed: make a new one"):
            world.barrier()

    in_world(master.address, 2, member)


def test_loss_is_told_with_its_cause_and_a_world_may_shrink(master: Master) -> None:
    """A survivor that does not hear who went."""
    ids = {}

    def member(world: World) -> None:
        ids[world.rank] = world.me.id
        key = world.me.key
        world.barrier().wait()
        if key == 2:
            world.destroy()
            return
        with pytest.raises(RankConnectionLost) as caught:
            while True:
                world.barrier().wait()
        assert caught.value.cause in (Cause.PEER_LEFT, Cause.PEER_LOST)  # the latter where the barrier was called after the fact
        assert caught.value.peer == ids[2] and caught.value.error_class is ErrorClass.RETRY
        assert world.size == 2 and [m.key for m in world.members()] == [0, 1]
        out = np.zeros(3)
        world.all_reduce(np.ones(3), out).wait()
        assert (out == 2).all()

    in_world(master.address, 3, member, loss_rule=LossRule.SHRINK)


def test_worlds_out_of_a_world(master: Master) -> None:
    """A colour, a key or a list that is not the one that was asked for."""

    def member(world: World) -> None:
        rank = world.rank
        halves = world.split(rank % 2, -rank, name="halves")
        assert halves is not None and halves.size == 2 and halves.rank == (0 if rank >= 2 else 1)
        nobody = world.split(-1 if rank == 0 else 0)
        assert (nobody is None) == (rank == 0)
        twin = world.duplicate()
        assert (twin.rank, twin.size) == (rank, 4)
        if rank in (1, 3):
            ids = [m.id for m in world.members()]
            listed = world.create_from_list([ids[3], ids[1]])
            assert listed.rank == (0 if rank == 3 else 1)
            out = np.zeros(1, np.int64)
            listed.all_reduce(np.array([rank]), out).wait()
            assert out[0] == 4
            listed.destroy()
        for made in (halves, nobody, twin):
            if made is not None:
                made.destroy()

    in_world(master.address, 4, member)


def test_an_error_names_rank_and_address_of_the_lost_peer(master: Master) -> None:
    """The ranks of those who are left have closed up by then: a rank that is looked up after the loss is another peer's."""

    def member(world: World) -> None:
        lost = world.members()[1]
        world.barrier().wait()
        if world.rank == 1:
            world.destroy()
            return
        with pytest.raises(RankConnectionLost) as caught:
            world.barrier().wait()
        error = caught.value
        assert error.peer == lost.id and error.rank == 1 and error.address == str(lost.address)
        assert f"rank 1 (peer {lost.id >> 32}.{lost.id & 0xFFFFFFFF} at {lost.address})" in error.text
        with pytest.raises(InvalidUsage) as caught_usage:
            world.connect()
        assert caught_usage.value.rank is None and caught_usage.value.address == ""

    in_world(master.address, 3, member, loss_rule=LossRule.SHRINK)


def test_forked_child_is_told_and_harms_nothing(master: Master) -> None:
    """A child that speaks on its parent's connections, or waits for a thread that it does not have."""

    def member(world: World) -> None:
        world.barrier().wait()
        if world.rank == 0:
            reading, writing = os.pipe()
            child = os.fork()
            if child == 0:
                try:
                    world.barrier()
                except InvalidUsage as error:
                    os.write(writing, str(error).encode())
                world.destroy()
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            os.close(writing)
            assert f"was forked of process {os.getpid()}" in os.read(reading, 1000).decode()
            os.close(reading)
        out = np.zeros(2)
        world.all_reduce(np.ones(2), out).wait()
        assert (out == 2).all()

    in_world(master.address, 2, member)


SCRIPT = """
import sys, threading, numpy as np
from pccl.engine import World
world = World(sys.argv[1], name="alone", size=2, rank=0)
{body}
"""


def run_script(master: Master, body: str) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", SCRIPT.format(body=body), master.address]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize("wait", ["world.connect()", "world.connect_async().wait()"])
def test_ctrl_c_ends_a_wait(master: Master, wait: str) -> None:
    """A wait in C that no signal reaches."""
    process = run_script(master, f"print('waiting', flush=True)\ntry:\n    {wait}\nexcept KeyboardInterrupt:\n    print('ended')")
    assert process.stdout is not None and process.stdout.readline() == "waiting\n"
    while process.poll() is None:  # the handler is there, but the wait may not have begun
        process.send_signal(signal.SIGINT)
        try:
            process.wait(0.3)
        except subprocess.TimeoutExpired:
            pass
    assert process.stdout.read().startswith("ended") or process.returncode == -signal.SIGINT


@pytest.mark.parametrize("callback", [True, False])
def test_interpreter_ends_with_operations_in_flight(master: Master, callback: bool) -> None:
    """An interpreter that hangs or crashes at its end."""
    told = "operation.when_done(print)" if callback else ""
    body = f"operation = world.connect_async()\n{told}\nprint('end')"
    out, err = run_script(master, body).communicate(timeout=60)
    assert out.startswith("end") and "Traceback" not in err


def test_errors_carry_what_is_known() -> None:
    """An error whose fields have to be read out of its text."""
    world = World("127.0.0.1:1")
    world.set_connect_timeout(0.1)
    with pytest.raises(MasterConnectionFailed) as caught:
        world.connect()
    error = caught.value
    assert error.result is Result.MASTER_CONNECTION_FAILED and error.cause is Cause.MASTER_UNREACHABLE and error.phase == "connect"
    assert error.error_class is ErrorClass.REJOIN and "127.0.0.1:1" in str(error) and isinstance(error, PCCLError)
    with pytest.raises(PCCLError, match="no-port"):
        World("127.0.0.1:no-port")


class Overwriting:
    """cffi's ffi, but that memory which nobody refers to any more is overwritten at once, and given back at the end of the test."""

    def __init__(self, ffi: Any) -> None:
        self._ffi = ffi
        self._kept: list[Any] = []
        self._new = ffi.new_allocator(self._allocate, self._overwrite)

    def _allocate(self, nbytes: int) -> Any:
        self._kept.append(self._ffi.new("char[]", nbytes))
        return self._kept[-1]

    def _overwrite(self, memory: Any) -> None:
        self._ffi.memmove(memory, b"\xa5" * self._ffi.sizeof(memory), self._ffi.sizeof(memory))

    def new(self, kind: str, value: Any = None) -> Any:
        return self._new(kind, value)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ffi, name)


def test_lists_are_read_while_their_memory_is_there(master: Master, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of a cffi array does not keep the array: members, waits and connections out of memory that is free."""

    def member(world: World) -> None:
        world.barrier().wait()
        assert [(one.rank, one.key, one.is_self, one.lost) for one in world.members()] == [(r, r, r == world.rank, False) for r in range(3)]
        others = {one.id for one in world.members() if not one.is_self}
        assert {one.peer for one in world.transports()} == others
        for lane in (None, 0):  # windows of peers within a host are 8 frames of 128 KiB, and nothing cuts them short
            links = [one for one in world.connections() if one.lane == lane]
            assert {one.peer for one in links} >= (others if lane is None else set())
            assert {(one.window, one.granted, one.bounded) for one in links} <= {(0, 0, 0) if lane is None else (2**20, 2**20, 0)}
        late = world.receive(np.zeros(1), (world.rank + 1) % 3)
        assert {wait.peer for wait in world.waits()} <= {one.id for one in world.members()} | {0}
        assert world.missing_ranks() == []
        world.send(np.zeros(1), (world.rank + 2) % 3).wait()
        late.wait()
        world.barrier().wait()

    monkeypatch.setattr("pccl.engine.world.ffi", Overwriting(world_module.ffi))
    in_world(master.address, 3, member)


def test_topology_has_the_edges_that_were_measured_and_no_others(master: Master) -> None:
    """Ranks of another order, or an edge that nobody has measured with rate 0: a program avoids a link that is fine."""

    def member(world: World) -> None:
        world.barrier().wait()
        before = world.topology()
        assert before.ids == [one.id for one in world.members()]
        assert before.edges == {} and before.ring_rate == 0 and before.ring_edge is None
        world.barrier().wait()
        world.optimize()
        after = world.topology(timeout=20)
        assert sorted(after.edges) == [(a, b) for a in range(3) for b in range(3) if a != b]
        assert [after.ring.index(one.rank) for one in world.members()] == [one.ring_position for one in world.members()]
        ring = [(after.ring[i], after.ring[(i + 1) % 3]) for i in range(3)]
        assert after.ring_rate == min(after.edges[ends].rate for ends in ring) > 0
        assert after.ring_edge in ring and after.edges[after.ring_edge].rate == after.ring_rate
        world.barrier().wait()

    in_world(master.address, 3, member)
