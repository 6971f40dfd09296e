#!/usr/bin/env python3
"""distant_gloo.py BYTES CALLS BUDGET_S IDLE_S - what distant_sums.c does, with Gloo through torch.distributed; see distant.h.

All-reduce is in place, as torch has it.  A line of JSON for each call.
SPDX-License-Identifier: MIT
"""
import json
import mmap
import os
import sys
import time
import warnings

import torch
import torch.distributed as dist

MOST, LOOK_S, PERIOD = 64, 200e-6, 13
GO_ON, STOP, FAILED = 0, 1, 2


class Distant:
    """The ranks' meeting, as in distant.h."""

    def __init__(self, words):
        self.bytes, self.calls, self.budget_s, self.idle_s = int(words[0]), int(words[1]), float(words[2]), float(words[3])
        self.rank, self.world = int(os.environ["PCCL_WAN_RANK"]), int(os.environ["PCCL_WAN_HOSTS"])
        self.meetings = 0
        with open(os.environ["DISTANT_MEET"], "r+b") as f:
            self.file = mmap.mmap(f.fileno(), 1 + MOST)

    def meet(self):
        self.meetings = (self.meetings + 1) % 256
        self.file[1 + self.rank] = self.meetings
        for r in range(self.world):
            while (self.file[1 + r] - self.meetings) % 256 >= 128:
                if self.file[0] == FAILED:
                    sys.exit("meeting: another rank has failed")
                time.sleep(LOOK_S)

    def order(self, given):
        if self.rank == 0 and self.file[0] != FAILED:
            self.file[0] = given

    def once(self, job, kind):
        """One call; its seconds, None: the order was to stop."""
        job.begin()
        self.meet()
        if self.file[0] == STOP:
            return None
        start = time.monotonic()
        job.call()
        end = time.monotonic()
        print(json.dumps({"kind": kind, "rank": self.rank, "start_s": start, "end_s": end, "wrong": job.wrong()}), flush=True)
        return end - start

    def measure(self, job):
        spent, number, one = 0.0, 0, self.once(job, "first")
        while one is not None:
            if number >= self.calls or (number > 0 and spent >= self.budget_s):
                self.order(STOP)
            one = self.once(job, "warm")
            spent += one or 0
            number += 1
        self.meet()
        if self.idle_s > 0:
            self.order(GO_ON)
            time.sleep(self.idle_s)
            self.once(job, "idle")


class Sum:
    def __init__(self, distant, group):
        pattern = torch.arange(max(1, distant.bytes // 4), dtype=torch.int64) % PERIOD
        self.given = (pattern + distant.rank).to(torch.float32)
        self.wanted = (pattern * distant.world + distant.world * (distant.world - 1) // 2).to(torch.float32)
        self.buffer, self.group = self.given.clone(), group

    def begin(self):
        self.buffer.copy_(self.given)

    def call(self):
        self.group.allreduce([self.buffer]).wait()

    def wrong(self):
        return int((self.buffer != self.wanted).sum())


def join(distant):
    """The interface has the host's name.  torch ignores GLOO_SOCKET_IFNAME where that is a single letter, hence not init_process_group."""
    options = dist.ProcessGroupGloo._Options()
    options._devices = [dist.ProcessGroupGloo.create_device(interface=os.environ["PCCL_WAN_HOST"])]
    store = dist.FileStore(os.environ["DISTANT_MEET"] + ".store", distant.world)  # a TCPStore asks for names, and waits
    return dist.ProcessGroupGloo(store, distant.rank, distant.world, options), store


def main():
    distant = Distant(sys.argv[1:])
    try:
        warnings.simplefilter("ignore")
        torch.set_num_threads(1)
        group, store = join(distant)
        distant.measure(Sum(distant, group))
        distant.meet()
        del group, store
        distant.meet()
    except BaseException:
        distant.file[0] = FAILED
        raise


if __name__ == "__main__":
    main()
