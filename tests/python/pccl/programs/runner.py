"""A peer that writes its step only: runner.py MASTER SLOT.  All end after the step in which one of them has read "end".

Whoever took part, the mean of the step is the same, so the state says how often steps were counted; and a sum names who took part.
"""
# SPDX-License-Identifier: MIT
import sys
import threading

import numpy as np
import pccl

MASTER, SLOT = sys.argv[1], int(sys.argv[2])
weights = np.zeros(16)
took_part = np.zeros(1)
asked = threading.Event()


def train(step: pccl.Step) -> None:
    assert weights.tolist() == [i * sum(range(step.index)) for i in range(16)], (step.index, weights)
    mean = np.arange(16) * float(step.index)
    who = np.array([1 << SLOT, asked.is_set()], np.int64)
    step.all_reduce(mean)
    info = step.all_reduce(who, op=pccl.ReduceOp.SUM)
    assert who[0] >> SLOT & 1 and bin(who[0]).count("1") == info.local_world_size <= step.world_size
    assert mean.tolist() == [i * step.index for i in range(16)]
    weights[:] += mean
    took_part[0] += who[0]
    print(f"done {step.index} by {who[0]:b}")
    if who[1]:
        step.end()


threading.Thread(target=lambda: (sys.stdin.readline(), asked.set()), daemon=True).start()
steps = pccl.run(MASTER, train, state={"weights": weights, "took part": took_part})
print("end", steps, weights.tolist() == [i * sum(range(steps)) for i in range(16)], took_part[0])
