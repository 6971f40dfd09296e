"""What suites for TorchComms ask of a back-end on CPU, under the name torchcomms: each operation, by value, in each way of calling it.

Expected values are computed apart, of integers, by torch on one process.  Inputs have to be bit for bit what they were.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import datetime
import os
import threading
from typing import Any, Callable, NamedTuple, Optional

import pytest
import torch
import torch.distributed as dist

from pccl.comms.alias import install_as_torchcomms
from support.ranks import run

SIZE = 4
COUNTS = (0, 4, 1024, 1 << 20)
TYPES = (torch.float32, torch.int32, torch.int8)
NAMES = ("SUM", "MAX", "AVG", "PREMUL_SUM")


class Case(NamedTuple):
    """One call: `issue(async_op)`, its inputs, what it writes, and what that has to be then; None: it must stay as it is."""

    issue: Callable[[bool], Any]
    inputs: list[torch.Tensor]
    outputs: list[torch.Tensor]
    expected: list[Optional[torch.Tensor]]


def value(rank: int, to: int, count: int, dtype: torch.dtype) -> torch.Tensor:
    """What a rank has for another one: small, so that sums fit into a byte."""
    return ((torch.arange(count, dtype=torch.int64) * 3 + 5 * rank + 7 * to) % 11 - 4).to(dtype)


def reduced(name: str, parts: list[torch.Tensor]) -> torch.Tensor:
    whole = torch.stack([part.to(torch.int64) for part in parts])
    if name == "MAX":
        return whole.max(0).values.to(parts[0].dtype)
    total = whole.sum(0)
    if name == "AVG":
        total = total.double() / SIZE if parts[0].dtype.is_floating_point else total.abs() // SIZE * total.sign()
    return (total * 0.5 if name == "PREMUL_SUM" else total).to(parts[0].dtype)


class Calls:
    """Cases of all operations for one communicator, type and count."""

    def __init__(self, comm: Any, count: int, dtype: torch.dtype) -> None:
        self.comm, self.count, self.dtype = comm, count, dtype
        self.rank = comm.get_rank()
        self.limits = {"hints": {"nobody": "knows"}, "timeout": datetime.timedelta(seconds=60)}

    def of(self, rank: int, to: int = 0, count: Optional[int] = None) -> torch.Tensor:
        return value(rank, to, self.count if count is None else count, self.dtype)

    def blank(self, count: Optional[int] = None) -> torch.Tensor:
        return torch.full((self.count if count is None else count,), 77, dtype=self.dtype)

    def case(self, method: str, arguments: list[Any], inputs: Any, outputs: Any, expected: Any) -> Case:
        call = getattr(self.comm, method)

        def issue(async_op: bool) -> Any:
            return call(*arguments, async_op, **self.limits)

        return Case(issue, inputs, outputs, expected)

    def plain(self) -> dict[str, Callable[[], Case]]:
        """Those that compute nothing."""
        rank, everybody = self.rank, range(SIZE)

        def broadcast() -> Case:
            tensor = self.of(rank)
            return self.case("broadcast", [tensor, 2], [], [tensor], [self.of(2)])

        def gathers(method: str, counts: list[int]) -> Case:
            mine, outputs = self.of(rank, 0, counts[rank]), [self.blank(counts[r]) for r in everybody]
            return self.case(method, [outputs, mine], [mine], outputs, [self.of(r, 0, counts[r]) for r in everybody])

        def all_gather_single() -> Case:
            mine, output = self.of(rank), self.blank(SIZE * self.count)
            return self.case("all_gather_single", [output, mine], [mine], [output], [torch.cat([self.of(r) for r in everybody])])

        def all_to_all() -> Case:
            mine, outputs = [self.of(rank, to) for to in everybody], [self.blank() for _ in everybody]
            return self.case("all_to_all", [outputs, mine], mine, outputs, [self.of(r, rank) for r in everybody])

        def all_to_all_single() -> Case:
            mine, output = torch.cat([self.of(rank, to) for to in everybody]), self.blank(SIZE * self.count)
            return self.case("all_to_all_single", [output, mine], [mine], [output], [torch.cat([self.of(r, rank) for r in everybody])])

        def all_to_all_v_single() -> Case:
            rows = [[(r + to) % 3 * (self.count // 4) for to in everybody] for r in everybody]
            mine = torch.cat([self.of(rank, to, rows[rank][to]) for to in everybody])
            taken = [rows[r][rank] for r in everybody]
            output = self.blank(sum(taken))
            wanted = torch.cat([self.of(r, rank, rows[r][rank]) for r in everybody])
            return self.case("all_to_all_v_single", [output, mine, taken, rows[rank]], [mine], [output], [wanted])

        def scatter() -> Case:
            mine, output = [self.of(rank, to) for to in everybody] if rank == 1 else [], self.blank()
            return self.case("scatter", [output, mine, 1], mine, [output], [self.of(1, rank)])

        def gather() -> Case:
            mine, outputs = self.of(rank), [self.blank() for _ in everybody]  # full off the root, and of no account there
            return self.case("gather", [outputs, mine, 3], [mine], outputs, [self.of(r) if rank == 3 else None for r in everybody])

        def gather_single() -> Case:
            mine, output = self.of(rank), self.blank(SIZE * self.count)
            wanted = torch.cat([self.of(r) for r in everybody])
            return self.case("gather_single", [output, mine, 0], [mine], [output], [wanted if rank == 0 else None])

        def ring() -> Case:
            mine, output = self.of(rank), self.blank()
            batch = self.comm.batch_op_create()
            batch.send(mine, (rank + 1) % SIZE)
            batch.recv(output, (rank - 1) % SIZE)
            return Case(batch.issue, [mine], [output], [self.of((rank - 1) % SIZE)])

        def message() -> Case:
            mine, output = self.of(rank), self.blank()
            if rank % 2 == 0:
                return self.case("send", [mine, rank + 1], [mine], [], [])
            return self.case("recv", [output, rank - 1], [], [output], [self.of(rank - 1)])

        def barrier() -> Case:
            return self.case("barrier", [], [], [], [])

        same, other = [self.count] * SIZE, [self.count // 4 * r for r in everybody]
        return {
            "broadcast": broadcast, "all_gather": lambda: gathers("all_gather", same), "all_gather_v": lambda: gathers("all_gather_v", other),
            "all_gather_single": all_gather_single, "all_to_all": all_to_all, "all_to_all_single": all_to_all_single,
            "all_to_all_v_single": all_to_all_v_single, "scatter": scatter, "gather": gather, "gather_single": gather_single, "ring": ring,
            "message": message, "barrier": barrier,
        }

    def computing(self, name: str) -> dict[str, Callable[[], Case]]:
        """Those with an operator."""
        rank, everybody = self.rank, range(SIZE)
        torchcomms: Any = install_as_torchcomms()
        op = torchcomms.ReduceOp.PREMUL_SUM(0.5) if name == "PREMUL_SUM" else getattr(torchcomms.ReduceOp, name)

        def all_reduce() -> Case:
            tensor = self.of(rank)
            return self.case("all_reduce", [tensor, op], [], [tensor], [reduced(name, [self.of(r) for r in everybody])])

        def reduce() -> Case:
            tensor = self.of(rank)
            wanted = reduced(name, [self.of(r) for r in everybody]) if rank == 1 else None
            return self.case("reduce", [tensor, 1, op], [], [tensor], [wanted])

        def scatters(method: str, counts: list[int]) -> Case:
            mine, output = [self.of(rank, to, counts[to]) for to in everybody], self.blank(counts[rank])
            wanted = reduced(name, [self.of(r, rank, counts[rank]) for r in everybody])
            return self.case(method, [output, mine, op], mine, [output], [wanted])

        def reduce_scatter_single() -> Case:
            mine, output = torch.cat([self.of(rank, to) for to in everybody]), self.blank()
            return self.case("reduce_scatter_single", [output, mine, op], [mine], [output], [reduced(name, [self.of(r, rank) for r in everybody])])

        same, other = [self.count] * SIZE, [self.count // 4 * r for r in everybody]
        return {
            "all_reduce": all_reduce, "reduce": reduce, "reduce_scatter": lambda: scatters("reduce_scatter", same),
            "reduce_scatter_v": lambda: scatters("reduce_scatter_v", other), "reduce_scatter_single": reduce_scatter_single,
        }


# -- Ways of calling --


def not_used(case: Case, comm: Any) -> None:
    case.issue(False)


def used(case: Case, comm: Any) -> None:
    work = case.issue(False)
    work.wait()
    assert work.is_completed()
    work.wait_blocking()


def waited(case: Case, comm: Any) -> None:
    work = case.issue(True)
    work.wait()
    work.wait()
    assert work.is_completed()


def polled(case: Case, comm: Any) -> None:
    work = case.issue(True)
    while not work.is_completed():
        pass


def dropped(case: Case, comm: Any) -> None:
    case.issue(True)
    comm.barrier(False)  # behind it


def freed(case: Case, comm: Any) -> None:
    """Only the work keeps the inputs."""
    held = [tensor.clone() for tensor in case.inputs]
    work = case.issue(True)
    case.inputs.clear()
    others = [torch.full_like(tensor, 55) for tensor in held]  # where they were, if they have gone
    work.wait()
    del others


WAYS: list[Callable[[Case, Any], None]] = [not_used, used, waited, polled, dropped, freed]


def holds(make: Callable[[], Case], way: Callable[[Case, Any], None], comm: Any, label: str) -> None:
    case = make()
    inputs, before = [one.clone() for one in case.inputs], [one.clone() for one in case.outputs]
    given = list(case.inputs)
    way(case, comm)
    for one, two in zip(given, inputs):
        assert torch.equal(one, two), f"{label}: an input was written"
    for found, old, wanted in zip(case.outputs, before, case.expected):
        assert torch.equal(found, old if wanted is None else wanted), f"{label}: {found[:8]} and not {(old if wanted is None else wanted)[:8]}"


@pytest.mark.parametrize("count", COUNTS)
def test_each_operation_in_each_way(count: int) -> None:
    def body() -> None:
        torchcomms: Any = install_as_torchcomms()
        comm = torchcomms.new_comm("mccl", torch.device("cpu"), name="conformance", abort_process_on_timeout_or_error=None)
        large = count > 1024
        ways, types = ([waited], TYPES[:1]) if large else (WAYS, TYPES)
        for dtype in types:
            calls = Calls(comm, count, dtype)
            for way in ways:
                for name, make in calls.plain().items():
                    holds(make, way, comm, f"{name} {way.__name__} {dtype}")
                for op in NAMES[:1] if large else NAMES if dtype.is_floating_point else NAMES[:3]:
                    for name, make in calls.computing(op).items():
                        holds(make, way, comm, f"{name} {op} {way.__name__} {dtype}")
        comm.finalize()

    run(SIZE, body)


class Holder:
    """Finalizes when it goes, as many programs do."""

    def __init__(self, comm: Any) -> None:
        self.comm = comm

    def __del__(self) -> None:
        self.comm.finalize()


def total(comm: Any) -> float:
    tensor = torch.tensor([comm.get_rank() + 1.0])
    comm.all_reduce(tensor, install_as_torchcomms().ReduceOp.SUM, False)
    return float(tensor.item())


def test_many_communicators_with_and_without_a_store() -> None:
    """Interleaved, ended in a destructor, with the store on the port where those without one meet."""

    def body() -> None:
        torchcomms: Any = install_as_torchcomms()
        rank = int(os.environ["RANK"])
        bare = Holder(torchcomms.new_comm("gloo", torch.device("cpu"), name="bare"))
        served = dist.TCPStore("127.0.0.1", int(os.environ["MASTER_PORT"]), SIZE, rank == 0)
        stored = [
            Holder(torchcomms.new_comm(
                "gloo", torch.device("cpu"), name=f"stored{k}", store=dist.PrefixStore(f"stored/{k}", served),
                hints={"persistent_store": "true"},
            ))
            for k in range(3)
        ]
        assert [total(holder.comm) for holder in (*stored, bare, *reversed(stored))] == [10.0] * 7
        works = [holder.comm.barrier(True) for holder in (bare, *stored)]  # all under way at once
        for work in reversed(works):
            work.wait()
        stored[0].comm.barrier()
        del served, works, work  # the store was needed until they had begun
        assert total(stored[1].comm) == 10
        while stored:
            stored.pop()
        del bare

    run(SIZE, body)


def test_splits_of_every_shape() -> None:
    """Who passed [] is a member of a later group; parents and children take turns; a mistake leaves all as they were."""

    def body() -> None:
        torchcomms: Any = install_as_torchcomms()
        comm = torchcomms.new_comm("gloo", torch.device("cpu"), name="whole")
        rank = comm.get_rank()
        members = lambda ranks: ranks if rank in ranks else []  # noqa: E731
        low = comm.split(members([0, 1]), "low")
        assert (low is None) == (rank > 1)
        high = comm.split(members([1, 3]), "high")  # with one that had passed [] before
        assert high is None or total(high) == 3
        odd = comm.split([rank % 2, rank % 2 + 2], "odd")
        assert odd.get_name() == "odd" and odd.get_backend() == "gloo"
        for text, ranks in (("is not included", [(rank + 1) % SIZE]), ("Duplicate ranks", [0, 1, 1, 2, 3]), ("Invalid rank", [rank, 9])):
            with pytest.raises(RuntimeError, match=text):
                comm.split(ranks, "wrong")
        for _ in range(2):
            assert total(odd) == 3 and total(comm) == 10
        alone = odd.split([odd.get_rank()], "alone")
        assert alone.get_size() == 1 and total(alone) == 1
        again = comm.split([3, 2, 1, 0], "again")
        assert again.get_rank() == 3 - rank and again.get_ranks() == [3, 2, 1, 0]
        for child in (again, alone, odd, high, low):
            if child is not None:
                child.finalize()
        assert total(comm) == 10
        comm.finalize()

    run(SIZE, body)


def test_batches_of_a_subset_without_bound() -> None:
    """More messages than any numbering by thousands would keep apart, between two; then collectives of all."""

    def body() -> None:
        torchcomms: Any = install_as_torchcomms()
        comm = torchcomms.new_comm("gloo", torch.device("cpu"), name="batched")
        rank = comm.get_rank()
        if rank in (1, 2):
            got = torch.zeros(2500, 1)
            batch = comm.batch_op_create()
            for k in range(2500):
                batch.send(torch.tensor([float(3 * k + rank)]), 3 - rank)
                batch.recv(got[k], 3 - rank)
            batch.issue(True).wait()
            assert got.flatten().tolist() == [3.0 * k + 3 - rank for k in range(2500)]
        assert total(comm) == 10
        comm.finalize()

    run(SIZE, body)


def test_a_later_call_finds_what_an_earlier_one_writes() -> None:
    """Without a wait between them: the same tensor written twice, read behind that, and written while it is read."""

    def body() -> None:
        torchcomms: Any = install_as_torchcomms()
        comm = torchcomms.new_comm("gloo", torch.device("cpu"), name="chained")
        for _ in range(10):
            tensor, whole = torch.ones(100_000), torch.zeros(100_000 * SIZE)
            comm.all_reduce(tensor, torchcomms.ReduceOp.SUM, True)
            comm.all_reduce(tensor, torchcomms.ReduceOp.SUM, True)
            comm.all_gather_single(whole, tensor, True)
            comm.broadcast(tensor, 0, True)
            last = comm.all_reduce(tensor, torchcomms.ReduceOp.SUM, True)
            last.wait()
            assert bool((whole == SIZE * SIZE).all()) and bool((tensor == SIZE ** 3).all())
        comm.finalize()

    run(SIZE, body)


def test_a_queue_and_no_thread_for_each_operation() -> None:
    def body() -> None:
        torchcomms: Any = install_as_torchcomms()
        comm = torchcomms.new_comm("gloo", torch.device("cpu"), name="queued")
        comm.barrier(False)

        def threads() -> int:
            return len(os.listdir("/proc/self/task"))

        before = threads()
        tensors = [torch.full((4,), float(k)) for k in range(300)]
        works = [comm.all_reduce(tensor, torchcomms.ReduceOp.SUM, True) for tensor in tensors]
        most = threads()
        del works  # does not block
        comm.barrier(False)
        assert most <= before + 2 and threading.active_count() < 20
        assert [tensor[0].item() for tensor in tensors] == [SIZE * float(k) for k in range(300)]
        comm.finalize()

    run(SIZE, body)
