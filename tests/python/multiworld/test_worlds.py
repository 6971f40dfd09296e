"""Worlds whose members are managers of this one process: how they begin and end, and what is left of them."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import asyncio
import contextlib
import os
import pickle
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from datetime import timedelta
from typing import Any, Callable

import numpy as np
import pytest
from support.master import Master
from support.multiworld import SECONDS, each, enter, in_worlds
from support.programs import Program

from pccl.engine import World
from pccl.errors import MasterConnectionFailed, PCCLError, RankConnectionLost, make_error
from pccl.multiworld import DEFAULT_WORLD_NAME, BrokenWorldException, WorldCommunicator, WorldManager
from pccl.multiworld.errors import Loss
from pccl.multiworld.lanes import GroupFlight
from pccl.multiworld.native import NativeFlight, NativeFormation
from pccl.types import Cause, ReduceOp, Result

# -- Names --


def test_the_exception() -> None:
    error = BrokenWorldException("w", "why")
    assert str(error) == "w broken: why" and (error.world_name, error.msg, error.peer, error.cause) == ("w", "why", None, Cause.NONE)
    assert type(error).__mro__[1] is Exception
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


def test_names(master: Master) -> None:
    """Taken ones, unknown ones, the default one, and one that is free again."""

    async def run() -> None:
        one, two = managers = [WorldManager(), WorldManager()]
        assert one.communicator.is_broken("w")
        with pytest.raises(BrokenWorldException, match="^w broken: there is no such world"):
            await one.communicator.send(np.zeros(1), 1, "w")
        with pytest.raises(ValueError, match="^World w does not exist"):
            one.remove_world("w")
        with pytest.raises(ValueError, match="not connected"):
            one.add_world("w", "pccl")
        await enter(managers, master.port)
        with pytest.raises(ValueError, match=r"^World w already exists\.$"):
            await one.initialize_world("w", 0, 2, "pccl", port=master.port)
        await enter(managers, master.port, DEFAULT_WORLD_NAME)
        await asyncio.gather(one.communicator.send(np.zeros(1), 1), two.communicator.recv(np.zeros(1), 0))
        one.remove_world("w")
        assert one.communicator.is_broken("w") and one.communicator.worlds() == [DEFAULT_WORLD_NAME]
        while not two.communicator.is_broken("w"):
            await asyncio.sleep(0.001)
        await enter(managers, master.port)
        await asyncio.gather(one.communicator.send(np.zeros(1), 1, "w"), two.communicator.recv(np.zeros(1), 0, "w"))
        for manager in managers:
            manager.cleanup()

    asyncio.run(asyncio.wait_for(run(), SECONDS))


@pytest.mark.parametrize("wrong", [
    {"rank": 2}, {"rank": -1}, {"world_size": 0}, {"port": 99999}, {"backend": "mpi"}, {"backend": "gloo", "port": -1},
    {"world_name": "n" * 80}, {"world_name": "a\nb"},
])
def test_wrong_worlds(wrong: dict[str, Any], master: Master) -> None:
    """They are refused, and their names are free."""

    async def run() -> None:
        manager = WorldManager()
        arguments: dict[str, Any] = {"world_name": "w", "rank": 1, "world_size": 2, "backend": "pccl", "port": master.port, **wrong}
        for _ in range(2):
            with pytest.raises(ValueError) as caught:
                await manager.initialize_world(**arguments)
            assert "exists" not in str(caught.value)

    asyncio.run(asyncio.wait_for(run(), SECONDS))


@pytest.mark.parametrize(("wrong", "said"), [
    ({"rank": "0"}, "rank is '0', a str; pass a whole number"),
    ({"world_size": 2.0}, "world_size is 2.0, a float; pass a whole number"),
    ({"timeout": "x"}, "timeout is 'x', a str; pass a number of seconds"),
    ({"stall": "x"}, "stall is 'x', a str; pass a number of seconds"),
    ({"addr": None}, "addr is None, a NoneType; pass a str"),
    ({"world_name": None}, "world_name is None, a NoneType; pass a str"),
])
@pytest.mark.parametrize("backend", ["pccl", "gloo"])
def test_arguments_of_another_type(wrong: dict[str, Any], said: str, backend: str, free_port: int) -> None:
    """The sentence names the argument, the value and the remedy, and nothing is started."""
    arguments: dict[str, Any] = {"world_name": "w", "rank": 0, "world_size": 2, "backend": backend, "port": free_port, **wrong}
    manager = WorldManager()
    with pytest.raises(TypeError, match=f"^pccl: initialize_world: {said}$"):
        manager.initialize_world_blocking(**arguments)
    with pytest.raises(TypeError, match=f"^pccl: initialize_world: {said}$"):
        asyncio.run(manager.initialize_world(**arguments))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", free_port))


def test_wrong_stall_times() -> None:
    for wrong, said in ((-1, "stall is -1 s; pass a number that is not negative"), (0.01, "stall is 0.01 s; pass at least 0.05")):
        with pytest.raises(ValueError, match=f"^pccl: WorldManager: {said}$"):
            WorldManager(stall=wrong)
        with pytest.raises(ValueError, match=f"^pccl: initialize_world: {said}$"):
            WorldManager().initialize_world_blocking("w", 0, 1, "pccl", stall=wrong)
    with pytest.raises(TypeError, match="^pccl: WorldManager: stall is 'x', a str; pass a number of seconds$"):
        WorldManager(stall="x")  # type: ignore[arg-type]


def test_operations_of_a_world_without_a_name(master: Master) -> None:
    """None is refused as no name; a forgotten name is told from a world that has ended."""
    manager = WorldManager()
    with pytest.raises(TypeError, match="^pccl: world_name is None, a NoneType; pass the name of a world, a str$"):
        manager.communicator.recv_blocking(np.zeros(1), 1, None)  # type: ignore[arg-type]
    with pytest.raises(BrokenWorldException, match='^ broken: no world_name was passed, and no world is named "" here'):
        manager.communicator.recv_blocking(np.zeros(1), 1)
    manager.initialize_world_blocking(DEFAULT_WORLD_NAME, 0, 1, "pccl", port=master.port)
    with pytest.raises(ValueError, match='^World "" already exists.$'):
        manager.initialize_world_blocking(DEFAULT_WORLD_NAME, 0, 1, "pccl", port=master.port)
    with pytest.raises(TypeError, match="src is '0', a str; pass a whole number"):
        manager.communicator.recv_blocking(np.zeros(1), "0")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="src is '0', a str; pass a whole number"):
        manager.communicator.recv_any_blocking({DEFAULT_WORLD_NAME: np.zeros(1)}, "0")  # type: ignore[arg-type]
    manager.cleanup()


INTERRUPTED = """
import atexit, sys

