"""Timeouts, aborts, deaths: what operations, communicators and processes do then; and reconfiguration after them."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
from typing import Any, Callable, Iterator, Optional

import pytest
import torch

from pccl.comms import OperationError, ReduceOp, TorchComm, WorkStatus, new_comm, objcol
from pccl.comms.backends.native import NativeBackend
from pccl.comms.backends.native_work import CombinedWork, NativeWork
from pccl.errors import PCCLError
from support.ranks import results, run, start
from support.tcp_store import served_store


def comm_of(name: str = "test", timeout: float = 30, **keywords: Any) -> TorchComm:
    return new_comm("pccl", "cpu", name, timeout=timeout, **keywords)


def total(comm: TorchComm) -> float:
    tensor = torch.tensor([comm.get_rank() + 1.0])
    comm.all_reduce(tensor, ReduceOp.SUM)
    return float(tensor.item())


def test_timeouts_are_enforced_and_the_communicator_goes_on() -> None:
    def body() -> None:
        comm = comm_of()
        for attempt in range(2):
            got = torch.full((2,), 5.0)
            if comm.get_rank() == 0:  # nobody sends
                work = comm.recv(got, 1, True, timeout=0.3)
                for _ in range(2):
                    with pytest.raises(RuntimeError, match="operation timed out") as caught:
                        work.wait()
                assert work.status() is WorkStatus.TIMEDOUT and not work.is_completed()
                assert isinstance(caught.value, OperationError) and caught.value.reason == "timed_out"
                assert isinstance(caught.value.__cause__, PCCLError) and got.tolist() == [5.0, 5.0]
            comm.barrier()
            tensor = torch.full((2,), 7.0)
            if comm.get_rank() == 0:  # the others do not come in time; then it is given up at all
                with pytest.raises(RuntimeError, match="timed out"):
                    comm.all_reduce(tensor, ReduceOp.SUM, False, timeout=0.3)
            elif comm.get_rank() == 1:
                comm.recv(got, 2)  # rank 2 calls a second later than its limit
                with pytest.raises(RuntimeError):
                    comm.all_reduce(tensor, ReduceOp.SUM)
            else:
                threading.Event().wait(1.0)
                comm.send(got, 1)
                with pytest.raises(RuntimeError):
                    comm.all_reduce(tensor, ReduceOp.SUM)
            assert tensor.tolist() == [7.0, 7.0]
            assert total(comm) == 6
        comm.set_timeout(0.2)
        if comm.get_rank() == 0:
            with pytest.raises(RuntimeError, match="timed out"):
                comm.recv(torch.zeros(1), 1)
        comm.set_timeout(30)
        assert not comm.is_aborted() and comm.get_abort_info() is None
        comm.finalize()

    run(3, body)


def test_a_receive_that_was_given_up_is_not_written_later() -> None:
    def body() -> None:
        comm = comm_of()
        if comm.get_rank() == 0:
            late = torch.full((3,), 5.0)
            with pytest.raises(RuntimeError, match="timed out"):
                comm.recv(late, 1, timeout=0.2)
            comm.barrier()
            got = torch.zeros(3)
            comm.recv(got, 1)
            comm.barrier()
            assert got.tolist() == [1.0] * 3 and late.tolist() == [5.0] * 3
        else:
            comm.barrier()
            with pytest.raises(RuntimeError, match="timed out"):  # the message that it was for is given up with it
                comm.send(torch.full((3,), 9.0), 0)
            comm.send(torch.ones(3), 0)
            comm.barrier()
        comm.finalize()

    run(2, body)


def test_what_is_stuck_at_finalize_is_told() -> None:
    def body() -> str:
        comm = comm_of()
        work = comm.recv(torch.zeros(1), 1 - comm.get_rank(), True, timeout=0.3)
        with pytest.raises(RuntimeError) as caught:
            comm.finalize()
        with pytest.raises(RuntimeError, match="timed out"):
            work.wait()
        return str(caught.value)

    assert all(said.startswith("Work timed out during finalize of ") for said in run(2, body))


def test_callbacks_of_works() -> None:
    def body() -> None:
        comm = comm_of()
        heard: list[str] = []
        work = comm.recv(torch.zeros(1), 1, True) if comm.get_rank() == 0 else comm.barrier(True)
        for event in ("start", "end", "before_wait", "after_wait"):
            work.register_callback(event, lambda _, event=event: heard.append(event))  # type: ignore[misc]
        if comm.get_rank() == 0:
            assert heard == ["start"]  # registered late: at once
            comm.barrier(True)
            work.wait()
            work.wait()
            assert heard.count("end") == 1 and heard.index("end") < heard.index("after_wait")
            assert [event for event in heard if event != "end"] == ["start", *["before_wait", "after_wait"] * 2]
            work.register_callback("end", lambda _: heard.append("late"))
            assert heard[-1] == "late"
        else:
            work.wait()  # rank 0 has registered
            comm.send(torch.ones(1), 0)
        with pytest.raises(ValueError, match="is none of"):
            work.register_callback("middle", print)
        comm.finalize()

    run(2, body)


def test_a_wait_of_a_limit() -> None:
    def body() -> None:
        comm = comm_of()
        if comm.get_rank() == 0:
            got = torch.zeros(1)
            work = comm.recv(got, 1, True)
            with pytest.raises(TimeoutError):
                work.wait(0.05)
            comm.barrier(True)
            work.wait()
            assert got.item() == 3.0
        else:
            comm.barrier()
            comm.send(torch.tensor([3.0]), 0)
        comm.finalize()

    run(2, body)


def test_abort_wakes_what_is_blocked_at_all_ranks() -> None:
    def body() -> None:
        comm = comm_of()
        hooks: list[str] = []
        comm.register_abort_hook(lambda: hooks.append("called"))
        comm.barrier()
        tensor = torch.full((4,), 9.0)
        if comm.get_rank() == 0:
            work = comm.recv(torch.zeros(1), 1, True)
            comm.abort()
            comm.abort()
            threading.Thread(target=comm.abort).start()
            with pytest.raises(RuntimeError):
                work.wait()
            assert work.status() is WorkStatus.ERROR
        else:
            with pytest.raises(RuntimeError):  # at its issue, if the abort is there already
                comm.all_reduce(tensor, ReduceOp.SUM, True).wait()
            with pytest.raises(RuntimeError):
                comm.broadcast(tensor, 0)
        assert tensor.tolist() == [9.0] * 4
        assert comm.is_abort_supported() and comm.is_aborted() and hooks == ["called"]
        info = comm.get_abort_info()
        assert info is not None and info.reason == "aborted" and info.context
        with pytest.raises(RuntimeError, match="was aborted"):
            comm.all_reduce(tensor, ReduceOp.SUM)
        assert tensor.tolist() == [9.0] * 4
        comm.finalize()

    run(3, body)


def test_a_window_of_a_communicator_that_has_ended() -> None:
    """It is an error like any other's, whether the end is met by the registration or was known before."""

    def body() -> None:
        comm = comm_of()
        window = comm.new_window()
        used = comm.new_window(torch.zeros(2))
        comm.barrier()
        if comm.get_rank() == 0:
            comm.abort()
        for _ in range(2):
            with pytest.raises(OperationError, match="tensor_register on communicator|tensor_register: communicator test was aborted") as caught:
                window.tensor_register(torch.zeros(2))
            assert caught.value.reason == "aborted" and comm.is_aborted()
        used.tensor_deregister()
        assert used.get_tensor() is None and window.get_size() == 0

    run(2, body)


