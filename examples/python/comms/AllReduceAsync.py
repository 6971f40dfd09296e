"""Work beside an all-reduce.  Start it with

    pip install ".[examples]"        in the folder of the clone: what it needs
    torchrun --standalone --nproc_per_node 4 examples/python/comms/AllReduceAsync.py
"""
# SPDX-License-Identifier: MIT
import torch

from pccl.comms import ReduceOp, new_comm


def main() -> None:
    comm = new_comm("pccl", torch.device("cpu"), name="main_comm")
    rank = comm.get_rank()
    tensor = torch.full((1024,), float(rank + 1))
    work = comm.all_reduce(tensor, ReduceOp.AVG, async_op=True)
    other = torch.eye(64).matmul(torch.eye(64)).trace()  # meanwhile
    work.wait()
    print(f"Rank {rank}: average {tensor[0].item()}, and {other.item()}")
    comm.finalize()


main()
