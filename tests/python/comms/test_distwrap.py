"""The look-alike of torch.distributed, with communicators and without: the same program gives the same values."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import datetime
import inspect
import os
from typing import Any

import pytest
import torch
import torch.distributed as dist

from pccl.comms import distwrap
from support.ranks import run

SIZE = 3


def begin(wrapped: bool, backend: str = "pccl", store: Any = None) -> int:
    os.environ["TORCHCOMM_RANK"], os.environ["TORCHCOMM_SIZE"] = "0", "1"  # of another job: of no account here
    distwrap.init_process_group(
        backend if wrapped else "gloo", timeout=datetime.timedelta(seconds=30), rank=int(os.environ["RANK"]), world_size=SIZE, store=store,
        use_torchcomms=wrapped,
    )
    return distwrap.get_rank()


def full(value: float, count: int = 2) -> torch.Tensor:
    return torch.full((count,), float(value))


@pytest.mark.parametrize("wrapped", (True, False))
def test_every_function(wrapped: bool) -> None:
    def rank() -> None:
        own = begin(wrapped)
        tensor = full(own + 1)
        assert distwrap.all_reduce(tensor) is None and tensor.tolist() == [6, 6]
        work = distwrap.all_reduce(tensor, distwrap.ReduceOp.MAX, async_op=True)
        work.wait()
        assert tensor.tolist() == [6, 6] and work.is_completed()
        assert distwrap.broadcast(tensor.fill_(own), src=2) is None and tensor.tolist() == [2, 2]
        distwrap.broadcast(tensor.fill_(own), group_src=1)
        assert tensor.tolist() == [1, 1]
        distwrap.reduce(tensor.fill_(own + 1), 1)
        assert own != 1 or tensor.tolist() == [6, 6]
        outputs = [torch.zeros(2) for _ in range(SIZE)]
        assert distwrap.all_gather(outputs, full(own)) is None and [out[0].item() for out in outputs] == [0, 1, 2]
        whole = torch.zeros(2 * SIZE)
        distwrap.all_gather_into_tensor(whole, full(own))
        assert whole.tolist() == [0, 0, 1, 1, 2, 2]
        distwrap.reduce_scatter(tensor, [full(k) for k in range(SIZE)])
        assert tensor.tolist() == [3.0 * own] * 2
        distwrap.reduce_scatter_tensor(tensor, torch.arange(6.0))
        assert tensor.tolist() == [6.0 * own, 6.0 * own + 3]
        got = torch.zeros(SIZE)
        distwrap.all_to_all_single(got, torch.arange(3.0) + 10 * own)
        assert got.tolist() == [own, 10 + own, 20 + own]
        rows = torch.ones(1)
        distwrap.all_to_all_single(rows, full(own, 3 if own == 0 else 0), [1, 0, 0], [1, 1, 1] if own == 0 else [0, 0, 0])
        assert rows[0].item() == 0
        if wrapped:  # gloo of torch has no lists
            lists = [torch.zeros(k + own) for k in range(SIZE)]
            distwrap.all_to_all(lists, [full(own, k + own) for k in range(SIZE)])
            assert [one.tolist() for one in lists] == [[float(k)] * (k + own) for k in range(SIZE)]
            unequal = [torch.zeros(k) for k in range(SIZE)]
            distwrap.all_gather(unequal, full(own, own))  # by the v forms
            assert [one.tolist() for one in unequal] == [[float(k)] * k for k in range(SIZE)]
        distwrap.scatter(tensor, [full(k + 5) for k in range(SIZE)] if own == 1 else None, 1)
        assert tensor.tolist() == [own + 5] * 2
        distwrap.gather(tensor, outputs if own == 0 else None, dst=0)
        assert own != 0 or [out[1].item() for out in outputs] == [5, 6, 7]
        assert distwrap.barrier() is None
        if own == 0:
            assert distwrap.send(full(8), 1) is None
            distwrap.isend(full(9), group_dst=1).wait()
        elif own == 1:
            assert distwrap.recv(tensor, 0) == 0 and tensor.tolist() == [8, 8]
            distwrap.irecv(tensor, group_src=0).wait()
            assert tensor.tolist() == [9, 9]
        following, before = (own + 1) % SIZE, (own - 1) % SIZE
        ops = [distwrap.P2POp(distwrap.isend, full(own), following), distwrap.P2POp(dist.irecv, tensor, group_peer=before)]
        for one in distwrap.batch_isend_irecv(ops):
            one.wait()
        assert tensor.tolist() == [before] * 2
        objects: list[Any] = [None] * SIZE
        distwrap.all_gather_object(objects, {"rank": own})
        assert objects == [{"rank": k} for k in range(SIZE)]
        distwrap.gather_object("x" * own, objects if own == 2 else None, 2)
        assert own != 2 or objects == ["", "x", "xx"]
        answer: list[Any] = [None]
        distwrap.scatter_object_list(answer, ["a", "bb", "ccc"] if own == 0 else None, 0)
        assert answer == [["a", "bb", "ccc"][own]]
        distwrap.broadcast_object_list(answer, 1)
        assert answer == ["bb"]
        with pytest.raises(ValueError):
            distwrap.broadcast(tensor, src=0, group_src=0)
        with pytest.raises(ValueError, match="neither"):
            distwrap.P2POp(distwrap.isend, tensor)
        assert distwrap.is_initialized() and distwrap.get_world_size() == SIZE
        assert distwrap.get_process_group_ranks(distwrap.group.WORLD) == [0, 1, 2]
        distwrap.destroy_process_group()
        assert not distwrap.is_initialized()

    run(SIZE, rank)


def test_groups_with_communicators() -> None:
    def rank() -> None:
        kept = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), SIZE, os.environ["RANK"] == "0")
        for round_ in range(2):
            own = begin(True, "cpu:pccl", dist.PrefixStore(str(round_), kept))
            tensor = full(own)
            with pytest.raises(NotImplementedError, match="pccl.comms.distwrap"):
                dist.all_reduce(tensor)
            with pytest.raises(AssertionError, match="split_group"):
                distwrap.new_group([0, 1])
            with pytest.raises(ValueError, match="neither src nor group_src"):
                distwrap.recv(tensor)
            part = distwrap.split_group(split_ranks=[[2, 0], [1]])
            assert distwrap.get_process_group_ranks(part) == ([1] if own == 1 else [2, 0])
            assert distwrap.get_rank(part) == (1 if own == 0 else 0) and distwrap.get_world_size(part) == (1 if own == 1 else 2)
            distwrap.all_reduce(tensor, group=part)
            assert tensor.tolist() == ([1, 1] if own == 1 else [2, 2])
            distwrap.broadcast(tensor.fill_(own), src=2 if own != 1 else 1, group=part)
            assert tensor.tolist() == ([1, 1] if own == 1 else [2, 2])
            with pytest.raises(NotImplementedError):
                dist.barrier(group=part)
            deeper = distwrap.split_group(part, [[0, 1]] if own != 1 else [[0]])
            assert distwrap.get_process_group_ranks(deeper) == distwrap.get_process_group_ranks(part)
            distwrap.broadcast(tensor.fill_(own), src=2 if own != 1 else 1, group=deeper)
            assert tensor.tolist() == ([1, 1] if own == 1 else [2, 2])
            distwrap.all_reduce(tensor.fill_(1), group=deeper)
            assert tensor[0].item() == (1 if own == 1 else 2)
            distwrap.destroy_process_group(part)
            distwrap.all_reduce(tensor.fill_(1))
            assert tensor[0].item() == 3
            if own == 2:
                with pytest.raises(ValueError, match="rank 2 is in none"):
                    distwrap.split_group(split_ranks=[[0, 1]])
            else:
                pair = distwrap.split_group(split_ranks=[[0, 1]])
                distwrap.all_reduce(tensor.fill_(own), group=pair)
                assert tensor[0].item() == 1
            with pytest.raises(ValueError, match="choose of these"):
                distwrap.split_group(split_ranks=[[0, 1, 2]], backend="cpu:gloo")
            distwrap.destroy_process_group()
        with pytest.raises(ValueError, match="unknown"):
            distwrap.init_process_group("nothing", use_torchcomms=True)
        assert not dist.is_initialized()

    run(SIZE, rank)


def test_extensions() -> None:
    def rank() -> None:
        own = begin(True)
        window = distwrap.new_window(distwrap.get_mem_allocator().empty((4,), torch.float32))
        window.put(full(own, 1), (own + 1) % SIZE, 0)
        window.signal((own + 1) % SIZE)
        window.wait_signal((own - 1) % SIZE)
        assert window.get_tensor()[0].item() == (own - 1) % SIZE
        window.tensor_deregister()
        with pytest.raises(RuntimeError, match="GPU memory"):
            distwrap.register_mem_pool(None)
        inputs = [torch.linspace(-3, 7, 3000).mul(k + 1) for k in range(SIZE)]
        for op, parts in ((dist.ReduceOp.SUM, 1), (dist.ReduceOp.AVG, SIZE)):
            given, total = inputs[own].clone(), torch.zeros(1000)
            distwrap.reduce_scatter_quantized(total, given, op, seed=5)
            wanted = torch.stack(inputs).sum(0)[1000 * own:1000 * own + 1000] / parts
            scale = torch.stack(inputs).abs().sum(0)[1000 * own:1000 * own + 1000] / parts
            assert bool(((total - wanted).abs() <= scale / 128).all()) and torch.equal(given, inputs[own])  # 8 bits
            assert abs((total - wanted).mean().item()) < 0.002 and not torch.equal(total, wanted)  # right on average
        with pytest.raises(ValueError, match="SUM or AVG"):
            distwrap.reduce_scatter_quantized(total, inputs[own], dist.ReduceOp.MAX)
        tensor = full(own + 1)
        distwrap.all_reduce(tensor, distwrap._make_nccl_premul_sum(0.5))
        assert tensor.tolist() == [3, 3]
        distwrap.destroy_process_group()

    run(SIZE, rank)


def test_signatures_are_those_of_torch() -> None:
    for name in ("all_reduce", "broadcast", "reduce", "scatter", "gather", "send", "recv", "isend", "irecv", "all_gather_object", "barrier"):
        assert inspect.signature(getattr(distwrap, name)) == inspect.signature(getattr(dist, name))
    torchs = [name for name in inspect.signature(dist.init_process_group).parameters if not name.startswith("_")][:9]
    assert list(inspect.signature(distwrap.init_process_group).parameters)[:10] == [*torchs, "use_torchcomms"]