@pytest.mark.parametrize("killed", (0, 2))
def test_a_killed_rank_is_an_error_of_the_others(killed: int) -> None:
    def body() -> tuple[str, Any]:
        comm = comm_of()
        comm.barrier()
        if comm.get_rank() == killed:
            os.kill(os.getpid(), signal.SIGKILL)
        tensor = torch.full((1000,), 4.0)
        with pytest.raises(OperationError) as caught:
            while True:
                comm.all_reduce(tensor, ReduceOp.MAX)
        assert tensor.tolist() == [4.0] * 1000
        cause = caught.value.__cause__
        assert isinstance(cause, PCCLError) and cause.peer != 0
        assert comm.is_aborted()
        info = comm.get_abort_info()
        comm.finalize()
        return caught.value.reason, info

    ranks = start(3, body)
    assert ranks[killed].end() == -signal.SIGKILL
    for reason, info in results([rank for rank in ranks if rank is not ranks[killed]]):
        assert reason == "network" == info.reason


class Ended:
    """An operation of the engine that has ended so."""

    def __init__(self, error: Optional[Exception]) -> None:
        self.error = error

    def done(self) -> bool:
        return True

    def wait(self, timeout: Optional[float] = None) -> bool:
        if self.error is not None:
            raise self.error
        return True

    def when_done(self, callback: Callable[[Any], None]) -> None:
        callback(self)


