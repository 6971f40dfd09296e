"""Back-ends by name: torch's groups behind adapters, classes of programs, libraries; what is said where one is missing."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import textwrap
from typing import Any, Callable

import pytest
import torch
import torch.distributed as dist

import pccl.comms as comms
from pccl.comms import CommOptions, ReduceOp, TorchComm, TorchCommBackend, TorchWork, WorkStatus, new_comm, objcol
from pccl.comms.backends.c10d import GlooBackend, NcclBackend
from support.communicators import every_operation
from support.ranks import paths_with, run


def with_backend(name: str, count: int, function: Callable[[TorchComm], Any], **keywords: Any) -> list[Any]:
    def rank() -> Any:
        comm = new_comm(name, torch.device("cpu"), "test", timeout=30, **keywords)
        result = function(comm)
        comm.finalize()
        return result

    return run(count, rank)


@pytest.mark.parametrize("size", (1, 3))
def test_gloo(size: int) -> None:
    def body(comm: TorchComm) -> None:
        rank = comm.get_rank()
        assert comm.get_backend() == "gloo" and comm.get_backend_version() == f"torch {torch.__version__}"
        every_operation(comm)
        child = comm.split(list({size - 1: 0, 0: 0}) if rank in (0, size - 1) else [], "child")
        assert (child is None) == (rank not in (0, size - 1))
        if child is not None:
            tensor = torch.ones(1)
            child.all_reduce(tensor, ReduceOp.SUM)
            assert tensor.item() == child.get_size() and child.get_backend() == "gloo" and child.get_ranks()[0] == size - 1
            child.finalize()
        with pytest.raises(RuntimeError, match="Duplicate ranks"):
            comm.split([0, 0], "wrong")
        got: list[Any] = [None] * size
        objcol.all_gather_object(comm, got, {"rank": rank})
        assert got == [{"rank": r} for r in range(size)]
        missing: list[tuple[str, Callable[[], Any]]] = [
            ("new_window not implemented for communicator:test", comm.new_window),
            ("reconfigure not implemented", lambda: comm.reconfigure(1, ["x"])),
            ("abort not implemented", comm.abort), ("all_gather_p_init not implemented", lambda: comm.all_gather_p_init(torch.zeros(3))),
        ]
        for text, call in missing:
            with pytest.raises(RuntimeError, match=text):
                call()

    with_backend("gloo", size, body)


def test_averages_of_integers_by_gloo_are_cut_towards_zero() -> None:
    """All other back-ends do the same.  Floor division would round the negative ones down."""
    def body(comm: TorchComm) -> None:
        for dtype in (torch.int8, torch.int64):
            tensor = torch.tensor([-1, 1, -5, 5] if comm.get_rank() == 0 else [0] * 4, dtype=dtype)
            comm.all_reduce(tensor, ReduceOp.AVG)
            assert tensor.tolist() == [0, 0, -1, 1]

    with_backend("gloo", 3, body)


def test_many_of_gloo_over_one_store(tmp_path: pathlib.Path) -> None:
    def rank() -> None:
        stores = (dist.FileStore(str(tmp_path / "c10d"), 2), str(tmp_path / "own"), None)
        for store in (*stores, *stores):
            comm = new_comm("gloo", "cpu", "same", store=store, timeout=30)
            tensor = torch.ones(2)
            comm.all_reduce(tensor, ReduceOp.SUM)
            assert tensor.tolist() == [2.0, 2.0]
            comm.finalize()

    run(2, rank)


def test_a_timeout_of_gloo_is_told_as_one(tmp_path: pathlib.Path) -> None:
    def rank() -> None:
        comm = new_comm("gloo", "cpu", "test", timeout=3)
        if comm.get_rank() == 0:
            with pytest.raises(RuntimeError, match="operation timed out") as caught:
                comm.all_reduce(torch.ones(1), ReduceOp.SUM, timeout=1)
            assert getattr(caught.value, "reason") == "timed_out"
            (tmp_path / "over").touch()
        while not (tmp_path / "over").exists():
            pass

    run(2, rank)


@pytest.mark.parametrize("name, text", (("mpi", "without MPI"), ("nccl", "without CUDA and NCCL"), ("rccl", "without ROCm and RCCL")))
def test_what_this_torch_lacks_is_said(name: str, text: str) -> None:
    device = "cpu" if name == "mpi" else "cuda"
    available = {"mpi": dist.is_mpi_available(), "nccl": dist.is_nccl_available(), "rccl": torch.version.hip is not None}
    if available[name]:
        pytest.skip(f"this torch has {name}")

    def rank() -> None:
        with pytest.raises(RuntimeError, match=text):
            new_comm(name, device, "test", timeout=5)
        if device == "cuda":
            with pytest.raises(RuntimeError, match="is for cuda"):
                new_comm(name, "cpu", "test")

    run(1, rank)


class _Group:
    """A process group of one rank, on devices; it has all that it was called with."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def __getattr__(self, name: str) -> Any:
        def call(*arguments: Any) -> "_Group":
            self.seen += [one for one in _flat(arguments) if isinstance(one, torch.Tensor)]
            return self

        return call

    def is_completed(self) -> bool:
        return True

    def wait(self) -> None:
        pass


