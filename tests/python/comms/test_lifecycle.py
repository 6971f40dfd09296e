"""How communicators begin, split and end: every store, rank discovery, many in one process, names that come again, finalize."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import copy
import datetime
import logging
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time
from typing import Any, Callable

import pytest
import torch
import torch.distributed as dist

from pccl.comms import CommOptions, ReduceOp, Timeout, TorchComm, new_comm, store
from pccl.comms.environment import rank_and_size
from pccl.comms.store_server import StoreServer
from pccl.engine import meeting
from support.ranks import Rank, free_port, results, run, start
from support.tcp_store import served_store
from support.worlds import master_loss_seconds


def sum_of(comm: TorchComm) -> float:
    tensor = torch.tensor([comm.get_rank() + 1.0])
    comm.all_reduce(tensor, ReduceOp.SUM, False)
    return float(tensor.item())


def made(store: Any = None, name: str = "one", **keywords: Any) -> float:
    comm = new_comm("pccl", "cpu", name, store=store, timeout=30, **keywords)
    total = sum_of(comm)
    comm.finalize()
    return total


def test_without_a_store_the_port_is_free_again() -> None:
    def body() -> None:
        address = ("127.0.0.1", int(os.environ["MASTER_PORT"]))
        for name in ("a", "b", "a"):
            comm = new_comm("pccl", torch.device("cpu"), name, timeout=30)
            comm.barrier()
            if comm.get_rank() == 0:
                with socket.socket() as mine:  # rank 0 is the one that served
                    mine.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    mine.bind(address)
                    mine.listen()
            assert sum_of(comm) == 6
            comm.finalize()

    run(3, body)


def test_every_kind_of_store(tmp_path: pathlib.Path) -> None:
    port = free_port()

    def body() -> list[float]:
        rank, size = rank_and_size()
        tcp = dist.TCPStore("127.0.0.1", port, is_master=rank == 0, wait_for_workers=False)
        values: list[float] = []
        for store in (
            tcp, dist.PrefixStore("x", tcp), dist.FileStore(str(tmp_path / "c10d"), size), str(tmp_path / "own"), tmp_path / "own",
            f"127.0.0.1:{os.environ['MASTER_PORT']}", (tcp.set, tcp.get, tcp.wait), (tcp.set, tcp.get, tcp.wait), tcp, None,
        ):
            values.append(made(store, hints={"persistent_store": "true"}))
        return values

    assert run(2, body) == [[3.0] * 10] * 2


def test_a_store_that_a_launcher_serves_at_the_port() -> None:
    """Rank 0 finds the port in use, and everybody uses the c10d store that is there."""
    port = free_port()
    with served_store(port):
        assert run(2, made, environment={"MASTER_PORT": str(port)}) == [3.0, 3.0]


def test_without_a_named_master_rank_0_starts_one_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PCCL_MASTER")

    def body() -> str:
        masters = set()
        for name in ("a", "b"):
            comm = new_comm("pccl", "cpu", name, timeout=30)
            assert sum_of(comm) == 3
            masters.add(comm.get_init_handle().split(";")[1])
            comm.finalize()
        (master,) = masters
        return str(master)

    assert len(set(run(2, body))) == 1


@pytest.mark.parametrize(("given", "seconds"), [(True, 10.0), (False, 1.0)])
def test_a_master_that_a_rank_has_started_does_not_come_back(given: bool, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ranks that wait 10 s for a master that has gone with rank 0's host, in a communicator, a part of it, or one that was made anew."""
    if not given:
        monkeypatch.delenv("PCCL_MASTER", raising=False)

    def body() -> list[float]:
        comm = new_comm("pccl", "cpu", "one")
        part = comm.split([0, 1], "part")
        again = new_comm("pccl", "cpu", "again", enable_reconfigure=True)
        again.reconfigure(comm.get_rank(), [again.get_init_handle()])
        waited = [master_loss_seconds(each.get_backend_impl().world) for each in (comm, part, again)]
        for each in (again, part, comm):
            each.finalize()
        return waited

    assert run(2, body) == [[seconds] * 3] * 2


