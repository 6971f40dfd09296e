"""Members as processes, of both back-ends: a lost one's place is taken in the same world, and no wait outlives its world."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import asyncio
import runpy
import signal
import subprocess
import sys
import textwrap
import threading
from typing import Any, Iterator

import pytest
from support.master import Master
from support.multiworld import Children

from pccl.multiworld import BrokenWorldException, WorldManager

SIZE, STALL = 3, 1.0


@pytest.fixture
def children() -> Iterator[Children]:
    with Children() as running:
        yield running


@pytest.fixture(params=["pccl", "gloo"])
def place(request: pytest.FixtureRequest) -> tuple[str, int]:
    """Back-end and port."""
    return request.param, request.getfixturevalue("master").port if request.param == "pccl" else request.getfixturevalue("free_port")


def zeros(count: int) -> Any:
    import numpy

    return numpy.zeros(count)


def returning(backend: str, port: int, rank: int, lives: int) -> None:
    """Sums up ranks until its world is over, then enters it anew, so many times."""

    async def run() -> None:
        manager = WorldManager(stall=STALL)
        for life in range(1, lives + 1):
            await manager.initialize_world("w", rank, SIZE, backend, port=port, timeout=40)
            print(f"life {life} begins", flush=True)
            step = 0
            try:
                while step < 200 or life < lives:
                    memory = zeros(2)
                    memory += rank + step
                    await manager.communicator.all_reduce(memory, world_name="w")
                    assert list(memory) == [3.0 + 3 * step] * 2
                    step += 1
                    print(f"life {life} step {step}", flush=True)
            except BrokenWorldException as error:
                print(f"broken, rank {error.peer}, {error.cause.name}", flush=True)
        print("over", flush=True)
        manager.cleanup()

    asyncio.run(run())


@pytest.mark.parametrize("harm", [signal.SIGKILL, signal.SIGSTOP], ids=["SIGKILL", "SIGSTOP"])
@pytest.mark.parametrize("lost", [0, 2])
def test_a_lost_member_is_replaced(lost: int, harm: int, place: tuple[str, int], children: Children) -> None:
    """Those who are left enter the world again under its name, with a new process in the place of the lost: rank 0 as well."""
    members = [children.start(returning, *place, rank, 2) for rank in range(SIZE)]
    victim = members[lost]
    victim.wait_for("life 1 step 20")
    when = victim.signal(harm)
    left = [member for member in members if member is not victim]
    for member in left:
        told, found = member.wait_for(r"^broken, rank (\S+), (\S+)")
        assert told - when < STALL + 2.0
        assert found[1] in (str(lost), "None") if place[0] == "gloo" else found[1] == str(lost)
    if harm == signal.SIGSTOP and place[0] == "gloo" and lost == 0:
        victim.signal(signal.SIGKILL)  # it has the port, where the new one is to listen
    newcomer = children.start(returning, *place, lost, 1)
    for member in (*left, newcomer):
        member.wait_for("^over")
        assert member.join() == 0, member.text()
        assert list(member.find(f"life {1 if member is newcomer else 2} step 200"))


def test_a_frozen_member_that_comes_back(place: tuple[str, int], children: Children) -> None:
    """It is told that its world is over, as the others have been, and takes its place again itself."""
    members = [children.start(returning, *place, rank, 2) for rank in range(SIZE)]
    members[1].wait_for("life 1 step 20")
    members[1].signal(signal.SIGSTOP)
    for rank in (0, 2):
        members[rank].wait_for("^broken")
    members[1].signal(signal.SIGCONT)
    for member in members:
        member.wait_for("^over")
        assert member.join() == 0, member.text()


def waiting(backend: str, port: int, rank: int, stall: float) -> None:
    """Ranks 0 and 1 wait for each other's message, which never comes."""

    async def run() -> None:
        manager = WorldManager(stall=stall)
        await manager.initialize_world("w", rank, SIZE, backend, port=port)
        try:
            if rank < 2:
                print("waits", flush=True)
                await manager.communicator.recv(zeros(1), 1 - rank, "w")
            await asyncio.Event().wait()
        except BrokenWorldException as error:
            print(f"broken: {error}", flush=True)
        manager.cleanup()
        left = [thread.name for thread in threading.enumerate() if thread.name.startswith("pccl-multiworld")]
        print(f"over, {left} are left", flush=True)

    asyncio.run(run())


