"""The counter-example: three processes in one world of plain torch.distributed, where a sender's death concerns all.

    pip install ".[examples]"        in the folder of the clone: what it needs

Rank 0 receives from the others in turn.  Kill one: with gloo each receive from it fails from then on, and nothing says which ranks are
usable; with nccl the communicator is aborted, and both sources are lost.  Run it beside m8d.py: `single_world.py --worldsize 3`.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import argparse
import multiprocessing
import os
import time

import torch
import torch.distributed as dist


def work(rank: int, options: argparse.Namespace) -> None:
    """One rank."""
    if options.backend == "nccl":
        os.environ["TORCH_NCCL_ASYNC_ERROR_HANDLING"] = "2" if options.nccl_async_error_handle_cleanup else "0"
    device = torch.device(f"cuda:{rank}" if options.backend == "nccl" else "cpu")
    print(f"rank {rank} is process {os.getpid()}", flush=True)
    dist.init_process_group(
        options.backend, init_method=f"tcp://{options.addr}:{options.port}", rank=rank, world_size=options.worldsize
    )
    count = 0
    while count < options.steps or options.steps == 0:
        count += 1
        if rank != 0:
            time.sleep(options.pause)
        for source in range(1, options.worldsize) if rank == 0 else (0,):
            tensor = torch.zeros(1, device=device) if rank == 0 else torch.ones(1, device=device) * rank
            try:
                if rank == 0:
                    dist.recv(tensor, source)
                    print(f"received {tensor} from rank {source}", flush=True)
                else:
                    dist.send(tensor, 0)
                    print(f"rank {rank} sent {tensor}", flush=True)
            except Exception as error:
                print(f"caught an exception, rank {source}: {error}", flush=True)
    print(f"rank {rank} got out of the loop", flush=True)


def main() -> None:
    """All ranks of this host, or with --multihost one of them."""
    parser = argparse.ArgumentParser(description="One world of torch.distributed.", formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--backend", choices=("gloo", "nccl"), default="gloo")
    parser.add_argument("--addr", default="127.0.0.1", help="the host of rank 0")
    parser.add_argument("--port", type=int, default=29500)
    parser.add_argument("--rank", type=int, default=0, help="with --multihost: this process's")
    parser.add_argument("--worldsize", type=int, default=2)
    parser.add_argument("--multihost", action=argparse.BooleanOptionalAction, default=False)
    parser.add_argument("--nccl_async_error_handle_cleanup", action=argparse.BooleanOptionalAction, default=False)
    parser.add_argument("--steps", type=int, default=0, help="0: for ever")
    parser.add_argument("--pause", type=float, default=2.0, help="seconds between two messages")
    options = parser.parse_args()
    if options.multihost:
        work(options.rank, options)
        return
    processes = [multiprocessing.get_context("fork").Process(target=work, args=(rank, options)) for rank in range(options.worldsize)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()


if __name__ == "__main__":
    main()
