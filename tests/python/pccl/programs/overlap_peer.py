"""A peer of the original's second stress pattern: the reduces of a step run in a second thread during the next one, while the main
thread asks whether newcomers wait.

overlap_peer.py MASTER SLOT.  Uses nothing that the original has not.  When a question is answered by yes, all join their threads,
take in what they have reduced, update, and synchronise.
"""
# SPDX-License-Identifier: MIT
import sys
import threading
import time

import numpy as np
from pccl import (
    Attribute, Communicator, DataType, PCCLError, QuantizationAlgorithm, QuantizationOptions, ReduceDescriptor, ReduceOp,
    ReduceOpDescriptor, ReduceOperandDescriptor, Result, SharedState, TensorInfo,
)

ADDRESS, SLOT = sys.argv[1], int(sys.argv[2])
QUESTIONS = 4  # of a step
TENSORS = 5


class Reduction(threading.Thread):
    """What one step reduces."""

    def __init__(self, communicator: Communicator, step: int) -> None:
        super().__init__()
        self.communicator = communicator
        self.step = step
        self.given = [np.array([1 << SLOT, 1, step + tag] * (100 * tag + 1), np.float64) for tag in range(TENSORS)]
        self.sums = [np.zeros_like(one) for one in self.given]
        self.failure = None

    def run(self) -> None:
        operand = ReduceOperandDescriptor(DataType.DOUBLE)
        plain = QuantizationOptions(DataType.DOUBLE, QuantizationAlgorithm.NONE)
        try:
            self.communicator.all_reduce_multiple_with_retry([
                ReduceOpDescriptor.from_numpy(send, recv, ReduceDescriptor(send.size, ReduceOp.SUM, tag, operand, plain))
                for tag, (send, recv) in enumerate(zip(self.given, self.sums))
            ], max_in_flight=TENSORS)
        except PCCLError as error:
            self.failure = error

    def finish(self) -> bool:
        """Whether it was a step; checks each number."""
        self.join()
        if self.failure is not None:
            assert self.failure.result is Result.TOO_FEW_PEERS, self.failure
            return False
        for tag, (given, total) in enumerate(zip(self.given, self.sums)):
            who, count, steps = map(int, total[:3])
            assert (total.reshape(-1, 3) == [who, count, steps]).all()
            assert who >> SLOT & 1 and bin(who).count("1") == count, f"{who:b} {count}"
            assert steps == (self.step + tag) * count, f"{steps} is not {self.step + tag} times {count}"
            assert (given.reshape(-1, 3) == [1 << SLOT, 1, self.step + tag]).all()
        return True


def update(communicator: Communicator) -> None:
    while True:
        try:
            communicator.update_topology()
            return
        except PCCLError as error:
            assert error.result is Result.UPDATE_TOPOLOGY_FAILED, error


def main() -> None:
    communicator = Communicator(ADDRESS, 0)
    communicator.connect(n_attempts=15)
    state = np.zeros(2)  # how many steps, and the sum of all that they have reduced
    shared_state = SharedState([TensorInfo.from_numpy(state, "state")])
    reduction = None  # in flight; None: the peers meet
    admitted = True  # by the others' update, which is over
    synchronized = False
    while True:
        if reduction is None:
            if not admitted:
                update(communicator)
            admitted = False
            if communicator.get_attribute(Attribute.GLOBAL_WORLD_SIZE) < 2:
                time.sleep(0.02)
                continue
            if synchronized:
                shared_state.push_revision()
            info = communicator.sync_shared_state(shared_state)
            assert info.rx_bytes == 0 or not synchronized, "states differ"
            synchronized = True
            reduction = Reduction(communicator, int(state[0]))
            reduction.start()

        for _ in range(QUESTIONS):  # while the next step computes
            pending = communicator.are_peers_pending()
            if pending:
                break
        if not reduction.finish():
            reduction = None  # alone, until somebody comes
            continue
        state += 1, int(reduction.sums[0][0])
        print(f"step {int(state[0])} of {int(reduction.sums[0][0]):b}")
        reduction = None
        if not pending:
            reduction = Reduction(communicator, int(state[0]))
            reduction.start()


main()