def _flat(value: Any) -> list[Any]:
    return [each for one in value for each in _flat(one)] if isinstance(value, (list, tuple)) else [value]


def test_tensors_of_a_device_come_to_the_adapter_that_is_for_it() -> None:
    """Host memory is the need of the other back-ends, which say so themselves.  The device "meta" stands for CUDA: it has no memory."""
    group = _Group()

    class OnMeta(NcclBackend):
        kind = device = "meta"

        def _make(self, *_: Any) -> Any:
            return group

        batch_op_issue = GlooBackend.batch_op_issue  # nccl's needs a CUDA device

    def rank() -> None:
        comms.register_backend("meta", OnMeta)
        comm = new_comm("meta", "meta", "test", timeout=5)
        tensor, half = torch.ones(4, device="meta"), torch.ones(2, device="meta")
        comm.broadcast(tensor, 0)
        assert group.seen[-1] is tensor
        comm.all_gather([half], half, async_op=True).wait()
        assert group.seen[-2] is half
        comm.all_reduce(tensor, ReduceOp.SUM)
        comm.all_to_all_single(tensor, torch.ones(4, device="meta"))
        batch = comm.batch_op_create()
        batch.send(half, 0)
        batch.recv(torch.ones(2, device="meta"), 0)
        batch.issue()
        assert len(group.seen) == 6 and all(one.device.type == "meta" for one in group.seen)
        for wrong in (lambda: comm.broadcast(torch.ones(4), 0), lambda: comm.all_gather([torch.ones(2)], half)):
            with pytest.raises(RuntimeError, match=r"is on device cpu; pass tensor.to\('meta'\)"):
                wrong()
        with pytest.raises(RuntimeError, match="must have same size"):
            comm.all_gather([tensor], half)
        comm.finalize()
        for name in ("pccl", "gloo", "fake"):
            host = new_comm(name, "cpu", "host", timeout=5)
            batch = host.batch_op_create()
            batch.send(half, 0)
            batch.recv(half, 0)
            for refused in (lambda: host.broadcast(tensor, 0), lambda: host.all_gather([torch.ones(2)], half), batch.issue):
                with pytest.raises(RuntimeError, match="Invalid tensor: .* is on device meta; pass tensor.cpu"):
                    refused()
            host.broadcast(torch.ones(4), 0)
            host.finalize()

    run(1, rank)


