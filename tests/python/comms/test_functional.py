"""Operations inside of torch.compile, as one graph, and functional forms: values and gradients against torch on one process."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any, Callable

import pytest
import torch
import torch._dynamo  # before ranks are forked, as it takes long

from pccl.comms import OperationError, ReduceOp, TorchComm, new_comm
from support.ranks import run

SIZE = 2


def with_comm(function: Callable[[TorchComm], Any], size: int = SIZE) -> list[Any]:
    def rank() -> Any:
        from pccl.comms.functional.dynamo import patch

        patch()
        comm = new_comm("pccl", "cpu", "compiled", timeout=30)
        result = function(comm)
        comm.finalize()
        return result

    return run(size, rank)


def compiled(function: Callable[..., Any], how: str = "aot_eager") -> Callable[..., Any]:
    torch._dynamo.reset()
    return torch.compile(function, fullgraph=True, backend=how)


def test_a_program_of_all_operations_is_one_graph() -> None:
    """The same function, compiled and not, gives the same."""

    def body(comm: TorchComm) -> None:
        rank, size = comm.get_rank(), comm.get_size()
        other = (rank + 1) % size

        def program(x: torch.Tensor, async_op: bool) -> list[torch.Tensor]:
            out: list[torch.Tensor] = []
            t = x * 2
            comm.all_reduce(t, ReduceOp.SUM, async_op).wait()
            comm.all_reduce(t, ReduceOp.PREMUL_SUM(0.5), async_op=async_op, timeout=20, hints={"a": "b"}).wait()
            out.append(t + 1)
            t = x + rank
            comm.broadcast(t, 1, async_op).wait()
            out.append(t * 1)
            comm.reduce(t, 0, ReduceOp.MAX, async_op).wait()
            lists = [torch.zeros_like(x) for _ in range(size)]
            comm.all_gather(lists, x + rank, async_op).wait()
            comm.all_gather_v(lists, lists[1] * 2, async_op).wait()
            whole = x.new_zeros(size * x.shape[0])
            comm.all_gather_single(whole, x + rank, async_op).wait()
            part = torch.zeros_like(x)
            comm.reduce_scatter(part, [x, x + 5], ReduceOp.AVG, async_op).wait()
            comm.reduce_scatter_v(lists[0], [part * 1, part + 1], ReduceOp.SUM, async_op).wait()
            comm.reduce_scatter_single(part, whole, ReduceOp.SUM, async_op).wait()
            parts = torch.zeros_like(whole)
            comm.all_to_all_single(parts, whole + rank, async_op).wait()
            comm.all_to_all_v_single(whole, parts * 2, [2] * size, [2] * size, async_op).wait()
            comm.all_to_all(lists, [x * (rank + 1), x * 3], async_op).wait()
            comm.scatter(x2 := torch.zeros_like(x), [x, x * 9] if rank == 1 else [], 1, async_op).wait()
            gathered = [torch.zeros_like(x) for _ in range(size)]
            comm.gather(gathered if rank == 0 else [], x + rank, 0, async_op).wait()
            single = torch.zeros_like(whole)
            comm.gather_single(single, x + rank, 1, async_op).wait()
            comm.barrier(async_op).wait()
            if rank == 0:
                comm.send(x + 7, other, async_op).wait()
            else:
                comm.recv(x2, other, async_op).wait()
            batch, got = comm.batch_op_create(), torch.zeros_like(x)
            batch.send(x + rank, other)
            batch.recv(got, other)
            batch.issue(async_op).wait()
            return [*out, t, *lists, whole, part, parts, x2, *gathered, single, got]

        given = torch.arange(4.0)
        for async_op in (False, True):
            expected = program(given.clone(), async_op)
            found = compiled(program)(given.clone(), async_op)
            for position, (one, two) in enumerate(zip(found, expected)):
                assert torch.equal(one, two), (position, one, two)
        assert expected[0].tolist() == [2 * x * SIZE + 1.0 for x in range(4)]

    with_comm(body)


def test_gradients() -> None:
    def body(comm: TorchComm) -> None:
        rank, size = comm.get_rank(), comm.get_size()
        weights = torch.arange(1.0, 9.0)

        def program(x: torch.Tensor) -> torch.Tensor:
            t = x * x
            comm.all_reduce(t, ReduceOp.SUM, False)
            average = x * 3
            comm.all_reduce(average, ReduceOp.AVG, async_op=True).wait()
            whole = torch.zeros(8)
            comm.all_gather_single(whole, x * 2, False)
            part = torch.zeros(2)
            comm.reduce_scatter_single(part, x * 5, ReduceOp.AVG, False)
            swapped = torch.zeros(4)
            comm.all_to_all_single(swapped, x * 7, False)
            rows = torch.zeros(3) if rank == 0 else torch.zeros(5)
            comm.all_to_all_v_single(rows, x * 1, [1, 2] if rank == 0 else [3, 2], [1, 3] if rank == 0 else [2, 2], False)
            lists = [torch.zeros(2), torch.zeros(2)]
            comm.all_to_all(lists, [x[:2] * 11, x[2:] * 13], False)
            copies = [torch.zeros(4), torch.zeros(4)]
            comm.all_gather(copies, x * 17, False)
            share = torch.zeros(2)
            comm.reduce_scatter(share, [x[:2] * 19, x[2:] * 23], ReduceOp.SUM, False)
            w = weights * (rank + 1)
            return (
                (t * w[:4]).sum() + (average * w[:4]).sum() + (whole * w).sum() + (part * w[:2]).sum() + (swapped * w[:4]).sum()
                + (rows * w[:rows.numel()]).sum() + (lists[1] * w[:2]).sum() + (copies[0] * w[:4]).sum() + (share * w[:2]).sum()
            )

        def whole_program(xs: list[torch.Tensor]) -> torch.Tensor:
            """All ranks' sums, by torch alone."""
            total = torch.zeros(())
            squares, means = xs[0] ** 2 + xs[1] ** 2, (xs[0] + xs[1]) * 1.5
            for r in range(size):
                w, half = weights * (r + 1), slice(2 * r, 2 * r + 2)
                total = total + (squares * w[:4]).sum() + (means * w[:4]).sum() + (torch.cat(xs) * 2 * w).sum()
                total = total + ((xs[0] + xs[1])[half] * 2.5 * w[:2]).sum() + (torch.cat([x[half] for x in xs]) * 7 * w[:4]).sum()
                rows = torch.cat([xs[0][:1], xs[1][:2]]) if r == 0 else torch.cat([xs[0][1:4], xs[1][2:4]])
                total = total + (rows * w[:rows.numel()]).sum() + (xs[1][half] * (13 if r else 11) * w[:2]).sum()
                total = total + (xs[0] * 17 * w[:4]).sum() + ((xs[0] + xs[1])[half] * (23 if r else 19) * w[:2]).sum()
            return total

        xs = [(torch.arange(4.0) + 3 * r).requires_grad_() for r in range(size)]
        whole_program(xs).backward()  # type: ignore[no-untyped-call]
        mine = xs[rank].detach().clone().requires_grad_()
        compiled(program)(mine).backward()
        torch.testing.assert_close(mine.grad, xs[rank].grad)

        def maximum(x: torch.Tensor) -> torch.Tensor:
            t = x * 1
            comm.all_reduce(t, ReduceOp.MAX, False)
            return t.sum()

        loss = compiled(maximum, "eager")(mine)
        with pytest.raises(RuntimeError, match="no gradient for MAX"):
            loss.backward()

    with_comm(body)


