"""The package with nothing but what it requires: two members reduce an array, and importing it is quick and starts nothing."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import array
import subprocess
import sys
import threading

import pccl
from pccl.engine import World
from pccl.engine.bootstrap import spawn_master

STARTS = 5

quickest = min(
    float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
    for code in ["import time; t = time.perf_counter(); import pccl; print(time.perf_counter() - t)"] * STARTS
)
print(f"pccl {pccl.__version__}: import pccl takes {quickest * 1000:.0f} ms")
assert threading.active_count() == 1 and "torch" not in sys.modules and "numpy" not in sys.modules
assert "logging" not in sys.modules or not sys.modules["logging"].root.handlers


def member(rank: int, results: list[list[float]]) -> None:
    with World(address, name="smoke", size=2, rank=rank, formation_timeout=30) as world:
        world.connect()
        numbers = array.array("d", [rank + 1.0] * 1000)
        world.all_reduce(numbers, numbers).wait()
        results[rank] = numbers.tolist()


address = spawn_master("127.0.0.1", idle_exit=5)
results: list[list[float]] = [[], []]
threads = [threading.Thread(target=member, args=(rank, results)) for rank in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
assert results == [[3.0] * 1000] * 2, results
print("two members have the sum")