def overwritten(target: Any) -> Any:
    """A broadcast that fails when some of it has come."""
    ctypes.memset(target.address, 1, target.nbytes - 1)
    return Ended(RuntimeError("lost"))


def test_what_was_there_is_put_back_once_and_only_after_an_error() -> None:
    done: list[str] = []
    for error in (RuntimeError("lost"), None):
        operation: Any = Ended(error)
        work = NativeWork(operation, lambda: done.append("after"), lambda: done.append("undo"), True)
        for _ in range(2):
            if error is None:
                work.wait()
            else:
                with pytest.raises(RuntimeError, match="lost"):
                    work.wait()
            assert work.is_completed() and work.wait_for(1)
    assert done == ["undo", "after"]
    backend = NativeBackend()
    world: Any = type("World", (), {"broadcast": lambda self, send, receive, root, deadline: overwritten(receive)})()
    backend._enter(world, 1, 2, [0, 1])
    tensor = torch.full((3,), 7.0)
    with pytest.raises(RuntimeError, match="lost"):
        backend.broadcast(tensor, 0, False, timeout=1).wait()
    assert tensor.tolist() == [7.0] * 3
    told: list[Any] = []
    both = CombinedWork([NativeWork(Ended(None), None, None, True), NativeWork(Ended(ValueError("x")), None, None, True)])  # type: ignore
    both.when_done(told.append)
    assert told == [both] and both.is_completed()
    with pytest.raises(ValueError):
        both.wait()


def child_with_stderr(path: str, function: Callable[[], None]) -> None:
    with open(path, "w") as file:
        os.dup2(file.fileno(), 2)
    function()


@pytest.mark.parametrize("how", ("flag", "variable", "nobody waits"))
def test_the_process_is_aborted_where_that_is_asked(how: str, tmp_path: Any) -> None:
    """Hooks first, a message with the operation, then SIGABRT."""

    def body() -> None:
        rank = int(os.environ["RANK"])

        def aborting() -> None:
            flag = True if how != "variable" and rank == 0 else None
            comm = comm_of(abort_process_on_timeout_or_error=flag)
            comm.register_abort_hook(lambda: (tmp_path / "hook").write_text("called"))
            comm.barrier()
            if rank == 0:
                work = comm.recv(torch.zeros(1), 1, True, timeout=0.2)
                if how == "nobody waits":
                    time.sleep(60)
                work.wait()
            else:
                while not (tmp_path / "over").exists():
                    time.sleep(0.01)

        child_with_stderr(str(tmp_path / f"stderr{rank}"), aborting)

    ranks = start(2, body, environment={"TORCHCOMM_ABORT_ON_ERROR": "true"} if how == "variable" else None)
    assert ranks[0].end(30) == -signal.SIGABRT
    ranks[1].kill()
    ranks[1].end()
    said = (tmp_path / "stderr0").read_text()
    assert "recv on communicator test timed out" in said and (tmp_path / "hook").read_text() == "called"


# -- Reconfiguration --


class Board:
    """Handles of all processes, told by a store that has nothing to do with the library."""

    def __init__(self, port: int, rank: int, size: int) -> None:
        import torch.distributed as dist

        self.store = dist.TCPStore("127.0.0.1", port, is_master=False)
        self.rank, self.size, self.step = rank, size, 0

    def all(self, comm: TorchComm) -> list[str]:
        return self.among(comm, range(self.size))

    def among(self, comm: TorchComm, ranks: Any) -> list[str]:
        self.step += 1
        self.store.set(f"{self.step}/{self.rank}", comm.get_init_handle())
        return [self.store.get(f"{self.step}/{rank}").decode() for rank in ranks]

    def meet(self) -> None:
        self.step += 1
        if self.store.add(f"meet {self.step}", 1) == self.size:
            self.store.set(f"met {self.step}", "1")
        self.store.wait([f"met {self.step}"])