def test_no_call_is_left_out_where_its_result_is_not_used() -> None:
    def body(comm: TorchComm) -> None:
        rank = comm.get_rank()

        def program(x: torch.Tensor) -> torch.Tensor:
            t = x * 2
            comm.reduce(t, 0, ReduceOp.SUM, False)
            comm.barrier(False)
            return t if rank == 0 else x + 1

        result = compiled(program)(torch.ones(2))
        assert result.tolist() == ([4, 4] if rank == 0 else [2, 2])

    with_comm(body)


def test_inductor() -> None:
    def body(comm: TorchComm) -> None:
        called: list[str] = []
        comm.register_pre_hook(lambda name, op_id, args: called.append(name.name))

        def program(x: torch.Tensor) -> torch.Tensor:
            t = x * 2
            work = comm.all_reduce(t, ReduceOp.SUM, async_op=True)
            other = x + 1
            work.wait()
            comm.all_reduce(x * 3, ReduceOp.MAX, False)  # what is made of it nobody sees
            comm.barrier(False)
            return t + other

        assert compiled(program, "inductor")(torch.ones(3)).tolist() == [4, 4, 4]
        assert called == ["all_reduce", "all_reduce", "barrier"]

    with_comm(body, size=1)


def test_tensors_that_are_not_contiguous() -> None:
    def body(comm: TorchComm) -> None:
        def program(x: torch.Tensor) -> torch.Tensor:
            t = (x * 2).t()
            comm.all_reduce(t, ReduceOp.SUM, False)
            whole = torch.zeros(3 * SIZE, 2)
            comm.all_gather_single(whole, x.t(), False)
            return whole + torch.cat([t] * SIZE)

        given = torch.arange(6.0).view(2, 3)
        wanted = torch.cat([given.t() * (2 * SIZE + 1)] * SIZE)
        for how in ("eager", "aot_eager"):
            assert torch.equal(compiled(program, how)(given), wanted)

    with_comm(body)