def test_torchrun(tmp_path: pathlib.Path) -> None:
    """The first example of the page, with the launcher as it is, which serves a store at MASTER_PORT itself."""
    page = (pathlib.Path(__file__).parents[3] / "docs" / "guide" / "python" / "COMMS.md").read_text()
    program = tmp_path / "first.py"
    program.write_text(page.partition("```python\n")[2].partition("```")[0])
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node=2", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("tensor([3., 3., 3., 3.])") == 2  # lines of two processes


def test_a_job_that_is_started_anew_does_not_meet_its_past(tmp_path: pathlib.Path) -> None:
    """A first job's rank 0 tells the store, and dies before anybody has come; the second uses the same store."""

    def alone() -> None:
        new_comm("pccl", "cpu", "job", store=str(tmp_path / "store"), timeout=30)

    first = start(2, alone)
    first[1].kill()
    first[1].end()
    while not (tmp_path / "store").exists() or "attempt 1" not in (tmp_path / "store").read_text():
        pass
    first[0].kill()
    first[0].end()

    def meets_the_past() -> float:
        enter = meeting._connected

        def told(*arguments: Any) -> Any:
            (tmp_path / "met").touch()
            return enter(*arguments)

        setattr(meeting, "_connected", told)
        return made(str(tmp_path / "store"), "job")

    early = Rank(meets_the_past, (), {"RANK": "1", "WORLD_SIZE": "2"})
    while not (tmp_path / "met").exists():
        pass
    late = Rank(made, (str(tmp_path / "store"), "job"), {"RANK": "0", "WORLD_SIZE": "2"})
    assert results([early, late]) == [3.0, 3.0]


def test_a_rank_0_that_is_started_anew_is_found_by_those_who_wait(tmp_path: pathlib.Path) -> None:
    """Its store is a new one at the same port: what stands there must not look as old as what they have tried."""

    def waits() -> float:
        enter = meeting._connected

        def told(*arguments: Any) -> Any:
            (tmp_path / "met").touch()
            return enter(*arguments)

        setattr(meeting, "_connected", told)
        return made(None, "job")

    port = str(free_port())

    def rank(number: int, function: Callable[[], float]) -> Rank:
        place = {"RANK": str(number), "WORLD_SIZE": "3", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        return Rank(function, (), place)

    first, waiting = rank(0, lambda: made(None, "job")), rank(1, waits)
    while not (tmp_path / "met").exists():
        assert waiting.status is None
    first.kill()
    first.end()
    assert results([waiting, rank(0, lambda: made(None, "job")), rank(2, lambda: made(None, "job"))]) == [6.0] * 3


def test_ranks_of_launchers(monkeypatch: pytest.MonkeyPatch) -> None:
    ranks = "TORCHCOMM_RANK OMPI_COMM_WORLD_RANK PMI_RANK PALS_RANKID RANK"
    sizes = "TORCHCOMM_SIZE OMPI_COMM_WORLD_SIZE PMI_SIZE PALS_SIZE WORLD_SIZE"
    for name in [*ranks.split(), *sizes.split(), "TORCHCOMM_BOOTSTRAP_RANKSIZE_QUERY_METHOD"]:
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(RuntimeError, match="Unable to determine rank and size"):
        rank_and_size()
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "9")
    assert rank_and_size() == (1, 9)
    monkeypatch.setenv("PALS_RANKID", "2")
    assert rank_and_size() == (2, 9)
    monkeypatch.setenv("OMPI_COMM_WORLD_RANK", "3")
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "8")
    assert rank_and_size() == (3, 8)
    monkeypatch.setenv("TORCHCOMM_BOOTSTRAP_RANKSIZE_QUERY_METHOD", "Torchrun")
    assert rank_and_size() == (1, 9)
    monkeypatch.setenv("TORCHCOMM_BOOTSTRAP_RANKSIZE_QUERY_METHOD", "env")
    with pytest.raises(RuntimeError, match="Unable to determine.*QUERY_METHOD is 'env', none of auto, mpi, pals, torchrun"):
        rank_and_size()
    monkeypatch.setenv("TORCHCOMM_RANK", "0")
    monkeypatch.setenv("TORCHCOMM_SIZE", "2")
    assert rank_and_size() == (0, 2)
    monkeypatch.setenv("TORCHCOMM_SIZE", "two")
    with pytest.raises(RuntimeError, match="Invalid value for environment variable TORCHCOMM_SIZE: two"):
        rank_and_size()


