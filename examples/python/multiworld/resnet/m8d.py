"""Replicated inference with failover: a leader shares pictures of digits out among workers, each in a world of its own with it.

    pip install ".[examples]"        in the folder of the clone: what it needs

A picture that a worker takes with it when it dies goes to the next one; dead workers are left out, and one that comes back is taken in
again.  On one host the leader starts the workers; on several, or to bring a worker back: `m8d.py --multihost --rank 1`.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import pathlib
import sys
import time

import torch
from model import CLASSES, classifier, classify, picture, shown

from pccl.multiworld import WorldManager

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "training"))

from chart import Chart, can_draw, draw  # noqa: E402
from launch import one_or_more  # noqa: E402


def place(options: argparse.Namespace, worker: int) -> dict[str, object]:
    """Where a worker's world is: one master for all, or a port for each torch group."""
    port = options.port if options.backend == "pccl" else options.port + worker
    device = torch.device("cuda" if options.backend == "nccl" else "cpu")
    return {"backend": options.backend, "addr": options.addr, "port": port, "device": device}


async def work(options: argparse.Namespace, worker: int) -> None:
    """Classifies pictures until the world is over."""
    torch.set_num_threads(1)
    world, where = f"world{worker}", place(options, worker)
    print(f"worker {worker} is process {os.getpid()}", flush=True)
    device = where["device"]
    model = classifier().to(device)
    manager = WorldManager()
    await manager.initialize_world(world, 1, 2, **where)
    image = torch.zeros(1, 3, 32, 32, device=device)
    try:
        while True:
            await manager.communicator.recv(image, 0, world)
            await manager.communicator.send(classify(model, image), 0, world)
    except Exception as error:
        print(f"worker {worker}: caught an exception: {error}", flush=True)
    manager.cleanup()


class Leader:
    """The workers that are there, in rotation."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.manager = WorldManager()
        self.workers: list[int] = []
        self.returned = asyncio.Event()
        self.waiting: set[asyncio.Task[None]] = set()
        self.chart = Chart("time to the answer", "picture", "ms")
        self.number = 0  # of the picture that it is at

    async def take_in(self, worker: int) -> None:
        """Waits for a worker, however long it takes, and has it work."""
        while True:
            try:
                await self.manager.initialize_world(f"world{worker}", 0, 2, timeout=60, **place(self.options, worker))
                break
            except RuntimeError as error:
                print(f"world{worker} does not begin: {error}", flush=True)
        print(f"world{worker} has begun", flush=True)
        if self.number:
            self.chart.mark(self.number, f"worker {worker} is there")
        self.workers.append(worker)
        self.returned.set()

    def expect(self, worker: int) -> None:
        """Has it taken in when it comes, beside everything else."""
        task = asyncio.create_task(self.take_in(worker))
        self.waiting.add(task)
        task.add_done_callback(self.waiting.discard)

    async def next_worker(self) -> int:
        """The one whose turn it is; waits while there is none."""
        while True:
            for worker in list(self.workers):
                self.workers.remove(worker)
                if not self.manager.communicator.is_broken(f"world{worker}"):
                    self.workers.append(worker)
                    return worker
                print(f"world{worker} is over: its worker is lost", flush=True)
                self.chart.mark(self.number, f"worker {worker} is lost")
                self.expect(worker)
            self.returned.clear()
            await self.returned.wait()

    async def ask(self, image: torch.Tensor) -> tuple[int, int]:
        """The class of a picture and who found it, whoever dies meanwhile."""
        while True:
            worker = await self.next_worker()
            world, device = f"world{worker}", place(self.options, worker)["device"]
            found = torch.zeros(1, dtype=torch.int64, device=device)
            try:
                await self.manager.communicator.send(image.to(device), 1, world)
                await self.manager.communicator.recv(found, 1, world)
                return int(found), worker
            except Exception as error:
                print(f"caught an exception: {error}", flush=True)

    async def lead(self) -> None:
        """All pictures, one after the other."""
        model = classifier() if self.options.check else None
        await asyncio.gather(*(self.take_in(worker) for worker in range(1, self.options.num_workers + 1)))
        times, right = [], 0
        for self.number in range(self.options.images):
            number, image, begun = self.number, picture(self.number), time.monotonic()
            found, worker = await self.ask(image)
            times.append(time.monotonic() - begun)
            right += found == shown(number)
            self.chart.point("ms", number, 1e3 * times[-1])
            print(f"picture {number}: {CLASSES[found]}, by worker {worker}", flush=True)
            if model is not None and found != int(classify(model, image)):
                raise SystemExit(f"picture {number}: a local pass finds {CLASSES[int(classify(model, image))]}")
            await asyncio.sleep(self.options.pause)
        print(
            f"{len(times)} pictures, {right / len(times):.1%} read rightly, {len(times) / sum(times):,.0f} pictures/s, "
            f"the longest took {max(times):.3f} s\n{self.chart.text()}", flush=True,
        )
        if self.options.plot and can_draw():
            draw(self.options.plot, [self.chart])
            print(f"the same is in {self.options.plot}", flush=True)


def main() -> None:
    """Leader and workers of one host, or with --multihost one of them."""
    parser = argparse.ArgumentParser(description="Replicated inference.", formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--backend", choices=("pccl", "gloo", "nccl"), default="pccl")
    parser.add_argument("--addr", default="127.0.0.1", help="the host of the leader")
    parser.add_argument("--port", type=int, default=29500, help="of the master; of the others the first, to which the worker is added")
    parser.add_argument("--rank", type=int, default=0, help="with --multihost: 0 the leader, else the worker")
    parser.add_argument("--num_workers", type=int, default=2)
    parser.add_argument("--multihost", action=argparse.BooleanOptionalAction, default=False)
    parser.add_argument("--images", type=one_or_more, default=1000)
    parser.add_argument("--pause", type=float, default=1.0, help="seconds between two pictures")
    parser.add_argument("--check", action="store_true", help="compare each class with that of a local pass")
    parser.add_argument("--plot", default="m8d.png", metavar="FILE", help="the chart, if matplotlib is installed; empty: none")
    options = parser.parse_args()
    if options.multihost and options.rank > 0:
        asyncio.run(work(options, options.rank))
        return
    if not options.multihost:
        for worker in range(1, options.num_workers + 1):
            multiprocessing.get_context("fork").Process(target=lambda worker=worker: asyncio.run(work(options, worker))).start()
    torch.set_num_threads(1)
    leader = Leader(options)
    try:
        asyncio.run(leader.lead())
    finally:
        leader.manager.cleanup()  # so that workers end, too


if __name__ == "__main__":
    main()
