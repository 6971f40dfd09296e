"""Everything that torch's ProcessGroup offers to Python: each form of its calls, what futures tell, and what a group is asked."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import datetime
import pathlib
import runpy
from typing import Any

import pytest
import torch
import torch._dynamo  # noqa: F401 - before the ranks are forked: each would import it anew
import torch.distributed as dist
from support.torch_ranks import job

import pccl.distributed

SECONDS = datetime.timedelta(seconds=30)
SUM, MAX = dist.ReduceOp.SUM, dist.ReduceOp.MAX


def test_no_difference_that_is_not_listed() -> None:
    surface = runpy.run_path(str(pathlib.Path(__file__).with_name("surface.py")))
    if surface["release"]() not in surface["LISTED"]:
        pytest.skip(f"no list for torch {torch.__version__}: run surface.py, and list what it names")
    assert surface["differences"]() == []


@pytest.mark.parametrize("name", ["register_pre_hook", "register_post_hook", "unregister_pre_hook", "new_window"])
def test_what_pytorch_2_15_added_and_this_group_lacks_says_so(name: str) -> None:
    """Its base would register a hook that is never called."""
    with pytest.raises(NotImplementedError, match=r"as_backend=True|new_window\(\) of a communicator of pccl.comms"):
        getattr(pccl.distributed.Group, name)(None, *(() if name == "new_window" else (1,)))
    assert not pccl.distributed.Group.supports_window and not pccl.distributed.Group.supports_completion_hooks


def forms(rank: int, size: int) -> list[tuple[str, Any]]:
    """In each form, with what Gloo's future tells where it has one."""
    group: Any = dist.group.WORLD

    def one() -> torch.Tensor:
        return torch.tensor([rank + 1.0, 5.0])

    def many() -> list[torch.Tensor]:
        return [torch.tensor([10.0 * rank + i]) for i in range(size)]

    def room() -> list[torch.Tensor]:
        return [torch.zeros(2) for _ in range(size)]

    def of_root(made: Any, wrap: bool = False) -> Any:
        return ([made] if wrap else made) if rank == 1 else []

    works = {
        "op": group.allreduce([one()], SUM), "op=": group.allreduce([one()], op=MAX), "tensor=": group.allreduce(tensor=one(), op=MAX, timeout=SECONDS),
        "default": group.allreduce([one()]), "tensors=": group.allreduce(tensors=[one()]),
        "broadcast": group.broadcast([one()]), "root=": group.broadcast(one(), root=1), "root": group.broadcast(one(), 1, SECONDS),
        "reduce": group.reduce(one(), 1, MAX, SECONDS), "reduce=": group.reduce(tensor=one(), root=1, op=SUM),
        "all_gather": group.allgather([room()], [one()]), "all_gather flat": group.allgather(room(), one(), SECONDS),
        "all_gather_coalesced": group.allgather_coalesced([room() for _ in range(size)], [one(), one()]),
        "gather": group.gather(of_root(room()), one(), 1), "gather=": group.gather(output_tensors=of_root(room()), input_tensor=one(), root=1),
        "scatter": group.scatter(torch.zeros(1), of_root(many()), 1),
        "scatter=": group.scatter(output_tensor=torch.zeros(1), input_tensors=of_root(many()), root=1, timeout=SECONDS),
        "all_to_all_single": group.alltoall_base(torch.zeros(2 * size), torch.cat([one()] * size), [], [], SECONDS),
        "barrier": group.barrier(SECONDS), "barrier=": group.barrier(timeout=SECONDS),
    }
    if dist.get_backend() == "pccl":
        works["reduce_scatter"] = group.reduce_scatter(torch.zeros(1), many(), MAX, SECONDS)
        works["all_reduce wrong"] = group.allreduce([one()], nothing=3)
    found = []
    for name, work in works.items():
        if rank == 0 and name.startswith("reduce") and "scatter" not in name:  # Gloo leaves part of a sum there
            work.wait()
            continue
        try:
            work.wait()
            value = work.get_future().value()
            found.append((name, [v.tolist() if isinstance(v, torch.Tensor) else [t.tolist() for t in v] for v in value]))
        except TypeError as error:
            found.append((name, str(error)))
    return found


def test_each_form_of_a_call_as_gloo() -> None:
    ours, theirs = (job(2, forms, backend=backend) for backend in ("pccl", "gloo"))
    for rank in range(2):
        *same, scattered, wrong = ours[rank]
        assert same == theirs[rank]
        assert scattered == ("reduce_scatter", [[10.0 + rank]])
        assert wrong == ("all_reduce wrong", "pccl: all_reduce has no parameter nothing; beside its operands it takes op, timeout, opts")


def asked(rank: int, size: int) -> list[str]:
    group: Any = dist.group.WORLD
    said = [type(group.get_group_store()).__name__, str(group.use_pg_for_symm_mem_rendezvous)]
    for call in (lambda: group.split_group([0, 1]), lambda: group.merge_remote_group(dist.HashStore(), 2)):
        try:
            call()
        except RuntimeError as error:
            said.append(str(error))
    group.monitored_barrier()
    dist.barrier()
    if rank:  # rank 0 alone comes to the next one
        group.barrier().wait()
        return said
    try:
        group.monitored_barrier(datetime.timedelta(milliseconds=200), wait_all_ranks=True)
    except RuntimeError as error:
        said.append(str(error))
    group.barrier().wait()
    return said


def test_what_a_group_is_asked() -> None:
    """A split of a group that is not torch's own ended the process."""
    first, second = job(2, asked)
    assert first[:-1] == second
    assert second[:2] == ["PrefixStore", "False"]
    assert "use torch.distributed.new_group" in second[2] and "use pccl.distributed.reconfigure" in second[3]
    assert first[-1] == "pccl: Rank 1 failed to pass monitoredBarrier in 200 ms"
