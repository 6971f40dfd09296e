"""Each operation in torch.compile with each of its back-ends, by value, against the same program without it, on two ranks."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import datetime
from typing import Any, Callable

import pytest
import torch
import torch._dynamo  # before ranks are forked, as it takes long

from pccl.comms import BatchP2POptions, RedOpType, ReduceOp, TorchComm, new_comm
from support.ranks import results, start

SIZE = 2
SUM = ReduceOp.SUM
Case = Callable[[torch.Tensor, bool], tuple[Any, list[torch.Tensor]]]


def on_ranks(function: Callable[[TorchComm], Any]) -> None:
    def rank() -> Any:
        from pccl.comms.functional.dynamo import patch

        patch()
        comm = new_comm("pccl", "cpu", "compiled", timeout=20)
        function(comm)
        comm.finalize()

    results(start(SIZE, rank), 100)


def compiled(function: Callable[..., Any], how: str, whole: bool = True) -> Callable[..., Any]:
    torch._dynamo.reset()
    return torch.compile(function, fullgraph=whole, backend=how)


#: Programs compute by products of matrices, for which Inductor has no C++ to compile.
ONE, TWO, NONE, TALL = torch.eye(2), 2 * torch.eye(2), torch.zeros(2, 2), torch.ones(4, 2)
GIVEN = torch.arange(1.0, 5.0).view(2, 2)


def collectives(comm: TorchComm) -> dict[str, Case]:
    rank = comm.get_rank()
    own = (rank + 1) * ONE

    def all_reduce(x: torch.Tensor, later: bool) -> Any:
        t = x @ TWO
        return comm.all_reduce(t, SUM, later), [t]

    def broadcast(x: torch.Tensor, later: bool) -> Any:
        t = x @ own
        return comm.broadcast(t, 1, later), [t]

    def reduce(x: torch.Tensor, later: bool) -> Any:
        t = x @ own
        return comm.reduce(t, 0, ReduceOp.MAX, later), [t]

    def all_gather(x: torch.Tensor, later: bool) -> Any:
        out = [x @ NONE, x @ NONE]
        return comm.all_gather(out, x @ own, later), out

    def all_gather_v(x: torch.Tensor, later: bool) -> Any:
        out = [x[:1] @ NONE, x @ NONE]
        return comm.all_gather_v(out, (x @ own)[: rank + 1], later), out

    def all_gather_single(x: torch.Tensor, later: bool) -> Any:
        out = TALL @ NONE
        return comm.all_gather_single(out, x @ own, later), [out]

    def barrier(x: torch.Tensor, later: bool) -> Any:
        return comm.barrier(later), [x @ TWO]

    return {case.__name__: case for case in (all_reduce, broadcast, reduce, all_gather, all_gather_v, all_gather_single, barrier)}


def scattering(comm: TorchComm) -> dict[str, Case]:
    rank = comm.get_rank()
    own = (rank + 1) * ONE

    def reduce_scatter(x: torch.Tensor, later: bool) -> Any:
        out = x @ NONE
        return comm.reduce_scatter(out, [x @ ONE, x @ TWO], ReduceOp.AVG, later), [out]

    def reduce_scatter_v(x: torch.Tensor, later: bool) -> Any:
        out = x[: rank + 1] @ NONE
        return comm.reduce_scatter_v(out, [x[:1] @ own, x @ TWO], SUM, later), [out]

    def reduce_scatter_single(x: torch.Tensor, later: bool) -> Any:
        out = x[:1] @ NONE
        return comm.reduce_scatter_single(out, x @ own, SUM, later), [out]

    def all_to_all_single(x: torch.Tensor, later: bool) -> Any:
        out = x @ NONE
        return comm.all_to_all_single(out, x @ own, later), [out]

    def all_to_all_v_single(x: torch.Tensor, later: bool) -> Any:
        out = (TALL if rank else x) @ NONE
        return comm.all_to_all_v_single(out, TALL[:3] @ own, [2, 2] if rank else [1, 1], [1, 2], later), [out]

    def all_to_all(x: torch.Tensor, later: bool) -> Any:
        out = [x @ NONE, x @ NONE]
        return comm.all_to_all(out, [x @ own, x @ TWO], later), out

    cases = (reduce_scatter, reduce_scatter_v, reduce_scatter_single, all_to_all_single, all_to_all_v_single, all_to_all)
    return {case.__name__: case for case in cases}


def of_a_root_and_messages(comm: TorchComm) -> dict[str, Case]:
    rank = comm.get_rank()
    own = (rank + 1) * ONE

    def scatter(x: torch.Tensor, later: bool) -> Any:
        out = x @ NONE
        return comm.scatter(out, [x @ ONE, x @ TWO] if rank == 1 else [], 1, later), [out]

    def gather(x: torch.Tensor, later: bool) -> Any:
        out = [x @ NONE, x @ NONE] if rank == 0 else []
        return comm.gather(out, x @ own, 0, later), out

    def gather_single(x: torch.Tensor, later: bool) -> Any:
        out = TALL @ NONE
        return comm.gather_single(out, x @ own, 1, later), [out]

    def send_recv(x: torch.Tensor, later: bool) -> Any:
        if rank == 0:
            return comm.send(x @ TWO, 1, later), []
        out = x @ NONE
        return comm.recv(out, 0, later), [out]

    def batch(x: torch.Tensor, later: bool) -> Any:
        both, out = comm.batch_op_create(), x @ NONE
        both.send(x @ own, 1 - rank)
        both.recv(out, 1 - rank)
        return both.issue(later), [out]

    def batch_send_recv(x: torch.Tensor, later: bool) -> Any:
        if rank == 0:
            return comm.batch_send([x @ ONE, x @ TWO], 1, later), []
        out = [x @ NONE, x @ NONE]
        return comm.batch_recv(out, 0, later), out

    return {case.__name__: case for case in (scatter, gather, gather_single, send_recv, batch, batch_send_recv)}


def in_all_ways(case: Case) -> Callable[[torch.Tensor], tuple[Any, list[list[torch.Tensor]]]]:
    """Synchronous; asynchronous, waited for twice; and a work that is waited for outside."""

    def program(x: torch.Tensor) -> tuple[Any, list[list[torch.Tensor]]]:
        _, first = case(x, False)
        work, second = case(x, True)
        work.wait()
        sums = [one @ TWO for one in second]  # of what is there after the wait
        work.wait()
        last, third = case(x, True)
        return last, [first, second, sums, third]

    return program


@pytest.mark.parametrize("how", ("aot_eager", "inductor"))
@pytest.mark.parametrize("cases", [collectives, scattering, of_a_root_and_messages])
def test_each_operation_in_each_way(cases: Callable[[TorchComm], dict[str, Case]], how: str) -> None:
    def body(comm: TorchComm) -> None:
        for name, case in cases(comm).items():
            program = in_all_ways(case)
            found: list[list[list[torch.Tensor]]] = []
            for one in (program, compiled(program, how)):
                work, lists = one(GIVEN.clone())
                work.wait()
                assert work.is_completed(), name
                found.append(lists)
            for expected, got in zip(*found):
                assert [tensor.tolist() for tensor in got] == [tensor.tolist() for tensor in expected], name

    on_ranks(body)


@pytest.mark.parametrize("how", ("aot_eager", "inductor"))
def test_several_works_at_once(how: str) -> None:
    """A wait never comes before a call that the program makes before it: each rank would wait for the other's receive."""

    def body(comm: TorchComm) -> None:
        rank = comm.get_rank()

        own = (rank + 1) * ONE

        def ring(x: torch.Tensor, backwards: bool) -> torch.Tensor:
            out = x @ NONE
            works = [comm.send(x @ own, 1 - rank, True), comm.recv(out, 1 - rank, True)]
            for work in works[::-1] if backwards else works:
                work.wait()
            return out

        def mixed(x: torch.Tensor) -> list[torch.Tensor]:
            a, b, c = x @ TWO, x @ own, x[:0] @ ONE
            works = [comm.all_reduce(a, SUM, True), comm.broadcast(b, 1, True), comm.barrier(True), comm.all_reduce(c, SUM, True)]
            d = x @ TWO
            for place in (1, 0, 3, 2):
                works[place].wait()
            e = a @ ONE
            comm.all_reduce(e, SUM, async_op=True).wait()
            return [a, b, c, d, e]

        def interrupted(x: torch.Tensor) -> torch.Tensor:
            a = x @ TWO
            works = [comm.all_reduce(a, SUM, True), comm.barrier(True)]
            torch._dynamo.graph_break()
            for work in works:
                work.wait()
            return a @ TWO

        for backwards in (False, True):
            assert torch.equal(compiled(ring, how)(GIVEN, backwards), GIVEN * (2 - rank))
        wanted = [GIVEN * 4, GIVEN * 2, GIVEN[:0], GIVEN * 2, GIVEN * 8]
        assert all(map(torch.equal, compiled(mixed, how)(GIVEN), wanted))
        assert torch.equal(compiled(interrupted, how, whole=False)(GIVEN), GIVEN * 8)

    on_ranks(body)


