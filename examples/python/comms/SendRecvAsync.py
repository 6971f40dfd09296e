"""Messages around a ring: all send and receive at once.  Start it with

    pip install ".[examples]"        in the folder of the clone: what it needs
    torchrun --standalone --nproc_per_node 4 examples/python/comms/SendRecvAsync.py
"""
# SPDX-License-Identifier: MIT
import torch

from pccl.comms import new_comm


def main() -> None:
    comm = new_comm("pccl", torch.device("cpu"), name="main_comm")
    rank, size = comm.get_rank(), comm.get_size()
    sent, received = torch.full((1024,), float(rank)), torch.zeros(1024)
    works = [comm.send(sent, (rank + 1) % size, async_op=True), comm.recv(received, (rank - 1) % size, async_op=True)]
    for work in works:
        work.wait()
    print(f"Rank {rank}: Received {received[0].item()} from rank {(rank - 1) % size}")
    comm.finalize()


main()