@pytest.mark.parametrize("harm", [signal.SIGKILL, signal.SIGSTOP], ids=["SIGKILL", "SIGSTOP"])
def test_who_waits_for_a_third(harm: int, place: tuple[str, int], children: Children) -> None:
    """Two that are well wait for each other, and a third one is lost: both are told, long before the stall time if its process is gone;
    nothing keeps their processes."""
    stall = 10 * STALL if harm == signal.SIGKILL else STALL
    members = [children.start(waiting, *place, rank, stall) for rank in range(SIZE)]
    for rank in (0, 1):
        members[rank].wait_for("^waits")
    when = members[2].signal(harm)
    for rank in (0, 1):
        told, _ = members[rank].wait_for("^broken: w broken: ")
        assert told - when < (stall / 2 if harm == signal.SIGKILL else stall + 2.0)
        members[rank].wait_for(r"^over, \[\] are left")
        assert members[rank].join() == 0, members[rank].text()


def leaving(backend: str, port: int, rank: int) -> None:
    """All go through with the same number of operations, and leave, each as soon as it has done its own."""

    async def run() -> None:
        manager = WorldManager(stall=STALL)
        await manager.initialize_world("w", rank, SIZE, backend, port=port)
        for step in range(50):
            memory = zeros(5000) + step
            await manager.communicator.broadcast(memory, step % SIZE, "w")
            assert memory[4999] == step
        manager.cleanup()
        print("over", flush=True)

    asyncio.run(run())


def test_the_first_to_leave_takes_nothing_with_it(place: tuple[str, int], children: Children) -> None:
    """An operation that one member has done is done by the others, also if that member leaves."""
    members = [children.start(leaving, *place, rank) for rank in range(SIZE)]
    for member in members:
        member.wait_for("^over")
        assert member.join() == 0, member.text()


# -- Without torch, without numpy, without a word of ours --


PROGRAM = textwrap.dedent("""
    import asyncio, sys
    from multiworld.manager import WorldManager
    from multiworld.communicator import WorldCommunicator, BrokenWorldException
    import multiworld
    import torch

    async def main(rank):
        manager = WorldManager()
        assert isinstance(manager.communicator, WorldCommunicator) and multiworld.__version__
        await manager.initialize_world("world1", rank, 2, "gloo", "127.0.0.1", int(sys.argv[1]), device=torch.device("cpu"))
        tensor = torch.ones(1) * (rank + 1)
        await manager.communicator.all_reduce(tensor, world_name="world1")
        print(tensor, flush=True)
        try:
            await manager.communicator.recv(tensor, 1, "world1") if rank == 0 else None
        except BrokenWorldException as e:
            print(f"caught an exception: {e}", flush=True)
        manager.cleanup()

    asyncio.run(main(int(sys.argv[2])))
""")


def unchanged(arguments: list[str]) -> None:
    """``python -m pccl.multiworld ...``"""
    sys.argv[1:] = arguments
    runpy.run_module("pccl.multiworld", run_name="__main__", alter_sys=True)


def test_a_program_written_for_the_original(place: tuple[str, int], children: Children, tmp_path: Any) -> None:
    """It runs unchanged, by the back-end that it names or another one."""
    pytest.importorskip("torch")
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    backend, port = place
    options = ["--backend", "pccl"] if backend == "pccl" else []
    processes = [children.start(unchanged, [*options, str(path), str(port), str(rank)]) for rank in (0, 1)]
    for process in processes:
        process.wait_for(r"^tensor\(\[3\.\]\)$")
        assert process.join() == 0, process.text()
    processes[0].wait_for("^caught an exception: world1 broken: lost rank 1: ")