@pytest.mark.parametrize("how", ("inductor",))
def test_a_dropped_work_leaves_other_values_alone(how: str) -> None:
    """The other rank comes to the collective when the program has ended, whose memory may hold other values then."""

    def body(comm: TorchComm) -> None:
        def program(x: torch.Tensor) -> list[torch.Tensor]:
            comm.all_reduce(x @ TWO, SUM, True)
            comm.barrier(True)
            y = x @ TWO
            return [y, y @ TWO, x @ TWO]

        found = []
        if comm.get_rank() == 0:
            found = compiled(program, how)(GIVEN)
            comm.send(torch.zeros(1), 1)
        else:
            comm.recv(torch.zeros(1), 0)
            comm.all_reduce(GIVEN * 5, SUM, False)
            comm.barrier()
        comm.barrier()
        for tensor, factor in zip(found, (2, 4, 2)):
            assert torch.equal(tensor, GIVEN * factor)

    on_ranks(body)


@pytest.mark.parametrize("how", ("eager", "inductor"))
def test_arguments_as_programs_pass_them(how: str) -> None:
    def body(comm: TorchComm) -> None:
        rank = comm.get_rank()
        own = (rank + 1) * ONE
        limit, options = datetime.timedelta(seconds=20), BatchP2POptions({"a": "b"}, 20)

        def program(x: torch.Tensor) -> list[torch.Tensor]:
            a = x @ TWO
            comm.all_reduce(tensor=a, op=RedOpType.SUM, async_op=True, hints={"a": "b"}, timeout=limit).wait()
            comm.barrier(True, timeout=limit).wait()
            b = x @ ONE
            comm.all_reduce(b, ReduceOp.PREMUL_SUM(0.0), False)
            batch, c = comm.batch_op_create(), x @ NONE
            batch.send(x @ own, 1 - rank)
            batch.recv(c, 1 - rank)
            batch.issue(True, options).wait()
            return [a, b, c]

        assert all(map(torch.equal, compiled(program, how)(GIVEN), [GIVEN * 4, GIVEN * 0, GIVEN * (2 - rank)]))

        def wrong(x: torch.Tensor) -> torch.Tensor:
            comm.all_reduce(x, SUM, asynchronous=True)  # type: ignore[call-arg]
            return x

        with pytest.raises(Exception, match="asynchronous is none of its arguments"):
            compiled(wrong, how)(torch.ones(1))

    on_ranks(body)


@pytest.mark.parametrize("how", (None, "inductor"))
def test_operators_that_are_waited_for_in_place(how: Any) -> None:
    def body(comm: TorchComm) -> None:
        ops, handle, own = torch.ops.torchcomms, comm._handle, (comm.get_rank() + 1) * ONE

        def program(x: torch.Tensor) -> list[torch.Tensor]:
            a = ops.torchcomm_all_reduce(x @ TWO, 0, 1.0, handle, True, 0.0, [])
            b = ops.torchcomm_broadcast(x @ own, 1, handle, True, 0.0, [])
            ops.torchcomm_wait_tensors_([a, b])
            ops.torchcomm_wait_tensors_([b])  # nothing is left to wait for
            return [a, b @ TWO]

        run = program if how is None else compiled(program, how)
        assert all(map(torch.equal, run(GIVEN), [GIVEN * 4, GIVEN * 4]))

    on_ranks(body)