def test_delegation(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ModuleNotFoundError, match="failed to find backend 'ncclx': it is of the package torchcomms, which is not"):
        new_comm("ncclx", "cuda", "x")
    (tmp_path / "torchcomms").mkdir()
    (tmp_path / "torchcomms" / "__init__.py").write_text("def new_comm(*arguments, **keywords):\n    return arguments, sorted(keywords)\n")
    program = """
    import pccl.comms
    print(pccl.comms.new_comm("rcclx", "cuda:0", "theirs", timeout=3))
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYTHONPATH": paths_with(tmp_path)},
    )
    assert done.stdout.startswith("(('rcclx', 'cuda:0', 'theirs'), ['abort_process_on_timeout_or_error', 'enable_reconfigure'"), done.stderr


# -- Classes of programs --


class Alone(TorchCommBackend):
    """One rank; its operations take what they take."""

    made: list["Alone"] = []

    def init(self, device: Any, name: str, options: CommOptions) -> None:
        self.said: list[Any] = [device, name, options.timeout.total_seconds() if options.timeout else None]
        self.made.append(self)

    def finalize(self) -> None:
        self.said.append("finalized")

    def get_rank(self) -> int:
        return 0

    def get_size(self) -> int:
        return 1

    def get_comm_name(self) -> str:
        return "alone"

    def all_reduce(self, tensor: Any, op: Any, async_op: bool, timeout: Any = None, hints: Any = None) -> None:
        tensor += 1
        self.said.append((timeout, hints))

    def broadcast(self, tensor: Any, root: int, async_op: bool) -> Any:
        class Work(TorchWork):
            def wait(self, timeout: Any = None) -> None:
                tensor.fill_(9)

        return Work()

    def gather(self, output_tensor_list: Any, input_tensor: Any, root: int, async_op: bool) -> None:
        output_tensor_list[0].copy_(input_tensor)

    def send(self, tensor: Any, dst: int, async_op: bool) -> None:
        self.sent = tensor.clone()

    def recv(self, tensor: Any, src: int, async_op: bool) -> None:
        tensor.copy_(self.sent)

    def set_timeout(self, timeout: Any) -> None:
        self.said.append(timeout.total_seconds())


def test_a_class_of_a_program_may_send_to_itself() -> None:
    comms.register_backend("alone", Alone)
    comm = new_comm("alone", "cpu", "itself")
    got = torch.zeros(2)
    comm.send(torch.tensor([4.0, 5.0]), 0)
    comm.recv(got, 0, True).wait()
    assert got.tolist() == [4, 5]
    comm.finalize()
    Alone.made.clear()
    ours = new_comm("fake", "cpu", "itself")
    for call in (ours.send, ours.recv):
        with pytest.raises(RuntimeError, match="self: .* is this rank, 0; use a batch"):
            call(got, 0)
    ours.finalize()


def test_hints_of_a_call_win_over_those_of_its_communicator() -> None:
    comms.register_backend("alone", Alone)
    comm = new_comm("alone", "cpu", "hinted", hints={"a": "of all", "b": "of all"})
    comm.all_reduce(torch.zeros(2), ReduceOp.SUM, hints={"a": "of one"})
    assert Alone.made[0].said[-1][1] == {"a": "of one", "b": "of all"}
    comm.finalize()
    Alone.made.clear()


def test_a_class_of_a_program() -> None:
    comms.register_backend("alone", Alone)
    assert comms._is_backend_registered("alone") and not comms.is_backend_built("alone")
    comm = new_comm("alone", "anything", "name", timeout=7)
    assert comm.get_backend_impl() is Alone.made[0]
    tensor = torch.zeros(2)
    work = comm.all_reduce(tensor, ReduceOp.SUM, True, hints={"a": "b"}, timeout=3)
    assert work.is_completed() and tensor.tolist() == [1.0, 1.0]
    work = comm.broadcast(tensor, 0, True)
    assert not work.is_completed() and work.status() is WorkStatus.INPROGRESS
    work.wait()
    assert work.is_completed() and tensor.tolist() == [9.0, 9.0]
    work._set_status(WorkStatus.ERROR)
    output = torch.zeros(2)
    comm.gather_single(output, tensor, 0)
    assert output.tolist() == [9.0, 9.0]
    comm.set_timeout(11)
    with pytest.raises(RuntimeError, match='pure virtual function "TorchCommBackend::barrier"'):
        comm.barrier()
    with pytest.raises(RuntimeError, match=r"\[TorchCommBackend\]: new_window not implemented for communicator:alone"):
        comm.new_window()
    comm.finalize()
    assert Alone.made[0].said == ["anything", "name", 7.0, (3.0, {"a": "b"}), 11.0, "finalized"]
    with pytest.raises(TypeError, match="pass a TorchCommBackend subclass"):
        comms.register_backend("wrong", 3)  # type: ignore[arg-type]


def test_fake() -> None:
    comm = new_comm("fake", None, "f", enable_reconfigure=True)
    tensor = torch.full((2,), 3.0)
    assert comm.all_reduce(tensor, ReduceOp.SUM, True).is_completed() and tensor.tolist() == [3.0, 3.0]
    window = comm.new_window(tensor)
    window.put(torch.zeros(1), 0, 1).wait()
    window.signal(0), window.wait_signal(0)
    assert window.map_remote_tensor(0) is tensor and tensor.tolist() == [3.0, 3.0]
    window.tensor_deregister()
    handle = comm.get_init_handle()
    comm.reconfigure(1, [handle])
    assert comm.get_init_handle() != handle and (comm.get_rank(), comm.get_size()) == (0, 1)
    assert comm.split([], "none") is None
    comm.finalize()
