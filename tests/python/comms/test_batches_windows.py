"""Batches, windows, persistent all-gathers and object collectives."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import copy
import gc
import os
from typing import Any, Callable

import numpy
import pytest
import torch

from pccl.comms import (
    BatchP2POptions, P2POp, P2POpType, ReduceOp, TorchComm, TorchCommWinAccessType, get_mem_allocator, new_comm, objcol,
)
from support.ranks import run

UNIFIED, SEPARATE = TorchCommWinAccessType


def with_comm(count: int, function: Callable[[TorchComm], Any], **keywords: Any) -> list[Any]:
    def rank() -> Any:
        comm = new_comm("pccl", "cpu", "test", timeout=30, **keywords)
        result = function(comm)
        comm.finalize()
        return result

    return run(count, rank)


# -- Batches --


def test_batches() -> None:
    def body(comm: TorchComm) -> None:
        rank, size = comm.get_rank(), comm.get_size()
        batch = comm.batch_op_create()
        got: dict[tuple[int, int], torch.Tensor] = {}
        for peer in range(size):  # itself too, many to each
            for k in range(40):
                batch.send(torch.full((3,), 1000.0 * rank + 10 * k + peer), dst=peer)
        for peer in range(size):
            for k in range(40):
                got[peer, k] = torch.zeros(3)
                batch.recv(got[peer, k], src=peer)
        for _ in range(2):  # issuing does not clear it
            work = batch.issue(async_op=True, options=BatchP2POptions(timeout=20))
            work.wait()
            assert work.is_completed()
            assert all(tensor[2].item() == 1000.0 * peer + 10 * k + rank for (peer, k), tensor in got.items())
        assert len(batch.ops) == 80 * size and batch.ops[0].type is P2POpType.SEND and batch.ops[0].peer == 0
        if rank < 2:  # only these issue
            other = comm.batch_op_create()
            there = torch.zeros(1)
            other.ops = [P2POp(P2POpType.RECV, there, 1 - rank), P2POp(P2POpType.SEND, torch.tensor([rank + 5.0]), 1 - rank)]
            other.issue(False)
            assert there.item() == 6.0 - rank
        tensor = torch.ones(1)
        comm.all_reduce(tensor, ReduceOp.SUM)
        assert tensor.item() == size
        if rank == 0:
            comm.batch_send([torch.tensor([1]), torch.tensor([2])], 1)
        elif rank == 1:
            two = [torch.zeros(1, dtype=torch.int64) for _ in range(2)]
            comm.batch_recv(two, 0, True).wait()
            assert [int(t) for t in two] == [1, 2]
        assert comm.batch_op_create().issue(True).is_completed()  # empty
        alone = comm.batch_op_create()
        alone.send(torch.ones(2), comm.get_rank())
        with pytest.raises(RuntimeError, match="same size"):
            alone.issue()
        comm.barrier()

    with_comm(3, body)


# -- Windows --


def test_put_signal_wait() -> None:
    def body(comm: TorchComm) -> None:
        rank, size = comm.get_rank(), comm.get_size()
        following, before = (rank + 1) % size, (rank - 1) % size
        mine = torch.zeros(6, dtype=torch.int32)
        window = comm.new_window(mine)
        assert window.get_size() == 24 and window.get_tensor() is mine and window.dtype is torch.int32
        assert window.shape == mine.shape and window.device == mine.device
        assert window.map_remote_tensor(rank) is mine and window.get_attr(rank).access_type is UNIFIED
        for k in range(3):
            window.put(torch.tensor([rank + 1, k], dtype=torch.int32), following, 2 * k, True).wait()
        for _ in range(2):  # n signals are enough for n waits
            window.signal(following)
        for _ in range(2):
            window.wait_signal(before, timeout=20)
        assert mine.tolist() == [before + 1, 0, before + 1, 1, before + 1, 2]
        window.signal(dst_rank=following)
        window.wait_signal(before, True).wait()
        with pytest.raises(RuntimeError, match="timed out"):
            window.wait_signal(before, timeout=0.1)
        comm.barrier()
        got = torch.zeros(2, dtype=torch.int32)
        window.get(got, following, 4, True).wait()
        assert got.tolist() == [rank + 1, 2]  # what this rank put there
        comm.barrier()
        old = [window.fetch_add(10, 0, 5) for _ in range(4)]  # all ranks count at rank 0
        comm.barrier()
        assert old == sorted(old) and all((value - 2) % 10 == 0 for value in old)
        assert rank != 0 or mine[5].item() == 2 + 40 * size
        for text, call in (
            ("exceeds the window size", lambda: window.put(torch.zeros(2, dtype=torch.int32), following, 5)),
            ("exceeds the window size", lambda: window.get(torch.zeros(2, dtype=torch.int32), following, 5)),
            ("exceeds the window size", lambda: window.fetch_add(1, following, 6)),
            ("must be in range", lambda: window.put(torch.zeros(1, dtype=torch.int32), size, 0)),
            ("must be non-negative", lambda: window.signal(following, timeout=-1)),
            ("Double registration", lambda: window.tensor_register(torch.zeros(1))),
            ("valid tensor is required", lambda: window.put(None, following, 0)),
            ("contiguous tensor required", lambda: window.put(torch.zeros(4, 4).t()[1:], following, 0)),
            ("not yet supported by this backend", lambda: window.get_device_window()),
            ("Device mismatch", lambda: window.put(torch.zeros(1, device="meta"), following, 0)),
        ):
            with pytest.raises(RuntimeError, match=text):
                call()
        comm.barrier()
        window.tensor_deregister()
        assert window.get_size() == 0 and window.get_tensor() is None
        with pytest.raises(RuntimeError, match="Double deregistration"):
            window.tensor_deregister()
        with pytest.raises(RuntimeError, match="valid tensor is required"):
            window.signal(following)
        window.tensor_register(torch.ones(rank + 1), owning=False)  # of another size at each
        assert window.get_tensor() is None
        assert copy.copy(window) is window
        window.tensor_deregister()

    with_comm(3, body)


@pytest.mark.parametrize("kind", ("torch", "numpy"))
def test_memory_that_is_shared(kind: str) -> None:
    def body(comm: TorchComm) -> None:
        rank, size = comm.get_rank(), comm.get_size()
        dtype: Any = torch.bfloat16 if kind == "torch" else numpy.int64
        allocator = comm.mem_allocator
        mine = allocator.empty((2, 3), dtype)
        assert tuple(mine.shape) == (2, 3) and float(mine.sum()) == 0
        part = mine[1]  # of a segment
        window = comm.new_window(part)
        views = [window.map_remote_tensor(r) for r in range(size)]
        assert all(window.get_attr(r).access_type is UNIFIED for r in range(size))
        part[:] = rank + 1
        comm.barrier()
        assert [[float(x) for x in view] for view in views] == [[r + 1.0] * 3 for r in range(size)]
        comm.barrier()
        views[(rank + 1) % size][rank] = 50  # written in the other's memory
        comm.barrier()
        assert float(part[(rank - 1) % size]) == 50 and float(mine[0].sum()) == 0
        twin = copy.deepcopy(window)
        assert twin is not window and [float(x) for x in twin.get_tensor()] == [float(x) for x in part]
        twin.tensor_deregister()
        window.tensor_deregister()
        with pytest.raises(RuntimeError, match="valid tensor is required"):
            window.map_remote_tensor(0)
        plain = comm.new_window(torch.zeros(2) if kind == "torch" else numpy.zeros(2))
        other = (rank + 1) % size
        assert plain.get_attr(other).access_type is SEPARATE
        with pytest.raises(RuntimeError, match="SEPARATE"):
            plain.map_remote_tensor(other)
        plain.tensor_deregister()
        before = len(os.listdir("/proc/self/fd"))
        del mine, part, window, views, twin, plain
        gc.collect()
        assert len(os.listdir("/proc/self/fd")) < before  # the segments have gone

    with_comm(2, body)


def test_allocators_by_name() -> None:
    assert get_mem_allocator("pccl").empty(3).tolist() == [0.0] * 3
    with pytest.raises(RuntimeError, match="No allocator factory registered for backend"):
        get_mem_allocator("nonsense")


# -- Registered memory --


def test_persistent_all_gather_and_registration() -> None:
    def body(comm: TorchComm) -> None:
        rank, size = comm.get_rank(), comm.get_size()
        output = torch.zeros(2 * size)
        comm.tensor_register(output)
        handle = comm.all_gather_p_init(output, hints={"a": "b"}, timeout=20)
        for k in range(3):
            comm.all_gather_p_exec(handle, torch.full((2,), 10.0 * k + rank), True).wait()
            assert output.tolist() == [10.0 * k + r for r in range(size) for _ in range(2)]
        comm.all_gather_p_free(handle)
        with pytest.raises(RuntimeError, match="was freed"):
            comm.all_gather_p_exec(handle, torch.zeros(2))
        with pytest.raises(RuntimeError, match="divisible by comm_size"):
            comm.all_gather_p_init(torch.zeros(2 * size + 1))
        comm.tensor_deregister(output)
        with pytest.raises(RuntimeError, match="get_device_transport not implemented for communicator:test"):
            comm.get_device_transport()

    with_comm(2, body)


# -- Objects --


class Own:
    """A class that is not read with weights_only."""

    def __init__(self, value: int) -> None:
        self.value = value


@pytest.mark.parametrize("serialization", ("torch", "pickle"))
def test_object_collectives(serialization: str) -> None:
    def body(comm: TorchComm) -> None:
        setattr(objcol, "_serialization", serialization)
        rank, size = comm.get_rank(), comm.get_size()
        objects: list[Any] = [["foo", "bar" * 100], {"key": (1, 2.5, None)}, 42]
        got: list[Any] = [None] * size
        objcol.all_gather_object(comm, got, objects[rank], timeout=20)
        assert got == objects
        got = [None] * size
        objcol.gather_object(comm, objects[rank], 1, got if rank == 1 else None)
        assert got == (objects if rank == 1 else [None] * size)
        if rank == 0:
            objcol.send_object_list(comm, objects, 2)
        elif rank == 2:
            got = [None] * 3
            objcol.recv_object_list(comm, got, 0)
            assert got == objects
        told = list(objects) if rank == 1 else [None] * 3
        objcol.broadcast_object_list(comm, told, 1)
        assert told == objects
        one: list[Any] = [None]
        objcol.scatter_object_list(comm, 2, one, objects if rank == 2 else None)
        assert one == [objects[rank]]
        with pytest.raises(ValueError):
            objcol.scatter_object_list(comm, rank, [None], None)
        with pytest.raises(ValueError):
            objcol.scatter_object_list(comm, 0, [], None)
        with pytest.raises(AssertionError):
            objcol.gather_object(comm, 1, rank)
        objcol.all_gather_object(comm, got, Own(rank), weights_only=False)
        assert [item.value for item in got] == [0, 1, 2]
        with pytest.raises(Exception, match="weights_only"):
            objcol.all_gather_object(comm, got, Own(rank))
        numbers: list[Any] = [None] * size
        objcol.all_gather_object(comm, numbers, numpy.arange(rank + 1) if serialization == "pickle" else torch.arange(rank + 1))
        assert [item.tolist() for item in numbers] == [[0], [0, 1], [0, 1, 2]]
        comm.barrier()

    with_comm(3, body)