def test_windows() -> None:
    def body(comm: TorchComm) -> None:
        rank, size = comm.get_rank(), comm.get_size()
        mine = torch.zeros(4)
        window = comm.new_window(mine)

        def program(x: torch.Tensor) -> torch.Tensor:
            window.put(x * 2, (rank + 1) % size, 1, False)
            window.signal((rank + 1) % size, False)
            window.wait_signal((rank - 1) % size, False)
            return mine + 1

        result = compiled(program)(torch.full((2,), rank + 1.0))
        value = 2 * ((rank - 1) % size + 1)
        assert result.tolist() == [1, value + 1, value + 1, 1] and mine.tolist() == [0, value, value, 0]
        comm.barrier()
        window.tensor_deregister()

    with_comm(body)


def test_functional_forms() -> None:
    def body(comm: TorchComm) -> None:
        from pccl.comms import functional

        rank, size = comm.get_rank(), comm.get_size()
        given = torch.arange(4.0) + rank
        late = functional.all_reduce(given, ReduceOp.SUM, comm)
        assert isinstance(late, functional.TorchCommsAsyncTensor) and late.shape == (4,)
        assert (late + 1).tolist() == [2.0 * x + 2 for x in range(4)] and given.tolist() == [x + rank for x in range(4)]
        assert functional.broadcast(given, 1, comm).tolist() == [1, 2, 3, 4]
        assert functional.reduce(given, 1, ReduceOp.MAX, comm).tolist() == ([1, 2, 3, 4] if rank == 1 else [0, 1, 2, 3])
        assert functional.all_gather_single(given, comm).tolist() == [0, 1, 2, 3, 1, 2, 3, 4]
        assert functional.reduce_scatter_single(given, ReduceOp.SUM, comm).tolist() == ([1, 3] if rank == 0 else [5, 7])
        assert functional.all_to_all_single(given, comm).tolist() == ([0, 1, 1, 2] if rank == 0 else [2, 3, 3, 4])
        rows = functional.all_to_all_single(given, comm, [1, 2] if rank == 0 else [3, 2], [1, 3] if rank == 0 else [2, 2])
        assert rows.tolist() == ([0, 1, 2] if rank == 0 else [1, 2, 3, 3, 4])
        pieces = functional.all_to_all([given[:1], given[1:3]], [[rank + 1], [rank + 1]], comm)
        assert [one.tolist() for one in functional.wait_tensors(pieces)] == ([[0], [1]] if rank == 0 else [[1, 2], [2, 3]])
        for _ in range(20):  # never waited for
            functional.all_reduce(torch.ones(100), ReduceOp.SUM, comm)
        x = torch.ones(4, requires_grad=True)
        functional.all_reduce(x * x, ReduceOp.SUM, comm).sum().backward()
        assert x.grad is not None and x.grad.tolist() == [2.0 * size] * 4
        graph = compiled(lambda t: functional.all_reduce(t, ReduceOp.SUM, comm) * 2)
        assert graph(torch.ones(2)).tolist() == [4, 4]
        with pytest.raises(RuntimeError, match="divisible by comm_size"):
            functional.reduce_scatter_single(torch.ones(3), ReduceOp.SUM, comm)
        with pytest.raises(ValueError, match="pass both"):
            functional.all_to_all_single(given, comm, [2, 2])
        in_place = torch.ones(3)
        torch.ops.torchcomms.torchcomm_all_reduce_(in_place, 0, 1.0, comm._handle, 0.0, [])
        assert in_place.tolist() == [size] * 3

    with_comm(body)