def last():
    print("takes itself apart")
    sys.stdin.readline()

atexit.register(last)  # the last one, since it is the first
import asyncio
import numpy as np
from pccl.multiworld import WorldManager

manager = WorldManager()

async def main():
    await manager.initialize_world("w", 1, 2, "pccl", port=int(sys.argv[1]))
    print("waits")
    await manager.communicator.recv(np.zeros(1), 0, "w")

asyncio.run(main())
"""


def test_a_program_that_is_interrupted_leaves_its_worlds_first(master: Master) -> None:
    """The others learn of it before the interpreter takes its modules apart, which takes seconds with torch."""

    async def run() -> None:
        with Program(INTERRUPTED, master.port) as program:
            manager = WorldManager()
            await manager.initialize_world("w", 0, 2, "pccl", port=master.port)
            await asyncio.to_thread(program.until, "waits")
            program.signal(signal.SIGINT)
            await asyncio.to_thread(program.until, "takes itself apart")
            with pytest.raises(BrokenWorldException) as caught:
                await asyncio.wait_for(manager.communicator.recv(np.zeros(1), 1, "w"), SECONDS)
            assert (caught.value.peer, caught.value.cause) == (1, Cause.PEER_LEFT)
            program.tell("go on")
            assert await asyncio.to_thread(program.end) == -signal.SIGINT
            manager.cleanup()

    asyncio.run(run())


def test_a_world_that_does_not_come(master: Master) -> None:
    """Who is missing is said after the timeout, and the name is free at once: then the world comes."""

    async def run() -> None:
        one, two = managers = [WorldManager(), WorldManager()]
        with pytest.raises(RankConnectionLost, match="1") as caught:
            await one.initialize_world("w", 0, 2, "pccl", port=master.port, timeout=0.5)
        assert caught.value.cause is Cause.DEADLINE
        await enter(managers, master.port)
        for manager in managers:
            manager.cleanup()

    asyncio.run(asyncio.wait_for(run(), SECONDS))


def test_a_world_of_gloo_whose_rank_0_is_not_found(free_port: int) -> None:
    """Torch looks for it beyond the time that it is given, and nobody waits for that."""

    async def run() -> None:
        with pytest.raises(RankConnectionLost, match=f"not all of its 2 ranks have met at nobody.invalid:{free_port}") as caught:
            await WorldManager().initialize_world("w", 1, 2, addr="nobody.invalid", port=free_port, timeout=0.5)
        assert caught.value.cause is Cause.DEADLINE

    asyncio.run(asyncio.wait_for(run(), SECONDS))


def test_a_cancelled_initialisation_of_a_world_of_gloo(free_port: int) -> None:
    """Its port is free soon."""
    pytest.importorskip("torch.distributed")

    async def run() -> None:
        hasty = asyncio.create_task(WorldManager().initialize_world("w", 0, 2, port=free_port))
        await asyncio.to_thread(_until, lambda: socket.create_connection(("127.0.0.1", free_port)))
        hasty.cancel()
        assert isinstance((await each(hasty))[0], asyncio.CancelledError)
        await asyncio.to_thread(_until, lambda: socket.create_server(("127.0.0.1", free_port)))

    asyncio.run(asyncio.wait_for(run(), SECONDS))


def _until(made: Callable[[], socket.socket]) -> None:
    until = time.monotonic() + SECONDS
    while True:
        try:
            return made().close()
        except OSError:
            assert time.monotonic() < until


def test_a_member_of_a_world_of_gloo_that_died_as_it_began(free_port: int) -> None:
    """Who comes in its place makes all begin anew: the others do not wait for the dead one until their time is over."""
    dist = pytest.importorskip("torch.distributed")

    async def run() -> None:
        managers = [WorldManager() for _ in range(3)]
        first = asyncio.create_task(managers[0].initialize_world("w", 0, 3, port=free_port, timeout=9))  # torch waits for 10 s
        dead = dist.PrefixStore("w", await asyncio.to_thread(dist.TCPStore, "127.0.0.1", free_port, None, False, timedelta(seconds=SECONDS), False))
        await asyncio.to_thread(dead.add, "come/2", 1)
        await asyncio.to_thread(dead.set, "alive/2", "127.0.0.1 9 00")
        await asyncio.gather(first, *(managers[rank].initialize_world("w", rank, 3, port=free_port, timeout=9) for rank in (1, 2)))
        assert not any(manager.communicator.is_broken("w") for manager in managers)
        for manager in managers:
            manager.cleanup()

    asyncio.run(asyncio.wait_for(run(), SECONDS))


def test_who_is_missing_in_a_world_of_gloo(free_port: int) -> None:
    """It is named; and the port is free, whoever keeps the error."""
    pytest.importorskip("torch.distributed")
    with pytest.raises(RankConnectionLost, match="missing are the ranks 1, 2") as caught:
        WorldManager().initialize_world_blocking("w", 0, 3, port=free_port, timeout=0.6)
    assert caught.value.cause is Cause.DEADLINE
    with socket.create_server(("127.0.0.1", free_port)):
        pass


FORMING = """
import atexit, sys, threading

