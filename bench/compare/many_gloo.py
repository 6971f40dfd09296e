#!/usr/bin/env python3
"""many_gloo.py RANK WORLD PORT ROUNDS - what bench_many.c does, with Gloo through torch.distributed; a line of JSON for each mode.

SPDX-License-Identifier: MIT
"""
import json
import os
import sys
import time
import warnings
from statistics import median

import torch
import torch.distributed as dist

TENSORS, SMALL, BUCKET = 1000, 4096, 25 << 20


class Step:
    """The tensors of a step, one after the other in memory."""

    def __init__(self, small):
        sizes = [SMALL if small else int(SMALL * 2 ** (10 * (i * 387 % TENSORS) / (TENSORS - 1))) & ~3 for i in range(TENSORS)]
        self.memory = torch.zeros(sum(sizes) // 4)
        self.tensors = list(self.memory.split([s // 4 for s in sizes]))
        self.buckets = []
        for t in self.tensors:
            if not self.buckets or sum(x.numel() for x in self.buckets[-1]) * 4 + t.numel() * 4 > BUCKET:
                self.buckets.append([])
            self.buckets[-1].append(t)
        self.rooms = [torch.zeros(sum(t.numel() for t in b)) for b in self.buckets]

    def each(self):
        spent, works = [], []
        for t in self.tensors:
            before = time.perf_counter()
            works.append(dist.all_reduce(t, async_op=True))
            spent.append(time.perf_counter() - before)
        for w in works:
            w.wait()
        return median(spent) * 1e6, max(spent) * 1e6

    def bucketed(self):
        works = []
        for bucket, room in zip(self.buckets, self.rooms):
            torch.cat(bucket, out=room)
            works.append(dist.all_reduce(room, async_op=True))
        for bucket, room, work in zip(self.buckets, self.rooms, works):
            work.wait()
            torch._foreach_copy_(bucket, list(room.split([t.numel() for t in bucket])))
        return 0, 0


def wrong(step, run, rank, world):
    given = torch.arange(step.memory.numel()) % 13
    step.memory.copy_(given + rank)
    run()
    bad = int((step.memory != world * given + world * (world - 1) // 2).sum())
    step.memory.zero_()
    return bad


def main():
    rank, world, port, rounds = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    warnings.simplefilter("ignore")  # of names that newer ones replace
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    mixed, small = Step(False), Step(True)
    modes = {"each": mixed.each, "bucketed": mixed.bucketed, "each, 4 KB": small.each}
    spent, bad = {name: [] for name in modes}, {}
    for name, run in modes.items():
        bad[name] = wrong(small if "KB" in name else mixed, run, rank, world)
        run()
        for _ in range(rounds):
            begin = time.perf_counter()
            launch = run()
            spent[name].append(((time.perf_counter() - begin) * 1e6, *launch))
    for name in modes if rank == 0 else ():
        us, launch, worst = (median(s[k] for s in spent[name]) for k in range(3))
        print(json.dumps({"mode": name, "tensors": TENSORS, "us": round(us), "launch_us": round(launch, 2),
                          "worst_launch_us": round(worst, 1), "wrong": bad[name]}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
