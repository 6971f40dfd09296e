"""A communicator that goes on without a lost rank.  Start it with

    pip install ".[examples]"        in the folder of the clone: what it needs
    torchrun --standalone --nproc_per_node 4 examples/python/comms/Reconfigure.py
"""
# SPDX-License-Identifier: MIT
import os

import torch
import torch.distributed as dist

from pccl.comms import OperationError, ReduceOp, new_comm


def main() -> None:
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    store = dist.TCPStore(os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]), size, False)  # torchrun serves it
    comm = new_comm("pccl", torch.device("cpu"), name="main_comm", enable_reconfigure=True)

    def handles(attempt: int, ranks: list[int]) -> list[str]:
        """Everybody's handle, by the launcher's store; any other means would do."""
        store.set(f"{attempt}/{rank}", comm.get_init_handle())
        return [store.get(f"{attempt}/{other}").decode() for other in ranks]

    comm.reconfigure(1, handles(1, list(range(size))))
    if rank == size - 1:  # is lost
        comm.abort()
        return
    tensor = torch.ones(1)
    try:
        comm.all_reduce(tensor, ReduceOp.SUM)
    except OperationError:
        comm.reconfigure(2, handles(2, list(range(size - 1))))
        comm.all_reduce(tensor, ReduceOp.SUM)
    print(f"Rank {rank}: {tensor.item()} of {size} ranks are left")
    comm.finalize()


main()