def reconfigurable(size: int, function: Callable[[TorchComm, Board], Any], **environment: str) -> list[Any]:
    with served_store() as port:

        def body() -> Any:
            board = Board(port, int(os.environ["RANK"]), size)
            return function(comm_of("again", enable_reconfigure=True), board)

        return run(size, body, environment=environment)


class Rotated(set[str]):
    """A set whose order is another one at each rank, as of processes that hash texts differently; those forked of one hash alike."""

    def __init__(self, elements: list[str], by: int) -> None:
        super().__init__(elements)
        self.order = elements[by:] + elements[:by]

    def __iter__(self) -> Iterator[str]:
        return iter(self.order)


def test_reconfigure_shapes() -> None:
    def body(comm: TorchComm, board: Board) -> None:
        rank = board.rank
        assert (comm.get_rank(), comm.get_size()) == (-1, -1)
        with pytest.raises(RuntimeError, match="not initialized"):
            comm.barrier()
        handles = board.all(comm)
        assert len(set(handles)) == 4 and all(handles) and comm.get_init_handle() == handles[rank]
        work = comm.reconfigure(1, [handles[r] for r in (3, 1, 0, 2)])  # a list: its order
        assert work.is_completed() and work.wait() is None
        assert comm.get_rank() == (3, 1, 0, 2).index(rank) and comm.get_size() == 4 and total(comm) == 10
        handles = board.all(comm)
        kept = comm.all_gather_p_init(torch.zeros(4))
        comm.reconfigure(2, Rotated(handles, rank))  # a set: any order, the same on all ranks
        with pytest.raises(RuntimeError, match="is none of all_gather_p_init"):
            comm.all_gather_p_exec(kept, torch.ones(1))  # the room that it had is for the ranks that there were
        order = [torch.zeros(1) for _ in range(4)]
        comm.all_gather(order, torch.tensor([float(rank)]))
        assert sorted(int(place.item()) for place in order) == [0, 1, 2, 3] and int(order[comm.get_rank()].item()) == rank
        handles = board.all(comm)
        if rank != 2:  # a middle one is left out, and needed for nothing
            comm.reconfigure(3, [handles[r] for r in (0, 1, 3)])
            assert comm.get_size() == 3 and total(comm) == 6
        handles = board.all(comm)
        comm.reconfigure(50, [handles[rank]])  # each alone, at once, with one uuid
        assert (comm.get_rank(), comm.get_size()) == (0, 1) and total(comm) == 1
        handles = board.all(comm)
        pair = [0, 1] if rank < 2 else [2, 3]
        comm.reconfigure(60, [handles[r] for r in pair])  # halves
        assert total(comm) == 3
        child = comm.split([0, 1], "child")
        assert child is not None
        handles = board.all(comm)
        comm.reconfigure(61, handles)  # merged, grown
        assert total(comm) == 10
        with pytest.raises(RuntimeError, match="was aborted"):
            child.barrier()
        handles = board.all(comm)
        comm.reconfigure(62, handles)  # the same again
        assert total(comm) == 10
        comm.finalize()

    reconfigurable(4, body)


def test_who_comes_late_and_who_was_last() -> None:
    """One that was in none before joins; then ranks at the end are left out, while one of them ends."""

    def body(comm: TorchComm, board: Board) -> None:
        rank = board.rank
        handles = board.all(comm)
        if rank != 3:
            comm.reconfigure(1, handles[:3])
            assert total(comm) == 6
        handles = board.all(comm)
        comm.reconfigure(2, handles)
        assert total(comm) == 10
        handles = board.all(comm)
        if rank > 1:
            comm.finalize()
            return
        comm.reconfigure(3, handles[:2])
        assert total(comm) == 3
        comm.reconfigure(4, board_of_two(comm))
        assert total(comm) == 3
        comm.finalize()

    def board_of_two(comm: TorchComm) -> list[str]:
        heard: list[Any] = [None, None]
        objcol.all_gather_object(comm, heard, comm.get_init_handle())
        return heard

    reconfigurable(4, body)