def look():
    sys.stderr.write("".join(thread.name for thread in threading.enumerate() if "multiworld" in thread.name))

atexit.register(look)  # the last one, since it is the first
from pccl.multiworld.group_formation import GroupFormation

for name, rank, port in (("served", 0, int(sys.argv[1])), ("looked for", 1, int(sys.argv[1]) ^ 1)):
    GroupFormation(name, rank, 2, "gloo", "127.0.0.1", port, 30, None, 1.0).begin()
sys.exit(3)
"""


def test_a_program_that_ends_while_worlds_of_gloo_begin(free_port: int) -> None:
    """With the status that it wants: no thread is in torch when the interpreter is gone."""
    pytest.importorskip("torch.distributed")
    ended = subprocess.run([sys.executable, "-c", FORMING, str(free_port)], capture_output=True, text=True, timeout=SECONDS)
    assert (ended.returncode, ended.stderr) == (3, "")


def test_no_master(free_port: int) -> None:
    """A rank that is not 0 starts none, and says in time that there is none."""

    async def run() -> None:
        with pytest.raises(MasterConnectionFailed, match="rank 0 starts one there as it initialises the world: has it"):
            await WorldManager().initialize_world("w", 1, 2, "pccl", port=free_port, timeout=0.5)

    asyncio.run(asyncio.wait_for(run(), SECONDS))


def test_rank_0_starts_a_master(free_port: int) -> None:
    """Where nobody listens; others find it also if they come first, and all worlds share it."""

    async def run() -> None:
        managers = [WorldManager(), WorldManager()]
        later = asyncio.create_task(managers[1].initialize_world("w", 1, 2, "pccl", port=free_port))
        await asyncio.sleep(0)
        await managers[0].initialize_world("w", 0, 2, "pccl", port=free_port)
        await later
        await enter(list(reversed(managers)), free_port, "v")
        memories = [np.ones(1), np.ones(1)]
        await asyncio.gather(*(manager.communicator.all_reduce(memory, world_name="v") for manager, memory in zip(managers, memories)))
        assert memories[0][0] == 2.0
        for manager in managers:
            manager.cleanup()

    asyncio.run(asyncio.wait_for(run(), SECONDS))


def test_a_master_that_dies() -> None:
    """Worlds go on without it, rank 0 of a new one starts another, and who loses a member meanwhile does not wait for it for long."""

    async def run() -> None:
        managers = [WorldManager(), WorldManager()]
        with Master.at_a_port_that_stays() as master:
            for name in ("stays", "ends"):
                await enter(managers, master.port, name)
            master.end(signal.SIGKILL)
        left = asyncio.create_task(managers[1].communicator.recv(np.zeros(1), 0, "ends"))
        await asyncio.sleep(0)
        managers[0].remove_world("ends")
        with pytest.raises(BrokenWorldException):
            await asyncio.wait_for(left, 8)  # calls of other worlds wait for 10 s
        for name in ("stays", "new"):
            if name == "new":
                await enter(managers, master.port, name)
            memories = [np.ones(1), np.ones(1)]
            await asyncio.gather(*(manager.communicator.all_reduce(memory, world_name=name) for manager, memory in zip(managers, memories)))
            assert memories[0][0] == 2.0
        for manager in managers:
            manager.cleanup()

    asyncio.run(asyncio.wait_for(run(), SECONDS))


def test_a_member_that_gives_up_while_a_world_begins(master: Master) -> None:
    """Its place is free; who waits goes on waiting, and gets the world when somebody else takes it."""

    async def run() -> None:
        managers = [WorldManager() for _ in range(3)]
        first = asyncio.create_task(managers[0].initialize_world("w", 0, 3, "pccl", port=master.port))
        with World(master.address, name="w", size=3, rank=1) as hasty:
            attempt = hasty.connect_async()
            while hasty.missing_ranks() != [2]:
                await asyncio.sleep(0.001)
            assert not attempt.done()
        await asyncio.gather(*(managers[rank].initialize_world("w", rank, 3, "pccl", port=master.port) for rank in (1, 2)), first)
        assert not any(manager.communicator.is_broken("w") for manager in managers)
        for manager in managers:
            manager.cleanup()

    asyncio.run(asyncio.wait_for(run(), SECONDS))


def test_a_world_that_is_over_as_it_has_begun(master: Master) -> None:
    """Before the initialisation has come to it: that goes on, as if the lost one had gone a little earlier; so it does for who was excluded."""
    formation = NativeFormation("w", 1, 2, "127.0.0.1", master.port, SECONDS, None)

    async def begun() -> NativeFlight:
        first = asyncio.create_task(manager.initialize_world("w", 0, 2, "pccl", port=master.port))
        flight = formation.begin()
        await first
        assert await asyncio.to_thread(flight.wait, SECONDS) and flight.error is None
        return flight

    async def run() -> None:
        flight = await begun()
        manager.remove_world("w")
        with contextlib.suppress(PCCLError):
            while formation._world is not None and formation._world.me:
                await asyncio.sleep(0.001)
        assert formation.conclude(flight) is None
        formation.begin()
        excluded = GroupFlight(None, lambda _: None)
        excluded.resolve(make_error(Result.MASTER_CONNECTION_FAILED, "connect", "silent for too long", Cause.EXCLUDED))
        assert formation.conclude(excluded) is None
        assert formation.conclude(await begun()) is not None
        formation.abandon()
        manager.cleanup()

    manager = WorldManager()
    asyncio.run(asyncio.wait_for(run(), SECONDS))


def test_a_cancelled_initialisation(master: Master) -> None:
    """Wherever it is then, its name is free when it has ended, here and at the master."""

    async def run() -> None:
        managers = [WorldManager(), WorldManager()]
        for turns in range(40):
            hasty = asyncio.create_task(managers[0].initialize_world("w", 0, 2, "pccl", port=master.port))
            for _ in range(turns):
                await asyncio.sleep(0.0005)
            hasty.cancel()
            assert isinstance((await each(hasty))[0], asyncio.CancelledError)
        await enter(managers, master.port)
        for manager in managers:
            manager.cleanup()

    asyncio.run(asyncio.wait_for(run(), SECONDS))


# -- Losses --


def test_who_is_left_is_told(master: Master) -> None:
    """What waits ends with who left and why; so does what is called later; the other world does not notice."""

    async def body(*c: WorldCommunicator) -> None:
        pending = [
            asyncio.create_task(c[0].recv(np.zeros(1), 1, "w")), asyncio.create_task(c[1].all_reduce(np.zeros(1), world_name="w")),
            asyncio.create_task(c[0].recv(np.zeros(1), 1, "v")),
        ]
        await asyncio.sleep(0)
        c[2].remove_world("w")
        for outcome in await each(*pending[:2]):
            assert isinstance(outcome, BrokenWorldException)
            assert (outcome.world_name, outcome.peer, outcome.cause) == ("w", 2, Cause.PEER_LEFT)
            assert isinstance(outcome.__cause__, PCCLError)
        assert c[0].is_broken("w") and c[1].is_broken("w")
        assert not pending[2].done() and not c[0].is_broken("v")
        await c[1].send(np.zeros(1), 0, "v")
        await pending[2]

    in_worlds(3, master.port, body, ("w", "v"))


def test_who_leaves_a_world_of_gloo_in_order(free_port: int) -> None:
    """It is not taken for silent: what the others have to do with each other goes on; what they want of it ends."""

    async def run() -> None:
        managers = [WorldManager(stall=0.3) for _ in range(3)]
        await enter(managers, free_port, backend="gloo")
        one, two, three = (manager.communicator for manager in managers)
        three.remove_world("w")
        begun = time.monotonic()
        while time.monotonic() < begun + 1.0:
            await asyncio.gather(one.send(np.zeros(1), 1, "w"), two.recv(np.zeros(1), 0, "w"))
        with pytest.raises(BrokenWorldException) as caught:
            await one.recv(np.zeros(1), 2, "w")
        assert caught.value.peer == 2
        while not two.is_broken("w"):  # since one has found it over
            await asyncio.sleep(0.01)
        for manager in managers:
            manager.cleanup()

    pytest.importorskip("torch")
    asyncio.run(asyncio.wait_for(run(), SECONDS))


def test_what_a_torch_group_never_ends_ends_with_its_world() -> None:
    """A group that hangs for ever, as gloo's does where a peer is frozen, keeps nobody waiting but a thread of ours."""
    torch = pytest.importorskip("torch")
    from pccl.multiworld.groups import GroupDomain

    released = threading.Event()

    class Group:
        """Its works wait until they are released."""

        def recv(self, *_: Any) -> Any:
            return self

        def wait(self, *_: Any) -> None:
            released.wait()

    domain = GroupDomain("w", "gloo", 0, 2, None, Group(), torch.device("cpu"), None, 0.0)
    flight = domain.recv(np.zeros(1), 1)
    try:
        assert domain.loss() is None and not flight.wait(0.01)
        domain._break(Loss("why", Cause.PEER_SILENT, 1, "", None))
        assert flight.wait(SECONDS) and flight.error is not None and domain.loss() == ("why", Cause.PEER_SILENT, 1, "", None)
    finally:
        released.set()
        domain.close()


