"""The complete program of the getting-started guide, call by call, in Python: hello_world.py MASTER.

Five steps: update (but for the first), optimise, all-reduce with retry, raise the revision, synchronise.
"""
# SPDX-License-Identifier: MIT
import sys
import time

import numpy as np
import pccl
from pccl import Attribute, Communicator, DataType, PCCLError, ReduceOp, ReduceOperandDescriptor, Result, SharedState, TensorInfo

MAX_STEPS = 5

communicator = Communicator(sys.argv[1], peer_group=0)
communicator.connect()
print("[Peer] Connected!")

local_iter = 0
dummy_weights = np.zeros(8, np.float32)
shared_state = SharedState([TensorInfo.from_numpy(dummy_weights, "myWeights", allow_content_inequality=False)])
world_size = communicator.get_attribute(Attribute.GLOBAL_WORLD_SIZE)
while True:
    if local_iter > 0:
        while True:
            try:
                communicator.update_topology()
                break
            except PCCLError as error:
                assert error.result is Result.UPDATE_TOPOLOGY_FAILED
                print("[Peer] UpdateTopology failed => retrying...")
                time.sleep(0.1)
        world_size = communicator.get_attribute(Attribute.GLOBAL_WORLD_SIZE)

    if world_size > 1:
        while True:
            try:
                communicator.optimize_topology()
                break
            except PCCLError as error:
                assert error.result is Result.TOPOLOGY_OPTIMIZATION_FAILED
                print("[Peer] OptimizeTopology failed => retrying...")
                time.sleep(0.1)
        world_size = communicator.get_attribute(Attribute.GLOBAL_WORLD_SIZE)
    else:
        print("[Peer] alone => sleeping.")
        time.sleep(0.1)
        local_iter += 1
        continue

    local_data = np.array([shared_state.revision * 10 + k + 1 for k in range(4)], np.float32)
    result_data = np.zeros(4, np.float32)
    all_reduce_fatal_failure = False
    while True:
        try:
            reduce_info = communicator.all_reduce(
                local_data, result_data, op=ReduceOp.SUM, tag=0, operand_descriptor=ReduceOperandDescriptor(DataType.FLOAT)
            )
            print(f"[Peer] All-Reduce => result = {result_data.tolist()}, Tx={reduce_info.tx_bytes}, Rx={reduce_info.rx_bytes}")
            break
        except PCCLError as error:
            print(f"[Peer] All-Reduce fail: {error.result}; Retrying...")
            world_size = communicator.get_attribute(Attribute.GLOBAL_WORLD_SIZE)
            if world_size < 2:
                all_reduce_fatal_failure = True
                break
    if all_reduce_fatal_failure:
        local_iter += 1
        continue

    shared_state.push_revision()
    sync_info = communicator.sync_shared_state(shared_state)
    print(f"[Peer] shared_revision now {shared_state.revision}, sync => tx={sync_info.tx_bytes}, rx={sync_info.rx_bytes}")
    if shared_state.revision >= MAX_STEPS:
        print(f"[Peer] Reached revision {shared_state.revision} => done.")
        break
    local_iter += 1

print("[Peer] Exiting.", pccl.__version__)
