"""What torch.distributed costs over pccl beside Gloo: small and large all-reduces, and a step of DDP.

    torch_gloo.py [--ranks N] [--rounds N]

Both run by turns in each round; figures are medians over the rounds of the medians over a round's
repetitions, at rank 0.  The ratio is of the two in the same round, its median.  ``make bench-python`` runs it for 2 and 4 ranks.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Callable

import torch
import torch.distributed as dist

SMALL_REPEATS, LARGE_REPEATS, STEPS = 2000, 10, 12
LARGE_BYTES = 64 * 2**20
PARAMETERS = 10_000_000


def timed(repeats: int, call: Callable[[], object]) -> float:
    """Median seconds of a call, after some that do not count."""
    took = []
    for number in range(repeats + repeats // 5 + 2):
        begin = time.perf_counter()
        call()
        if number >= repeats // 5 + 2:
            took.append(time.perf_counter() - begin)
    return statistics.median(took)


def model() -> torch.nn.Module:
    """Of about ten million parameters, in layers of a megabyte and more."""
    width = 1000
    layers: list[torch.nn.Module] = []
    for _ in range(PARAMETERS // (width * width)):
        layers += [torch.nn.Linear(width, width), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers)


def measure() -> dict[str, float]:
    """As a member of the default group."""
    small, large = torch.ones(1), torch.ones(LARGE_BYTES // 4)
    results = {
        "all_reduce of 4 B, us": 1e6 * timed(SMALL_REPEATS, lambda: dist.all_reduce(small)),
        "all_reduce of 64 MB, GB/s": LARGE_BYTES / 1e9 / timed(LARGE_REPEATS, lambda: dist.all_reduce(large)),
    }
    torch.manual_seed(0)
    wrapped = torch.nn.parallel.DistributedDataParallel(model())
    optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.01)
    inputs = torch.randn(8, 1000)

    def step() -> None:
        optimizer.zero_grad()
        wrapped(inputs).square().mean().backward()
        optimizer.step()

    results["DDP step of 10 M parameters, ms"] = 1e3 * timed(STEPS, step)
    return results


def member(backend: str, rank: int, size: int, path: str) -> None:
    torch.set_num_threads(1)
    if backend == "pccl":
        import pccl.distributed  # noqa: F401 - registers
    dist.init_process_group(backend, init_method=f"file://{path}", rank=rank, world_size=size)
    results = measure()
    if rank == 0:
        print(json.dumps(results))
    dist.barrier()
    dist.destroy_process_group()


def run(backend: str, ranks: int) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--member", backend, "--ranks", str(ranks), "--path", f"{folder}/store"]
        environment = dict(os.environ, GLOO_SOCKET_IFNAME="lo")
        members = [
            subprocess.Popen([*command, "--rank", str(rank)], env=environment, stdout=subprocess.PIPE, text=True) for rank in range(ranks)
        ]
        told = [process.communicate()[0] for process in members]
        for process in members:
            if process.returncode != 0:
                raise SystemExit(f"a rank over {backend} ended with status {process.returncode}")
        return dict(json.loads(told[0]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--member", help=argparse.SUPPRESS)
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--path", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.member:
        member(arguments.member, arguments.rank, arguments.ranks, arguments.path)
        return
    rounds = [(run("pccl", arguments.ranks), run("gloo", arguments.ranks)) for _ in range(arguments.rounds)]
    print(f"{arguments.ranks} ranks, torch {torch.__version__}, {arguments.rounds} rounds\n")
    print("| | pccl | Gloo | ratio (least to most) |\n|---|---|---|---|")
    for name in rounds[0][0]:
        ours, theirs = ([each[which][name] for each in rounds] for which in (0, 1))
        faster = name.endswith("GB/s")
        ratios = sorted(a / b if faster else b / a for a, b in zip(ours, theirs))
        print(
            f"| {name} | {statistics.median(ours):.3g} | {statistics.median(theirs):.3g} | "
            f"**{statistics.median(ratios):.2f}** ({ratios[0]:.2f} to {ratios[-1]:.2f}) |"
        )
    print("\nA ratio above 1: pccl is so many times as fast.")


if __name__ == "__main__":
    main()