def test_a_uuid_that_one_alone_has_used_before_the_last_is_refused_everywhere() -> None:
    """The handles tell only of the last one."""

    def body(comm: TorchComm, board: Board) -> None:
        handles = board.all(comm)
        if board.rank == 1:
            comm.reconfigure(7, [handles[1]])
        handles = board.all(comm)
        comm.reconfigure(8, handles)
        handles = board.all(comm)
        with pytest.raises(RuntimeError, match="uuid 7 was already used by the member at position 1"):
            comm.reconfigure(7, handles)
        assert total(comm) == 6 and comm.get_init_handle() == handles[board.rank]
        comm.reconfigure(9, handles)
        assert total(comm) == 6
        comm.finalize()

    reconfigurable(3, body)


def test_reconfigure_refusals_change_nothing() -> None:
    def body(comm: TorchComm, board: Board) -> None:
        rank = board.rank
        handles = board.all(comm)
        comm.reconfigure(7, handles)
        assert total(comm) == 6
        handles = board.all(comm)
        for text, wrong in (
            ("not part of", [handles[(rank + 1) % 3]]), ("must be unique", [*handles, handles[0]]), ("Invalid handle", [*handles, "x"]),
        ):
            with pytest.raises(RuntimeError, match=text):
                comm.reconfigure(8, wrong)
        with pytest.raises(RuntimeError, match="already used"):
            comm.reconfigure(7, handles)
        assert total(comm) == 6 and board.all(comm) == handles
        if rank == 0:  # the others do not call
            began = time.monotonic()
            with pytest.raises(RuntimeError, match="timed out"):
                comm.reconfigure(9, handles, timeout=1)
            assert time.monotonic() - began < 20
        board.meet()
        assert total(comm) == 6 and not comm.is_aborted()
        comm.reconfigure(10, handles)
        assert total(comm) == 6
        comm.finalize()

    reconfigurable(3, body)


def test_reconfigure_after_abort_timeout_and_death() -> None:
    def body(comm: TorchComm, board: Board) -> None:
        rank = board.rank
        comm.reconfigure(1, board.all(comm))
        if rank == 0:
            comm.abort()
        with pytest.raises(RuntimeError):
            comm.all_reduce(torch.ones(1), ReduceOp.SUM)
        comm.reconfigure(2, board.all(comm))
        assert not comm.is_aborted() and comm.get_abort_info() is None and total(comm) == 6
        board.meet()
        if rank == 1:  # in a communicator that can be made anew, a timeout is for good
            with pytest.raises(RuntimeError, match="operation timed out"):
                comm.recv(torch.zeros(1), 0, timeout=0.2)
            info = comm.get_abort_info()
            assert info is not None and info.reason == "timed_out"
        with pytest.raises(RuntimeError):
            comm.all_reduce(torch.ones(1), ReduceOp.SUM)
        assert comm.is_aborted()
        handles = board.all(comm)
        if rank != 2:
            comm.reconfigure(3, handles[:2])
            assert total(comm) == 3
            comm.finalize()

    reconfigurable(3, body)


def test_masters_of_handles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without PCCL_MASTER processes of a job on one host come to one master of their own."""
    monkeypatch.delenv("PCCL_MASTER")

    def body(comm: TorchComm, board: Board) -> str:
        handles = board.all(comm)
        comm.reconfigure(1, handles)
        assert total(comm) == 3
        comm.finalize()
        return handles[0].split(";")[1] + "," + handles[1].split(";")[1]

    said = set(reconfigurable(2, body))
    assert len(said) == 1 and len(set(said.pop().split(","))) == 1


def test_handles_of_ordinary_communicators() -> None:
    def body() -> bool:
        comm = comm_of()
        handle = comm.get_init_handle()
        assert handle == comm.get_init_handle()
        mine = torch.frombuffer(bytearray(handle.encode()), dtype=torch.uint8)
        both = [torch.zeros_like(mine) for _ in range(2)]
        comm.all_gather(both, mine)
        handles = [bytes(one.tolist()).decode() for one in both]
        comm.reconfigure(5, list(reversed(handles)))
        assert comm.get_rank() == 1 - int(os.environ["RANK"]) and total(comm) == 3
        comm.finalize()
        return handles[0] != handles[1]

    assert run(2, body) == [True, True]