def test_one_rank_with_port_0() -> None:
    assert run(1, made, environment={"MASTER_PORT": "0"}) == [1.0]


def test_options_and_the_environment() -> None:
    def body() -> None:
        options = CommOptions(timeout=Timeout(12), name="named", hints={"x": "y"})
        comm = new_comm("pccl", torch.device("cpu"), options=options, hints={"z": "1"})
        assert comm.get_name() == "named" and comm.get_options().hints == {"x": "y", "z": "1"}
        assert comm.get_options().timeout == datetime.timedelta(seconds=12) == comm.get_options().timeout
        comm.set_timeout(2.5)
        comm.set_hints({"a": "b"})
        assert comm.get_options().timeout == datetime.timedelta(seconds=2.5)
        comm.all_reduce(torch.ones(1), ReduceOp.SUM, hints={"unknown": "x"}, timeout=datetime.timedelta(seconds=3))
        comm.finalize()
        os.environ["TORCHCOMM_TIMEOUT_SECONDS"] = "30.0"
        first, second = new_comm("pccl"), new_comm("pccl")
        assert first.get_name() != second.get_name() and first.get_options().timeout == datetime.timedelta(seconds=30)
        assert first.get_options().abort_process_on_timeout_or_error is False
        first.finalize()
        second.finalize()
        for value, variable in (("soon", "TORCHCOMM_TIMEOUT_SECONDS"), ("perhaps", "TORCHCOMM_ABORT_ON_ERROR")):
            os.environ[variable] = value
            with pytest.raises(RuntimeError, match=f"Invalid value for environment variable {variable}: {value}"):
                new_comm("pccl", "cpu", "x")
            del os.environ[variable]
        os.environ["TORCHCOMM_ABORT_ON_ERROR"] = " Yes "
        assert CommOptions().resolved().abort_process_on_timeout_or_error is True

    run(1, body)


def test_identity() -> None:
    def body() -> None:
        comm = new_comm("pccl", torch.device("cpu"), "main", timeout=30)
        assert (comm.get_backend(), comm.get_device(), comm.get_name()) == ("pccl", torch.device("cpu"), "main")
        assert isinstance(comm.get_backend_version(), str) and comm.get_backend_version()[0].isdigit()
        assert comm.get_ranks() == [0, 1] and comm.get_size() == 2
        memo: dict[int, Any] = {}
        assert copy.copy(comm) is comm and copy.deepcopy(comm, memo) is comm and memo[id(comm)] is comm
        with pytest.warns(DeprecationWarning):
            assert comm.unsafe_get_backend() is comm.get_backend_impl()
        comm.finalize()
        assert comm.get_backend_impl().get_backend_name() == "pccl"
        with pytest.raises(RuntimeError, match="already finalized"):
            comm.finalize()
        with pytest.raises(RuntimeError, match="not initialized"):
            comm.barrier()

    run(2, body)


def test_hosts_and_a_second_beginning() -> None:
    def body() -> None:
        comm = new_comm("pccl", "cpu", "here", timeout=30)
        assert comm.get_nodes() == [0, 0, 0] and comm.get_local_ranks() == [0, 1, 2]
        with pytest.raises(RuntimeError, match="here is already initialized"):
            comm.get_backend_impl().init("cpu", "again", comm.get_options())
        comm.barrier()
        comm.finalize()
        with pytest.raises(RuntimeError, match="not initialized"):
            comm.get_nodes()

    run(3, body)
    elsewhere = new_comm("fake", "cpu", "fake")
    elsewhere._backend.get_hosts = lambda: ["b", "a", "b", "c"]  # type: ignore[method-assign]
    elsewhere._rank = 2
    assert elsewhere.get_nodes() == [0, 1, 0, 2] and elsewhere.get_local_ranks() == [0, 2]
    elsewhere.finalize()


