"""More is issued than the library takes at once: it waits its turn, and ends with the right values, or with the error of a loss."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import os
import signal
from typing import Any, Callable

import pytest
import torch

from pccl.comms import OperationError, ReduceOp, TorchComm, TorchWork, new_comm
from support.ranks import results, start

MANY = 2000


class Signal:
    """Of one rank to another, in processes that are forked after this."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe()

    def give(self) -> None:
        os.write(self._write, b"x")

    def take(self) -> None:
        assert os.read(self._read, 1) == b"x"


def _ranks(body: Callable[[TorchComm, Signal], Any]) -> list[Any]:
    told = Signal()

    def rank() -> Any:
        comm = new_comm("pccl", "cpu", "ahead", timeout=30)
        result = body(comm, told)
        comm.finalize()
        return result

    return start(2, rank)


def _values(tensors: list[torch.Tensor]) -> list[float]:
    return [tensor.item() for tensor in tensors]


def test_thousands_of_sends_before_their_receives() -> None:
    def body(comm: TorchComm, told: Signal) -> list[float]:
        if comm.get_rank() == 0:
            ended: list[TorchWork] = []
            works = [comm.send(torch.tensor([float(number)]), 1, True) for number in range(MANY)]
            works[-1].register_callback("end", ended.append)  # long before it is launched
            assert not works[-1].is_completed()
            told.give()
            for work in works:
                work.wait()
            assert ended == works[-1:]
            return []
        told.take()
        got = [torch.zeros(1) for _ in range(MANY)]
        for tensor in got:
            comm.recv(tensor, 0)
        return _values(got)

    assert results(_ranks(body)) == [[], [float(number) for number in range(MANY)]]


def test_receives_that_are_issued_first_leave_room_for_sends() -> None:
    def body(comm: TorchComm, told: Signal) -> list[float]:
        other = 1 - comm.get_rank()
        got = [torch.zeros(1) for _ in range(MANY)]
        receives = [comm.recv(tensor, other, True) for tensor in got]
        sends = [comm.send(torch.tensor([float(other + number)]), other, True) for number in range(MANY)]
        for work in [*sends, *receives]:
            work.wait()
        return _values(got)

    assert results(_ranks(body)) == [[float(rank + number) for number in range(MANY)] for rank in range(2)]


def test_many_batches_and_a_collective_beside_them() -> None:
    def body(comm: TorchComm, told: Signal) -> list[float]:
        other, works, got = 1 - comm.get_rank(), [], []
        for number in range(20):
            into = [torch.zeros(1) for _ in range(100)]
            batch = comm.batch_op_create()
            for index, tensor in enumerate(into):
                batch.send(torch.tensor([float(100 * number + index)]), other)
                batch.recv(tensor, other)
            works.append(batch.issue(True))
            got += into
        total = torch.ones(1)
        comm.all_reduce(total, ReduceOp.SUM)
        for work in works:
            work.wait()
        return [total.item(), *_values(got)]

    assert results(_ranks(body)) == [[2.0, *map(float, range(MANY))]] * 2


def test_thousands_of_collectives() -> None:
    def body(comm: TorchComm, told: Signal) -> list[float]:
        if comm.get_rank() == 1:
            told.take()
        tensors = [torch.tensor([float(number)]) for number in range(MANY)]
        works = []
        for number, tensor in enumerate(tensors):
            works.append(comm.all_reduce(tensor, ReduceOp.SUM, True))
            if number == 200 and comm.get_rank() == 0:
                told.give()
        works[-1].wait()
        assert all(work.is_completed() for work in works)
        return _values(tensors)

    assert results(_ranks(body)) == [[2.0 * number for number in range(MANY)]] * 2


def test_thousands_of_persistent_all_gathers_into_one_output() -> None:
    """Each has its place among the collectives, so that the next begins when it has ended."""

    def body(comm: TorchComm, told: Signal) -> list[float]:
        output = torch.zeros(2)
        handle = comm.all_gather_p_init(output)
        if comm.get_rank() == 1:
            told.take()
        works = []
        for number in range(MANY):
            works.append(comm.all_gather_p_exec(handle, torch.tensor([10.0 * number + comm.get_rank()]), True))
            if number == 0 and comm.get_rank() == 0:
                told.give()
            if number == 1000:
                works[-1].wait()
                assert output.tolist() == [10.0 * number, 10.0 * number + 1]
        works[-1].wait()
        assert [work._place for work in works] == list(range(1, MANY + 1))
        comm.all_gather_p_free(handle)
        return [float(value) for value in output]

    assert results(_ranks(body)) == [[10.0 * (MANY - 1), 10.0 * (MANY - 1) + 1]] * 2


@pytest.mark.parametrize("name", ["send", "recv", "all_reduce"])
def test_a_death_ends_each_of_thousands(name: str) -> None:
    def issue(comm: TorchComm) -> TorchWork:
        tensor = torch.ones(1)
        if name == "all_reduce":
            return comm.all_reduce(tensor, ReduceOp.SUM, True)
        work: TorchWork = getattr(comm, name)(tensor, 1 - comm.get_rank(), True)
        return work

    def body(comm: TorchComm, told: Signal) -> int:
        if comm.get_rank() == 1:
            told.take()
            os.kill(os.getpid(), signal.SIGKILL)
        ahead = 200 if name == "all_reduce" else MANY  # of collectives the next waits for the first
        works = [issue(comm) for _ in range(ahead)]
        told.give()
        failed = 0
        for number in range(MANY):
            with pytest.raises(OperationError) as caught:
                (works[number] if number < ahead else issue(comm)).wait()
            assert caught.value.reason in ("network", "aborted")
            failed += 1
        return failed

    ranks = _ranks(body)
    assert ranks[1].end() == -signal.SIGKILL
    assert results(ranks[:1]) == [MANY]
