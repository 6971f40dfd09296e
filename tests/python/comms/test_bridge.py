"""The c10d bridge and device meshes: torch.distributed, DDP and FSDP2 over communicators."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import copy
import datetime
from typing import Any, Callable

import pytest
import torch
import torch.distributed as dist
from torch import nn

from pccl.comms import TorchComm, new_comm
from support.callbacks import waits_in_callbacks
from support.ranks import run
from support.training import three_steps


def with_comm(count: int, function: Callable[[TorchComm], Any]) -> list[Any]:
    def rank() -> Any:
        return function(new_comm("pccl", torch.device("cpu"), "bridged", timeout=60))

    return run(count, rank)


def test_collectives_of_torch() -> None:
    from pccl.comms.device_mesh import init_device_mesh

    def body(comm: TorchComm) -> None:
        rank, size = comm.get_rank(), comm.get_size()
        ids: list[int] = []
        comm.register_pre_hook(lambda name, op_id, args: ids.append(op_id))
        mesh = init_device_mesh((comm,), ("world",))
        assert mesh.size() == size and mesh.get_local_rank() == rank and dist.get_rank() == rank and dist.get_world_size() == size
        tensor = torch.tensor([rank + 1.0])
        dist.all_reduce(tensor)
        assert tensor.item() == 6 and len(ids) == 1
        work = dist.all_reduce(tensor, dist.ReduceOp.AVG, async_op=True)
        assert work is not None
        work.wait()
        assert tensor.item() == 6 and work.is_completed() and work.exception() is None
        wide = torch.zeros(4, 2).t()  # not contiguous
        dist.all_reduce(wide.fill_(1))
        assert wide.tolist() == [[3.0] * 4] * 2
        outputs = [torch.zeros(2) for _ in range(size)]
        dist.all_gather(outputs, torch.full((2,), float(rank)))
        assert [out[1].item() for out in outputs] == [0.0, 1.0, 2.0]
        whole = torch.zeros(size)
        dist.all_gather_into_tensor(whole, torch.tensor([float(rank)]))
        assert whole.tolist() == [0.0, 1.0, 2.0]
        part = torch.zeros(1)
        dist.reduce_scatter_tensor(part, torch.arange(3.0))
        assert part.item() == 3 * rank
        dist.reduce_scatter(part, [torch.tensor([float(k)]) for k in range(size)], dist.ReduceOp.MAX)
        assert part.item() == rank
        dist.broadcast(tensor.fill_(rank), 2)
        assert tensor.item() == 2
        dist.reduce(tensor.fill_(1), 1)
        assert tensor.item() == (3 if rank == 1 else 1)
        dist.scatter(part, [torch.tensor([5.0 + k]) for k in range(size)] if rank == 0 else None, 0)
        assert part.item() == 5 + rank
        dist.gather(part, outputs := [torch.zeros(1) for _ in range(size)] if rank == 2 else None, 2)
        assert rank != 2 or [out.item() for out in outputs or []] == [5.0, 6.0, 7.0]
        received = torch.zeros(size)
        dist.all_to_all_single(received, torch.arange(3.0) + 10 * rank)
        assert received.tolist() == [10.0 * k + rank for k in range(size)]
        got = [torch.zeros(rank + 1) for _ in range(size)]
        dist.all_to_all(got, [torch.full((k + 1,), float(rank)) for k in range(size)])
        assert [piece.tolist() for piece in got] == [[float(k)] * (rank + 1) for k in range(size)]
        works = dist.batch_isend_irecv([
            dist.P2POp(dist.isend, torch.tensor([float(rank)]), (rank + 1) % size), dist.P2POp(dist.irecv, part, (rank - 1) % size),
        ])
        for one in works:
            one.wait()
        assert part.item() == (rank - 1) % size
        if rank == 0:
            for one in [dist.isend(torch.tensor([float(tag)]), 1, tag=tag) for tag in (1, 2)]:
                assert one is not None and one.wait()
        elif rank == 1:
            for tag in (2, 1):
                dist.recv(part, 0, tag=tag)
                assert part.item() == tag
        sparse = torch.sparse_coo_tensor([[rank, 4]], [[1.0, 2.0], [rank, 1.0]], (5, 2))  # one row of its own, one in common
        dist.all_reduce(sparse)
        assert sparse.to_dense().tolist() == [[1, 2]] * 3 + [[0, 0], [3, 3]]
        with pytest.raises(ValueError, match="summed up only"):
            dist.all_reduce(sparse, dist.ReduceOp.MAX)
        objects: list[Any] = [None] * size
        dist.all_gather_object(objects, {"rank": rank})
        assert objects == [{"rank": k} for k in range(size)]
        dist.barrier()
        assert dist.get_backend() == "torchcomm" and dist.get_process_group_ranks(dist.group.WORLD) == [0, 1, 2]
        dist.destroy_process_group()
        with pytest.raises(RuntimeError, match="not initialized"):
            comm.barrier()

    with_comm(3, body)


def test_the_group_itself() -> None:
    from pccl.comms.process_group import BackendWrapper

    def body(comm: TorchComm) -> None:
        rank = comm.get_rank()
        group = BackendWrapper(comm)
        assert group.get_comm() is comm and group.name() == "pccl" and group.rank() == rank and group.size() == 3
        with pytest.raises(ValueError, match="Only single"):
            group.allreduce([torch.zeros(1), torch.zeros(1)])
        failed = group.allreduce([torch.zeros(1, dtype=torch.complex64)])  # a work, no raise
        with pytest.raises(RuntimeError, match="Invalid scalar type"):
            failed.wait()
        assert isinstance(failed.exception(), RuntimeError)
        group._set_default_timeout(datetime.timedelta(seconds=30))
        work = group.allreduce([tensor := torch.ones(2)])
        assert group._verify_work_timeout(work, datetime.timedelta(seconds=30))
        assert work.get_future().wait() == [tensor] and tensor.tolist() == [3.0, 3.0]
        work.wait(datetime.timedelta(seconds=10))
        options = type("Options", (), {"group_name": "part"})()
        child = group.split(None, [2, 0], options)
        assert (child is None) == (rank == 1)
        if child is not None:
            assert child.get_comm().get_name() == "part" and child.rank() == (0 if rank == 2 else 1)
            child.shutdown()
            child.shutdown()
        group.monitored_barrier(datetime.timedelta(seconds=20))
        if rank == 0:
            with pytest.raises(RuntimeError, match="Ranks 1, 2 failed to pass monitoredBarrier in 200 ms"):
                group.monitored_barrier(datetime.timedelta(milliseconds=200), True)
            with pytest.raises(RuntimeError, match="Rank 1 failed to pass"):
                group.monitored_barrier(datetime.timedelta(milliseconds=200))
        group.barrier().wait()
        group.abort()
        with pytest.raises(RuntimeError, match="aborted|revoked"):
            group.allreduce([torch.ones(1)]).wait()
        group.shutdown()

    with_comm(3, body)


def test_messages_in_a_bracket_are_one_batch() -> None:
    from pccl.comms.process_group import BackendWrapper

    def body(comm: TorchComm) -> None:
        rank, group = comm.get_rank(), BackendWrapper(comm)
        issued: list[str] = []
        comm.register_pre_hook(lambda name, op_id, args: issued.append(name.name))
        for _ in range(2):
            group._start_coalescing(torch.device("cpu"))
            with pytest.raises(RuntimeError, match="called twice"):
                group._start_coalescing()
            got, wide = torch.zeros(2), torch.zeros(4, 2).t()
            works = [
                group.send([torch.full((2,), rank + 1.0)], 1 - rank, 7), group.recv([got], 1 - rank, 9),  # tags do not count
                group.send([torch.full((8,), rank + 5.0)], rank), group.recv([wide], rank),
            ]
            total = torch.ones(1)
            works.append(group.allreduce([total]))
            with pytest.raises(RuntimeError, match="_end_coalescing"):
                works[1].wait()
            assert not works[1].is_completed()
            together = group._end_coalescing(torch.device("cpu"))
            together.wait()
            assert together.is_completed() and all(work.is_completed() for work in works) and len(together.result()) == 5
            assert got.tolist() == [2.0 - rank] * 2 and wide.tolist() == [[rank + 5.0] * 4] * 2 and total.item() == 2
            together.get_future().wait()
        assert issued == ["all_reduce", "batch_op_issue"] * 2
        with pytest.raises(RuntimeError, match="without _start_coalescing"):
            group._end_coalescing()
        group._start_coalescing()
        assert group._end_coalescing().is_completed()
        group._start_coalescing()
        bad = group.send([torch.ones(1)], 9)
        failed = group._end_coalescing()  # the bracket is closed all the same
        for work in (bad, failed):
            with pytest.raises(RuntimeError, match="must be in range"):
                work.wait()
        group.barrier().wait()
        group.shutdown()

    with_comm(2, body)


def test_a_name_without_finite_waits() -> None:
    from pccl.comms.alias import install_as_torchcomms
    from pccl.comms.process_group import BackendWrapper

    def rank() -> None:
        install_as_torchcomms()
        group = BackendWrapper(new_comm("gloo", "cpu", "bridged", timeout=60))
        work = group.allreduce([torch.ones(1)])
        with pytest.raises(RuntimeError, match="wait timeout not supported"):
            work.wait(datetime.timedelta(seconds=1))
        work.wait()
        group.shutdown()

    run(1, rank)


@pytest.mark.parametrize("how", ("ddp", "fsdp2"))
def test_training(how: str) -> None:
    from pccl.comms.device_mesh import init_device_mesh

    expected = three_steps(copy.copy, 0, 1)

    def body(comm: TorchComm) -> None:
        mesh = init_device_mesh((comm,), ("data",))

        def wrap(model: nn.Module) -> nn.Module:
            if how == "ddp":
                return nn.parallel.DistributedDataParallel(model, process_group=mesh.get_group())
            from torch.distributed.fsdp import fully_shard

            fully_shard(model, mesh=mesh)
            return model

        for mine, alone in zip(three_steps(wrap, comm.get_rank(), 2), expected):
            torch.testing.assert_close(mine, alone)
        dist.destroy_process_group()

    with_comm(2, body)


def test_a_mesh_of_two_dimensions() -> None:
    from pccl.comms.device_mesh import init_device_mesh

    def body(comm: TorchComm) -> None:
        rank = comm.get_rank()
        from pccl.comms.device_mesh import _flatten_with_comm

        row = comm.split([rank // 2 * 2, rank // 2 * 2 + 1], "row")
        column = comm.split([rank % 2, rank % 2 + 2], "column")
        assert row is not None and column is not None
        with pytest.raises(RuntimeError, match="no global comm"):
            init_device_mesh((column, row), ("dp", "tp"))
        mesh = init_device_mesh((column, row), ("dp", "tp"), _global_comm=comm)
        assert mesh.mesh.tolist() == [[0, 1], [2, 3]] and list(mesh.get_coordinate() or ()) == [rank // 2, rank % 2]
        for name, total in (("tp", 4 * (rank // 2) + 1), ("dp", 2 * (rank % 2) + 2)):
            tensor = torch.tensor([float(rank)])
            dist.all_reduce(tensor, group=mesh.get_group(name))
            assert tensor.item() == total
        whole = comm.split([0, 1, 2, 3], "whole")
        assert whole is not None
        for name, ranks, text in (("tp", [0, 1, 2, 3], "pass another"), ("all", [1, 0, 2, 3], "by its rank there"), ("all", [0], "has 4 ranks")):
            if rank < 2:
                with pytest.raises(ValueError, match=text):
                    _flatten_with_comm(mesh, name, whole, ranks, None)
        flat = _flatten_with_comm(mesh, "all", whole, [0, 1, 2, 3], mesh._layout)
        assert mesh["all"] == flat and flat.mesh.tolist() == [0, 1, 2, 3] and flat.get_local_rank() == rank and flat.ndim == 1
        dist.all_reduce(tensor := torch.ones(1), group=mesh.get_group("all"))
        assert tensor.item() == 4 and flat.get_group().get_comm() is whole
        from torch.distributed.tensor import Shard, distribute_tensor

        whole = torch.arange(16.0).view(4, 4)
        placed = distribute_tensor(whole, mesh, [Shard(0), Shard(1)])
        assert placed.to_local().tolist() == whole[rank // 2 * 2:rank // 2 * 2 + 2, rank % 2 * 2:rank % 2 * 2 + 2].tolist()
        assert torch.equal(placed.full_tensor(), whole)
        dist.destroy_process_group()

    with_comm(4, body)


def test_callbacks_that_wait() -> None:
    from pccl.comms.device_mesh import init_device_mesh

    def body(comm: TorchComm) -> Any:
        init_device_mesh((comm,), ("world",))
        return waits_in_callbacks(comm.get_rank(), comm.get_size())

    assert with_comm(2, body) == [(12.0, 6.0)] * 2


def test_windows() -> None:
    """As torch's functions for them do, where it has them."""
    from pccl.comms.device_mesh import init_device_mesh

    def body(comm: TorchComm) -> None:
        init_device_mesh((comm,), ("world",))
        group: Any = dist.group.WORLD
        rank, size = comm.get_rank(), comm.get_size()
        right, left = (rank + 1) % size, (rank - 1) % size
        mine = torch.zeros(4)
        if hasattr(dist, "_new_window"):
            assert dist._supports_window()
            window = dist._new_window(mine)
        else:
            assert group.supports_window
            window = group.new_window(mine)
        window.put(torch.tensor([rank + 1.0, rank + 2.0]), right, 1, False)
        window.signal(right, False)
        waits = window.wait_signal(left, True)
        assert isinstance(waits, dist.Work)
        waits.wait()
        assert mine.tolist() == [0.0, left + 1.0, left + 2.0, 0.0]
        assert window.map_remote_tensor(rank) is mine
        assert window.get_attr(rank).access_type.name.endswith("UNIFIED") and window.get_attr(left).access_type.name.endswith("SEPARATE")
        with pytest.raises(RuntimeError, match="exceeds the window size"):
            window.put(torch.zeros(4), right, 1, False)
        if hasattr(torch._C._distributed_c10d, "WaitSignalOptions"):
            opts = torch._C._distributed_c10d.WaitSignalOptions()
            opts.timeout = datetime.timedelta(milliseconds=50)
            with pytest.raises(RuntimeError, match="time"):
                window.wait_signal(left, True, opts).wait()
        dist.barrier()
        window.tensor_deregister()
        with pytest.raises(RuntimeError, match="tensor_register first"):
            window.signal(right, False)

    with_comm(3, body)


def test_meshes_one_after_the_other() -> None:
    """The second one failed, as the first one's name was registered."""
    from pccl.comms.device_mesh import init_device_mesh

    def body(comm: TorchComm) -> list[str]:
        rank, found = comm.get_rank(), []
        for round in range(2):
            mesh = init_device_mesh((comm,), ("dp",))
            tensor = torch.tensor([rank + 1.0])
            dist.all_reduce(tensor, group=mesh.get_group("dp"))
            assert tensor.item() == 3
            found.append(mesh.get_group("dp").group_name)
        other = comm.split([0, 1], "other")
        alone = comm.split([rank], "alone")
        assert other is not None and alone is not None
        mesh = init_device_mesh((other, alone), ("dp", "tp"), _global_comm=comm)
        found += [mesh.get_group(name).group_name for name in ("dp", "tp")]
        dist.all_reduce(tensor, group=mesh.get_group("dp"))
        assert tensor.item() == 6
        return found

    assert with_comm(2, body) == [["dp", "dp_1", "dp_2", "tp"]] * 2