def test_wrong_back_ends_and_devices() -> None:
    with pytest.raises(ModuleNotFoundError, match="failed to find backend"):
        new_comm("nonsense", "cpu", "x")
    with pytest.raises(RuntimeError, match="only CPU is supported"):
        new_comm("pccl", "cuda:0", "x")


def test_splits() -> None:
    def body() -> None:
        comm = new_comm("pccl", "cpu", "parent", timeout=30, hints={"mine": "1"})
        rank = comm.get_rank()
        half = comm.split([2, 0] if rank % 2 == 0 else [1, 3], "half")
        assert half is not None and half.get_name() == "half" and half.get_backend() == "pccl"
        assert half.get_ranks() == ([2, 0] if rank % 2 == 0 else [1, 3])
        assert half.get_rank() == half.get_ranks().index(rank)
        assert half.get_options().hints == {"mine": "1"}
        tensor = torch.tensor([float(rank)])
        half.all_reduce(tensor, ReduceOp.SUM)
        assert tensor.item() == (2.0 if rank % 2 == 0 else 4.0)
        comm.barrier()
        few = comm.split([3] if rank == 3 else [], "few")
        assert (few is None) == (rank != 3)
        inner = half.split([1, 0], "inner")  # nested
        assert inner is not None and inner.get_ranks() == list(reversed(half.get_ranks()))
        pieces = [torch.zeros(1) for _ in range(2)]
        inner.all_gather(pieces, torch.tensor([float(rank)]))
        assert [int(piece.item()) for piece in pieces] == inner.get_ranks()
        outsiders = comm.split([0, 1], "low", hints={"non_members": "none"})
        assert (outsiders is None) == (rank > 1)
        for child in (outsiders, inner, few, half):
            if child is not None:
                child.finalize()
        assert sum_of(comm) == 10
        comm.finalize()

    run(4, body)


SPLIT_MISTAKES: list[tuple[str, Callable[[int], list[int]]]] = [
    ("is not included in the provided ranks list", lambda rank: [1] if rank == 0 else [1, 2] if rank else []),
    ("Duplicate ranks", lambda rank: [0, 1, 2, 1]),
    ("Invalid rank", lambda rank: [0, 1, 2, 3] if rank == 1 else [0, 1, 2]),
    ("Invalid rank", lambda rank: [-1]),
    ("same list", lambda rank: [0, 1] if rank == 0 else []),
    ("same list", lambda rank: [0, 1] if rank == 0 else [1, 0] if rank == 1 else []),
]


def test_a_wrong_list_is_an_error_of_all() -> None:
    def body() -> None:
        comm = new_comm("pccl", "cpu", "parent", timeout=30)
        for text, lists in SPLIT_MISTAKES:
            with pytest.raises(RuntimeError, match=text):
                comm.split(lists(comm.get_rank()), "wrong")
        assert sum_of(comm) == 6
        comm.finalize()

    run(3, body)


def test_dropped_without_finalize(caplog: pytest.LogCaptureFixture) -> None:
    def body() -> str:
        heard: list[str] = []

        class Hearer(logging.Handler):
            def emit(self, record: logging.LogRecord) -> None:
                heard.append(record.getMessage())

        logging.getLogger("pccl.comms").addHandler(Hearer())
        comm = new_comm("pccl", "cpu", "dropped", timeout=30)
        comm.barrier()
        del comm
        assert made() == 3.0  # the process is of use
        return heard[0]

    assert run(2, body) == ["communicator dropped was dropped without finalize()"] * 2