def test_a_torch_group_that_tells_of_an_end_while_it_is_freed() -> None:
    """Who frees a group of gloo waits for its threads: none of these waits for who closes the world."""
    torch = pytest.importorskip("torch")
    from pccl.multiworld.groups import GroupDomain

    told: list[bool] = []

    class Ending:
        """A collective of which nobody has been told, and its future."""

        def get_future(self) -> "Ending":
            return self

        def add_done_callback(self, callback: Callable[[Any], None]) -> None:
            self.callback = callback

        def value(self) -> None:
            raise RuntimeError("a connection was closed")

    class Group:
        """It is freed when its thread has told."""

        def __init__(self) -> None:
            self.ending = Ending()

        def allreduce(self, *_: Any) -> Ending:
            return self.ending

        def __del__(self) -> None:
            telling = threading.Thread(target=self.ending.callback, args=(self.ending,), daemon=True)
            telling.start()
            telling.join(SECONDS)
            told.append(not telling.is_alive())

    domain = GroupDomain("w", "gloo", 0, 2, None, Group(), torch.device("cpu"), None, 0.0)
    flight = domain.all_reduce(np.zeros(1), ReduceOp.SUM)
    domain.close()
    assert told == [True] and flight.error is not None


def test_is_broken_without_a_call(master: Master) -> None:
    """A loss is seen by who has nothing under way."""

    async def body(*c: WorldCommunicator) -> None:
        c[1].remove_world("w")
        while not c[0].is_broken("w"):
            await asyncio.sleep(0.001)
        with pytest.raises(BrokenWorldException):
            await c[0].send(np.zeros(1), 1, "w")

    in_worlds(2, master.port, body)


