#!/usr/bin/env python3
"""compare_gloo.py RANK WORLD PORT BUDGET_MS COLLECTIVE:SIZE... - what compare_mpi.c does, with Gloo through torch.distributed.

Sizes count as there: the larger of what a rank gives and gets; times are taken as there.
all_reduce is in place, as torch has it.  A line of JSON for each at rank 0.
SPDX-License-Identifier: MIT
"""
import json
import os
import resource
import sys
import time
import warnings

import torch
import torch.distributed as dist

MOST_TIMES, LEAST_TIMES, WARM = 10000, 3, 5
ROOTED = {"broadcast", "reduce", "gather", "scatter"}
PARTS = {"all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"}


def given(rank, count):
    return (torch.arange(count, dtype=torch.int64) % 13 + rank).to(torch.float32)


class Job:
    def __init__(self, name, size, rank, world):
        self.name, self.rank, self.world = name, rank, world
        self.count = max(1, size // 4 // (world if name in PARTS else 1))
        all_of = self.count * world
        self.send = torch.zeros(all_of if name in ("reduce_scatter", "all_to_all", "scatter") else self.count)
        self.recv = torch.zeros(all_of if name in ("all_gather", "all_to_all", "gather") else self.count)
        self.sends = list(self.send.chunk(world)) if name in ("scatter", "reduce_scatter") else None
        self.recvs = list(self.recv.chunk(world)) if name in ("gather", "all_gather") else None

    def fill(self):
        self.send.copy_(given(self.rank, self.send.numel()))
        if self.name in ("all_reduce", "reduce") or self.name == "broadcast" and self.rank == 0:
            self.recv.copy_(self.send)

    def launch(self):
        if self.name == "all_reduce":
            dist.all_reduce(self.recv)
        elif self.name == "broadcast":
            dist.broadcast(self.recv, 0)
        elif self.name == "reduce":
            dist.reduce(self.recv, 0)
        elif self.name == "all_gather":
            dist.all_gather_into_tensor(self.recv, self.send)
        elif self.name == "reduce_scatter":
            dist.reduce_scatter_tensor(self.recv, self.send)
        elif self.name == "all_to_all":
            dist.all_to_all_single(self.recv, self.send)
        elif self.name == "gather":
            dist.gather(self.send, self.recvs if self.rank == 0 else None, 0)
        elif self.name == "scatter":
            dist.scatter(self.recv, self.sends if self.rank == 0 else None, 0)

    def wanted(self):
        n, w, r = self.count, self.world, self.rank
        if self.name in ("all_reduce", "reduce"):
            return sum(given(s, n) for s in range(w))
        if self.name == "reduce_scatter":
            return sum(given(s, n * w) for s in range(w))[r * n:(r + 1) * n]
        if self.name == "broadcast":
            return given(0, n)
        if self.name == "scatter":
            return given(0, n * w)[r * n:(r + 1) * n]
        if self.name == "all_to_all":
            return torch.cat([given(s, n * w)[r * n:(r + 1) * n] for s in range(w)])
        return torch.cat([given(s, n) for s in range(w)])

    def wrong(self):
        if self.name in ("reduce", "gather") and self.rank != 0:
            return 0
        return int((self.recv != self.wanted()).sum())

    def once(self):
        """Start and end, by the clock that the processes of one host share."""
        if self.name in ROOTED:
            dist.barrier()
        start = time.perf_counter()
        self.launch()
        return start * 1e6, time.perf_counter() * 1e6

    def times(self, spans):
        """Of each iteration, as compare_mpi.c says; the same at all ranks."""
        starts, ends = torch.tensor(spans, dtype=torch.float64).T.contiguous().unbind(0)
        if self.name not in ROOTED:
            out = ends - starts
            dist.all_reduce(out, op=dist.ReduceOp.MAX)
            return sorted(out.tolist())
        starts, ends = starts.clone(), ends.clone()
        dist.all_reduce(ends, op=dist.ReduceOp.MAX)
        if self.name in ("reduce", "gather"):
            dist.all_reduce(starts)
            starts /= self.world
        else:
            dist.broadcast(starts, 0)
        return sorted((ends - starts).tolist())


def cpu_s():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def agree(job, budget_us):
    """How many iterations fit into the budget."""
    spans, spent = [], torch.zeros(1, dtype=torch.float64)
    while not spans or len(spans) < WARM and float(spent) < budget_us:
        spans.append(job.once())
        spent[0] = spans[-1][1] - spans[0][0]
        dist.broadcast(spent, 0)
    times = job.times(spans)
    return int(min(MOST_TIMES, max(LEAST_TIMES, budget_us / max(0.1, times[len(times) // 2]))))


def measure(job, size, budget_ms):
    job.fill()
    dist.barrier()
    job.launch()
    wrong = torch.tensor([float(job.wrong())])
    dist.all_reduce(wrong)
    n = agree(job, budget_ms * 1e3)
    before = cpu_s()
    spans = [job.once() for _ in range(n)]
    cpu = torch.tensor([cpu_s() - before], dtype=torch.float64)
    dist.all_reduce(cpu)
    times = job.times(spans)
    if job.rank == 0:
        print(json.dumps({"collective": job.name, "size": size, "iterations": n, "time_us": times[n // 2],
                          "min_us": times[0], "cpu_s_per_gb": float(cpu) / (size * n / 1e9), "wrong": int(wrong)}),
              flush=True)


def main():
    rank, world, port, budget_ms = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
    warnings.simplefilter("ignore")  # of names that newer ones replace
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{port}", rank=rank, world_size=world)
    for word in sys.argv[5:]:
        name, size = word.split(":")
        measure(Job(name, int(size), rank, world), int(size), budget_ms)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