def test_who_is_done_first_does_not_end_it_for_the_others() -> None:
    def body() -> None:
        comm = new_comm("pccl", "cpu", "late", timeout=30)
        if comm.get_rank() == 0:
            for k in range(100):
                comm.send(torch.tensor([k]), 1)
        elif comm.get_rank() == 1:
            got = torch.zeros(1, dtype=torch.int64)
            for k in range(100):
                comm.recv(got, 0)
                assert got.item() == k
        comm.finalize()  # rank 2 is here at once

    run(3, body)


def test_threads_share_a_communicator() -> None:
    def body() -> None:
        comm = new_comm("pccl", "cpu", "threads", timeout=30)
        totals: list[float] = []

        def work() -> None:
            tensor = torch.ones(8)  # alike in all threads, so that whichever meets whichever
            comm.all_reduce(tensor, ReduceOp.SUM)
            totals.append(float(tensor[0].item()))

        threads = [threading.Thread(target=work) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert totals == [2.0] * 8
        comm.finalize()

    run(2, body)


def test_a_rank_that_never_comes() -> None:
    def body() -> str:
        with pytest.raises(RuntimeError, match="timed out") as caught:
            new_comm("pccl", "cpu", "short", timeout=1)
        return str(caught.value)

    ranks = start(2, body)
    ranks[1].kill()
    ranks[1].end()
    assert results(ranks[:1])


def test_without_torch_and_numpy() -> None:
    """The package is used in a process that cannot import either."""
    program = """
import sys
sys.modules["torch"] = sys.modules["numpy"] = None
import array, pccl.comms
from pccl.comms import ReduceOp
comm = pccl.comms.new_comm("pccl", "cpu", "bare", timeout=30)
data = array.array("f", [1, 2])
comm.all_reduce(data, ReduceOp.SUM)
assert list(data) == [1, 2]
parts = [bytearray(2)]
comm.all_gather(parts, b"ab")
assert parts == [b"ab"]
comm.finalize()
print("done")
"""
    environment = {**os.environ, "RANK": "0", "WORLD_SIZE": "1"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=60)
    assert done.stdout == "done\n", done.stderr


def test_a_rank_0_that_is_late_is_not_taken_for_another_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its thread gets no time for so long that the other tries a client of torch's, which would wait for its answer for ever."""
    tried = threading.Event()
    accept, other_client = StoreServer._accept, store._c10d_client

    def late(server: StoreServer) -> None:
        assert tried.wait(30)
        accept(server)

    def client(*arguments: Any) -> Any:
        tried.set()
        return other_client(*arguments)

    monkeypatch.setattr(StoreServer, "_accept", late)
    monkeypatch.setattr(store, "_c10d_client", client)
    monkeypatch.setattr(store, "_FIRST_PATIENCE", 0.2)
    served = StoreServer("127.0.0.1", 0)
    served.set("key", "value")
    there = store._AtAddress(*served._listener.getsockname(), time.monotonic() + 30)
    assert there.get("key", 30) == "value" and tried.is_set()
    served.close()


def test_stores_that_last() -> None:
    """Of a prefix each: over MASTER_PORT, which is free at once, and over another store, which may go."""
    from pccl.comms.store_manager import _create_prefix_store, _dup_prefix_store

    def rank() -> None:
        own = int(os.environ["RANK"])
        first = _create_prefix_store("first", datetime.timedelta(seconds=20))
        second = _create_prefix_store("second", 20)
        copied = _dup_prefix_store("copied", first, 20.0)
        for number, store in enumerate((first, second, copied)):
            store.set(f"key{own}", str(10 * number + own))
            assert store.get(f"key{1 - own}") == str(10 * number + 1 - own).encode()
        del first, second
        comm = new_comm("pccl", "cpu", "over a store", store=copied, hints={"persistent_store": "true"})
        comm.barrier()
        comm.finalize()
        if own == 0:  # nobody serves there any more
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(("127.0.0.1", int(os.environ["MASTER_PORT"])))

    run(2, rank)
