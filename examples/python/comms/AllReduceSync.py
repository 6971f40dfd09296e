"""An all-reduce that is waited for.  Start it with

    pip install ".[examples]"        in the folder of the clone: what it needs
    torchrun --standalone --nproc_per_node 4 examples/python/comms/AllReduceSync.py
"""
# SPDX-License-Identifier: MIT
import torch

from pccl.comms import ReduceOp, new_comm


def main() -> None:
    comm = new_comm("pccl", torch.device("cpu"), name="main_comm")
    rank = comm.get_rank()
    tensor = torch.full((1024,), float(rank + 1))
    print(f"Rank {rank}: Before AllReduce: {tensor[0].item()}")
    comm.all_reduce(tensor, ReduceOp.SUM, async_op=False)
    print(f"Rank {rank}: After AllReduce: {tensor[0].item()}")
    comm.finalize()


main()
