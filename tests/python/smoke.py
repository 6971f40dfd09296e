"""The package with nothing but what it requires: two members reduce an array, and importing it is quick and starts nothing.

    smoke.py [MASTER]

The members meet at the master of this address; without it one is started, and the time that `import pccl` takes is printed.  With it
no process is started: a Python under an emulator cannot.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import array
import subprocess
import sys
import threading
from typing import Callable

import pccl
from pccl.engine import World
from pccl.engine.bootstrap import spawn_master

STARTS = 5
EXPECTED = [3.0] * 1000

assert threading.active_count() == 1 and "torch" not in sys.modules and "numpy" not in sys.modules
assert "logging" not in sys.modules or not sys.modules["logging"].root.handlers


def time_to_import() -> float:
    """The quickest of some starts, in milliseconds."""
    code = "import time; t = time.perf_counter(); import pccl; print(time.perf_counter() - t)"
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True) for _ in range(STARTS)]
    return 1000 * min(float(run.stdout) for run in runs)


def member_of_a_world(rank: int) -> list[float]:
    with World(address, name="smoke", size=2, rank=rank, formation_timeout=30) as world:
        world.connect()
        numbers = array.array("d", [rank + 1.0] * 1000)
        world.all_reduce(numbers, numbers).wait()
        return numbers.tolist()


def peer_of_a_run(rank: int) -> list[float]:
    with pccl.Communicator(address) as communicator:
        communicator.connect()
        while communicator.get_attribute(pccl.Attribute.GLOBAL_WORLD_SIZE) < 2:
            communicator.update_topology()
        numbers = array.array("f", [rank + 1.0] * 1000)
        communicator.all_reduce(numbers, numbers, op=pccl.ReduceOp.SUM)
        return numbers.tolist()


def two(member: Callable[[int], list[float]]) -> None:
    results: list[list[float]] = [[], []]

    def run(rank: int) -> None:
        results[rank] = member(rank)

    threads = [threading.Thread(target=run, args=(rank,)) for rank in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [EXPECTED] * 2, f"{member.__name__}: {results}"


if len(sys.argv) > 1:
    address = sys.argv[1]
else:
    print(f"Python {sys.version.split()[0]}: import pccl {pccl.__version__} takes {time_to_import():.0f} ms")
    address = spawn_master("127.0.0.1")
two(member_of_a_world)
two(peer_of_a_run)