STARTING = textwrap.dedent("""
    import asyncio, multiprocessing, subprocess, sys
    from multiworld.manager import WorldManager
    import numpy

    async def main(rank):
        manager = WorldManager()
        await manager.initialize_world("world1", rank, 3, "gloo", "127.0.0.1", int(sys.argv[1]))
        numbers = numpy.full(1, rank + 1.0)
        await manager.communicator.all_reduce(numbers, world_name="world1")
        print(numbers, flush=True)
        manager.cleanup()

    def worker(rank):
        asyncio.run(main(rank))

    if __name__ == "__main__":
        if sys.argv[2:]:
            worker(2)
        else:
            one = multiprocessing.get_context("spawn").Process(target=worker, args=(1,))
            one.start()
            two = subprocess.Popen([sys.executable, __file__, sys.argv[1], "two"])
            worker(0)
            one.join()
            sys.exit(one.exitcode or two.wait())
""")


def test_workers_that_a_program_of_the_original_starts(master: Master, tmp_path: Any) -> None:
    """They import its names, too, in a process of their own; and take the same back-end."""
    path = tmp_path / "program.py"
    path.write_text(STARTING)
    command = [sys.executable, "-m", "pccl.multiworld", "--backend", "pccl", str(path), str(master.port)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout.count("[6.]")) == (0, 3), done.stderr


def test_a_level_of_the_log_that_is_none_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("M8D_LOG_LEVEL", "loud")
    done = subprocess.run([sys.executable, "-m", "pccl.multiworld", "program.py"], capture_output=True, text=True, timeout=100)
    assert done.returncode == 1 and "M8D_LOG_LEVEL is 'loud'; write one of DEBUG, INFO, WARNING, ERROR and CRITICAL" in done.stderr


def test_the_name_is_not_there_unless_asked_for() -> None:
    plain = subprocess.run([sys.executable, "-c", "import pccl.multiworld, multiworld"], capture_output=True, text=True)
    assert "No module named 'multiworld'" in plain.stderr
    program = """
        import pccl.multiworld, sys
        pccl.multiworld.install("gloo")
        from multiworld.communicator import BrokenWorldException, DEFAULT_WORLD_NAME
        from multiworld.manager import WorldManager
        assert BrokenWorldException is pccl.multiworld.BrokenWorldException and issubclass(WorldManager, pccl.multiworld.WorldManager)
        pccl.multiworld.install()
        assert sys.modules["multiworld.manager"].WorldManager is pccl.multiworld.WorldManager
        sys.modules["multiworld"] = type(sys)("multiworld")
        try:
            pccl.multiworld.install()
        except RuntimeError:
            print("refused")
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True)
    assert done.stdout == "refused\n", done.stderr


def test_without_torch_and_numpy(master: Master) -> None:
    """All of the native back-end, with the buffers that Python has; importing it loads neither, and starts no thread."""
    program = textwrap.dedent(f"""
        import array, asyncio, sys, threading
        sys.modules["torch"] = sys.modules["numpy"] = None
        from pccl.multiworld import WorldManager
        assert threading.active_count() == 1

        async def main():
            managers = [WorldManager(), WorldManager()]
            await asyncio.gather(*(m.initialize_world("w", r, 2, "pccl", port={master.port}) for r, m in enumerate(managers)))
            memories = [array.array("i", [1, 2]), array.array("i", [3, 4])]
            await asyncio.gather(*(m.communicator.all_reduce(b, world_name="w") for m, b in zip(managers, memories)))
            assert list(memories[0]) == list(memories[1]) == [4, 6]
            parts = [bytearray(2), bytearray(2)]
            one, two = (m.communicator for m in managers)
            await asyncio.gather(one.gather(b"ab", parts, 0, "w"), two.gather(b"cd", None, 0, "w"))
            assert parts == [b"ab", b"cd"]
            for manager in managers:
                manager.cleanup()

        asyncio.run(main())
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