def test_what_waits_here_ends_when_its_world_is_removed(master: Master) -> None:
    async def body(*c: WorldCommunicator) -> None:
        waiting = asyncio.create_task(c[0].recv(np.zeros(1), 1, "w"))
        await asyncio.sleep(0)
        c[0].remove_world("w")
        [outcome] = await each(waiting)
        assert isinstance(outcome, BrokenWorldException) and outcome.cause is Cause.LEFT

    in_worlds(2, master.port, body)


def test_a_name_a_hundred_times(master: Master) -> None:
    """Neither threads nor descriptors nor memory are left of a world that is over."""

    async def run() -> None:
        managers = [WorldManager(), WorldManager()]

        async def once() -> None:
            await enter(managers, master.port)
            memories = [np.ones(1000), np.ones(1000)]
            await asyncio.gather(*(m.communicator.all_reduce(memory, world_name="w") for m, memory in zip(managers, memories)))
            assert memories[1][999] == 2.0
            managers[0].remove_world("w")
            with pytest.raises(BrokenWorldException):
                await managers[1].communicator.recv(np.zeros(1), 0, "w")
            for manager in managers:
                manager.cleanup()

        for _ in range(10):
            await once()
        threads, descriptors, memory = own_threads(), len(os.listdir("/proc/self/fd")), resident()
        for _ in range(90):
            await once()
        assert own_threads() <= threads
        assert len(os.listdir("/proc/self/fd")) <= descriptors + 2
        assert resident() < memory + 8 * 2**20

    asyncio.run(asyncio.wait_for(run(), 2 * SECONDS))


def own_threads() -> int:
    """All but those of asyncio's pool, which grows up to its bound."""
    return sum(not thread.name.startswith("asyncio") for thread in threading.enumerate())


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()