def test_async_tensors_of_programs() -> None:
    def body(comm: TorchComm) -> None:
        from pccl.comms.functional import TorchCommsAsyncTensor, all_reduce

        there = torch.arange(3.0)
        plain = TorchCommsAsyncTensor(there, None)
        assert (plain + 1).tolist() == [1, 2, 3] and plain.wait() is there
        written = torch.ones(3)
        if comm.get_rank() == 0:
            late = TorchCommsAsyncTensor(written, comm.recv(written, 1, True))
            comm.barrier()
            assert (late * 2).tolist() == [0, 2, 4]
        else:
            comm.barrier()  # before the send, so that the work goes on when the tensor is made
            comm.send(there, 0)
        summed = all_reduce(there, ReduceOp.SUM, comm)
        first = summed.wait()  # type: ignore[attr-defined]
        assert first.tolist() == [0, 2, 4] and TorchCommsAsyncTensor(first).wait() is first
        for wrong in ((3, None), (there, 5)):
            with pytest.raises(TypeError, match="pass a"):
                TorchCommsAsyncTensor(*wrong)  # type: ignore[arg-type]

    with_comm(body)


def test_failures_and_communicators_that_have_gone() -> None:
    def body(comm: TorchComm) -> None:
        def program(x: torch.Tensor) -> torch.Tensor:
            comm.recv(x, 1 - comm.get_rank(), False, timeout=0.1)
            return x + 1

        with pytest.raises(OperationError, match="timed out"):
            compiled(program)(torch.ones(1))
        with pytest.raises(RuntimeError, match="any more"):
            torch.ops.torchcomms.torchcomm_barrier("nobody#0", False, 0.0, [])
        comm.barrier()

    with_comm(body)


def test_which_torch_is_new_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    from pccl.comms.functional import is_torch_compile_supported, is_torch_compile_supported_and_enabled

    assert is_torch_compile_supported() and not is_torch_compile_supported(_current_version="2.11.1")
    assert is_torch_compile_supported(_current_version="2.12.0.dev20260301") and not is_torch_compile_supported("9.0")
    assert not is_torch_compile_supported_and_enabled()
    monkeypatch.setenv("TORCHCOMMS_PATCH_FOR_COMPILE", "1")
    assert is_torch_compile_supported_and_enabled() and not is_torch_compile_supported_and_enabled("9.0")
    monkeypatch.setenv("TORCHCOMMS_COMPILE_IGNORE_PYTORCH_VERSION_REQUIREMENT", "1")
    assert is_torch_compile_supported_and_enabled("9.0")
