"""What every back-end of communicators that moves data has to do."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import itertools

import torch

from pccl.comms import ReduceOp, TorchComm


def every_operation(comm: TorchComm) -> None:
    """Each operation once, by value; what all back-ends that move data have to do."""
    rank, size = comm.get_rank(), comm.get_size()
    for dtype, count in itertools.product((torch.float32, torch.int64), (0, 3)):
        inputs = [torch.arange(count, dtype=dtype) * (r + 1) + r for r in range(size)]
        mine, total = inputs[rank].clone(), torch.stack(inputs).sum(0)
        tensor = mine.clone()
        comm.all_reduce(tensor, ReduceOp.SUM, True).wait()
        assert torch.equal(tensor, total)
        tensor = mine.clone()
        comm.all_reduce(tensor, ReduceOp.AVG)
        torch.testing.assert_close(tensor, total.div(size, rounding_mode=None if dtype.is_floating_point else "trunc").to(dtype))
        tensor = mine.clone()
        comm.reduce(tensor, size - 1, ReduceOp.MAX)
        assert torch.equal(tensor, torch.stack(inputs).amax(0) if rank == size - 1 and count else mine)
        tensor = mine.clone()
        comm.broadcast(tensor, size - 1)
        assert torch.equal(tensor, inputs[-1])
        outputs = [torch.zeros_like(mine) for _ in range(size)]
        comm.all_gather(outputs, mine, True).wait()
        assert all(map(torch.equal, outputs, inputs))
        whole = torch.zeros(size * count, dtype=dtype)
        comm.all_gather_single(whole, mine)
        assert torch.equal(whole, torch.cat(inputs))
        parts = [[torch.full((count,), 10 * r + to, dtype=dtype) for to in range(size)] for r in range(size)]
        kept = [part.clone() for part in parts[rank]]
        wanted = torch.stack([parts[r][rank] for r in range(size)]).sum(0)
        for output in (torch.zeros(count, dtype=dtype), torch.ones(count, dtype=dtype)):
            comm.reduce_scatter(output, parts[rank], ReduceOp.SUM, True).wait()
            assert torch.equal(output, wanted) and all(map(torch.equal, parts[rank], kept))
        output = torch.zeros(count, dtype=dtype)
        comm.reduce_scatter_single(output, torch.cat(parts[rank]), ReduceOp.SUM)
        assert torch.equal(output, wanted)
        got = [torch.zeros_like(mine) for _ in range(size)]
        comm.all_to_all(got, parts[rank])
        assert all(torch.equal(got[r], parts[r][rank]) for r in range(size))
        whole.zero_()
        comm.all_to_all_single(whole, torch.cat(parts[rank]))
        assert torch.equal(whole, torch.cat([parts[r][rank] for r in range(size)]))
        target = torch.zeros_like(mine)
        comm.scatter(target, parts[0] if rank == 0 else [], 0)
        assert torch.equal(target, parts[0][rank])
        outputs = [torch.zeros_like(mine) for _ in range(size)]
        comm.gather(outputs if rank == 0 else [], mine, 0)
        assert rank or all(map(torch.equal, outputs, inputs))
        whole.zero_()
        comm.gather_single(whole, mine, 0)
        assert rank or torch.equal(whole, torch.cat(inputs))
    scaled = torch.tensor([rank + 1.0])
    comm.all_reduce(scaled, ReduceOp.PREMUL_SUM(0.5))
    assert scaled.item() == sum(range(1, size + 1)) / 2
    outputs = [torch.zeros(r + 1) for r in range(size)]
    comm.all_gather_v(outputs, torch.full((rank + 1,), float(rank)))
    assert [out.tolist() for out in outputs] == [[float(r)] * (r + 1) for r in range(size)]
    output = torch.zeros(rank + 1)
    comm.reduce_scatter_v(output, [torch.ones(r + 1) for r in range(size)], ReduceOp.SUM)
    assert output.tolist() == [float(size)] * (rank + 1)
    rows = [r + 1 for r in range(size)]  # rank r gets r + 1 rows of each
    received = torch.zeros(size * (rank + 1), 2)
    comm.all_to_all_v_single(received, torch.full((sum(rows), 2), float(rank)), [rank + 1] * size, rows)
    assert received[:, 1].tolist() == [float(r) for r in range(size) for _ in range(rank + 1)]
    comm.barrier()
    if size > 1:
        following, before = (rank + 1) % size, (rank - 1) % size
        there = torch.zeros(2)
        works = [comm.send(torch.full((2,), float(rank)), following, True), comm.recv(there, before, True)]
        for work in works:
            work.wait()
        assert there.tolist() == [float(before)] * 2
        batch = comm.batch_op_create()
        slots = [torch.zeros(1) for _ in range(size)]
        for peer in range(size):
            batch.send(torch.tensor([10.0 * rank + peer]), peer)
            batch.recv(slots[peer], peer)
        batch.issue(True).wait()
        assert [slot.item() for slot in slots] == [10.0 * peer + rank for peer in range(size)]
