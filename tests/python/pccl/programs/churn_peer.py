"""A peer of the original's first stress pattern: the recommended loop, while others come and are killed at any moment.

churn_peer.py MASTER SLOT.  Uses nothing that the original has not.  Each peer adds the bit of its slot, so that a sum names who took
part; all numbers of the state follow from the results, so that after the first synchronisation nothing may be received.
"""
# SPDX-License-Identifier: MIT
import array
import sys
import time

from pccl import Attribute, Communicator, PCCLError, ReduceOp, Result, SharedState, TensorInfo, DataType
from pccl import DeviceType

ADDRESS, SLOT = sys.argv[1], int(sys.argv[2])


def entry(name: str, numbers: array.array) -> TensorInfo:
    return TensorInfo(
        name, numbers.buffer_info()[0], numel=len(numbers), dtype=DataType.DOUBLE, device_type=DeviceType.CPU, allow_content_inequality=False,
    )


def main() -> None:
    communicator = Communicator(ADDRESS, 0)
    communicator.connect(n_attempts=15)
    step, weights = array.array("d", [0]), array.array("d", [0] * 1024)
    shared_state = SharedState([entry("step", step), entry("weights", weights)])
    iteration = -1
    synchronized = False
    while True:
        iteration += 1
        if iteration > 0:
            while True:
                try:
                    communicator.update_topology()
                    break
                except PCCLError as error:
                    assert error.result is Result.UPDATE_TOPOLOGY_FAILED, error
        world_size = communicator.get_attribute(Attribute.GLOBAL_WORLD_SIZE)
        if world_size < 2:
            time.sleep(0.02)
            continue
        if synchronized:
            shared_state.push_revision()
        info = communicator.sync_shared_state(shared_state)
        assert info.rx_bytes == 0 or not synchronized, f"step {step[0]}: states differ"
        synchronized = True

        send = array.array("d", [1 << SLOT, 1, step[0]] * 1024)
        recv = array.array("d", [0] * len(send))
        while world_size > 1:
            try:
                reduced = communicator.all_reduce(send, recv, op=ReduceOp.SUM)
                break
            except PCCLError as error:
                assert error.result in (Result.RANK_CONNECTION_LOST, Result.TOO_FEW_PEERS), error
                world_size = communicator.get_attribute(Attribute.LOCAL_WORLD_SIZE)
        if world_size < 2:
            continue
        who, count, steps = int(recv[0]), int(recv[1]), recv[2]
        assert recv.tolist() == [who, count, steps] * 1024
        assert who >> SLOT & 1 and bin(who).count("1") == count == reduced.local_world_size, f"{who:b} {count} {reduced.local_world_size}"
        assert steps == step[0] * count, f"{steps} is not {step[0]} times {count}"
        assert send.tolist() == [1 << SLOT, 1, step[0]] * 1024
        step[0] += 1
        for i in range(len(weights)):
            weights[i] += who * (i + 1)
        print(f"step {int(step[0])} of {who:b}")


main()
