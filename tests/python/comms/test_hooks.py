"""Hooks and recorders: fields and ids, the flight recorder's files read by PyTorch's analyser, the log of calls, NaNs."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import json
import os
import pathlib
import pickle
import subprocess
import sys
import textwrap
from typing import Any, Callable

import numpy
import pytest
import torch

import pccl.comms as comms
from pccl.comms import OpName, ReduceOp, TorchComm, new_comm
from pccl.comms.hooks import FlightRecorderHook, NanCheckHook, clog
from support.ranks import run


def fake(name: str = "fake") -> TorchComm:
    return new_comm("fake", "cpu", name)


def with_comm(count: int, function: Callable[[TorchComm], Any]) -> list[Any]:
    def rank() -> Any:
        return function(new_comm("pccl", "cpu", "test", timeout=30))

    return run(count, rank)


def test_arguments_of_hooks() -> None:
    comm = fake()
    before: list[tuple[Any, int, Any]] = []
    after: list[tuple[int, Any]] = []
    one: list[Any] = []
    children: list[Any] = []
    handle = comm.register_pre_hook(lambda name, op_id, args: before.append((name, op_id, args)))
    comm.register_post_hook(lambda op_id, args: after.append((op_id, args)))
    comm.register_pre_hook(one.append)
    tensor, pair = torch.zeros(2), [torch.zeros(2)]
    calls: list[tuple[Any, str, Any]] = [
        (lambda: comm.broadcast(tensor, 0, False), "BroadcastPreHookArgs", ("tensor", "root", "async_op")),
        (lambda: comm.all_reduce(tensor, ReduceOp.SUM, True), "AllReducePreHookArgs", ("tensor", "async_op")),
        (lambda: comm.reduce(tensor, 0, ReduceOp.SUM, True), "ReducePreHookArgs", ("tensor", "root", "async_op")),
        (lambda: comm.all_gather(pair, tensor, False), "AllGatherPreHookArgs", ("input", "output", "async_op")),
        (lambda: comm.all_gather_v(pair, tensor, False), "AllGatherVPreHookArgs", ("input", "output", "async_op")),
        (lambda: comm.all_gather_single(tensor, tensor, False), "AllGatherSinglePreHookArgs", ("input", "output", "async_op")),
        (lambda: comm.reduce_scatter(tensor, pair, ReduceOp.SUM, False), "ReduceScatterPreHookArgs", ("input", "output", "async_op")),
        (lambda: comm.reduce_scatter_v(tensor, pair, ReduceOp.SUM, False), "ReduceScatterVPreHookArgs", ("input", "output", "async_op")),
        (lambda: comm.reduce_scatter_single(tensor, tensor, ReduceOp.SUM, False), "ReduceScatterSinglePreHookArgs", ("input", "output")),
        (lambda: comm.all_to_all(pair, pair, False), "AllToAllPreHookArgs", ("input", "output", "async_op")),
        (lambda: comm.all_to_all_single(tensor, tensor, False), "AllToAllSinglePreHookArgs", ("input", "output", "async_op")),
        (lambda: comm.all_to_all_v_single(tensor, tensor, [2], [2], False), "AllToAllVSinglePreHookArgs",
         ("input", "output", "input_split_sizes", "output_split_sizes", "async_op")),
        (lambda: comm.scatter(tensor, pair, 0, False), "ScatterPreHookArgs", ("input", "output", "root", "async_op")),
        (lambda: comm.gather(pair, tensor, 0, False), "GatherPreHookArgs", ("input", "output", "root", "async_op")),
        (lambda: comm.gather_single(tensor, tensor, 0, False), "GatherSinglePreHookArgs", ("input", "output", "root", "async_op")),
        (lambda: comm.barrier(False), "BarrierPreHookArgs", ("async_op",)),
        (lambda: comm.batch_send([tensor], 0), "BatchOpIssuePreHookArgs", ("num_ops", "async_op")),
        (lambda: children.append(comm.split([0], "child")), "SplitPreHookArgs", ("ranks", "name")),
        (lambda: comm.new_window(), "NewWindowPreHookArgs", ()),
        (lambda: comm.finalize(), "FinalizePreHookArgs", ()),
    ]
    for call, kind, fields in calls:
        before.clear(), after.clear(), one.clear()
        call()
        (name, op_id, args), = before
        assert type(args).__name__ == kind and type(args) is getattr(comms, kind)
        assert all(hasattr(args, field) for field in fields) and one == [args] and args.op_id == op_id and args.op_name is name
        assert after[0][0] == op_id and len(after) == 1
        posts = {"split": "Split", "new_window": "NewWindow", "batch_op_issue": "BatchOpIssue", "finalize": "Finalize"}
        assert type(after[0][1]).__name__ == posts.get(name.name, "Collective") + "PostHookArgs"
        if name is OpName.finalize:
            assert op_id == 2**64 - 1
        if name is OpName.split:
            assert args.name == "child" and args.ranks == [0]
    handle.remove()
    handle.remove()
    children[0].finalize()


def test_ids_rise_through_all_communicators_and_hooks_prevent() -> None:
    first, second = fake("a"), fake("b")
    ids: list[int] = []
    for comm in (first, second):
        comm.register_pre_hook(lambda name, op_id, args: ids.append(op_id))
    for comm in (first, second, first):
        comm.barrier()
    assert ids == list(range(ids[0], ids[0] + 3))

    def refuse(name: Any, op_id: int, args: Any) -> None:
        raise RuntimeError("not now")

    after: list[int] = []
    first.register_post_hook(lambda op_id, args: after.append(op_id))
    handle = first.register_pre_hook(refuse)
    with pytest.raises(RuntimeError, match="not now"):
        first.barrier()
    handle.remove()
    first.barrier()
    assert len(after) == 1
    assert first.split([], "outsider") is None and len(after) == 1
    first.finalize(), second.finalize()


def test_a_post_hook_that_raises_leaves_the_caller_its_work(caplog: pytest.LogCaptureFixture) -> None:
    """The operation has begun: the ranks would count differently if one of them never waited for it."""

    def body(comm: TorchComm) -> list[Any]:
        def wrong(op_id: int, args: Any) -> None:
            raise RuntimeError("in a hook")

        comm.register_post_hook(wrong)
        later: list[int] = []
        comm.register_post_hook(lambda op_id, args: later.append(op_id))
        tensor = torch.ones(2)
        comm.all_reduce(tensor, ReduceOp.SUM, True).wait()
        comm.all_reduce(tensor, ReduceOp.SUM, False)
        child = comm.split([0, 1], "child")
        assert child is not None and child.get_size() == 2 and len(later) == 3
        child.barrier()
        child.finalize()
        comm.finalize()
        return tensor.tolist()

    assert with_comm(2, body) == [[4.0, 4.0]] * 2
    comm = fake()
    comm.register_post_hook(lambda op_id, args: 1 / 0)
    assert comm.barrier(True).is_completed() and "a post hook of barrier failed" in caplog.text
    comm.finalize()


def test_flight_recorder_json() -> None:
    comm = fake("recorded")
    recorder = FlightRecorderHook(max_entries=3, isolated=True)
    assert not recorder.is_enabled()  # it is registered with nothing
    recorder.register_with_comm(comm)
    assert recorder.is_enabled() and len(recorder) == 0 and "entries" not in json.loads(recorder.dump_json())
    comm.all_reduce(torch.zeros(2, 3), ReduceOp.SUM, False)
    comm.all_gather([torch.zeros(2, dtype=torch.int64)], torch.zeros(2, dtype=torch.int64), False)
    child = comm.split([0], "recorded_child")
    assert child is not None
    dump = json.loads(recorder.dump_json())
    assert dump["version"] == "2.10" and isinstance(dump["comm_lib_version"], str)
    assert dump["pg_config"]["recorded"] == {"name": "recorded", "desc": "fake", "ranks": "[0]"} and "recorded_child" in dump["pg_config"]
    first = dump["entries"][0]
    for name in (
        "record_id", "pg_id", "collective_seq_id", "p2p_seq_id", "op_id", "time_created_ns", "timeout_ms", "time_discovered_started_ns",
        "time_discovered_completed_ns",
    ):
        assert type(first[name]) is int, name
    assert first["process_group"] == ["recorded", "fake"] and first["profiling_name"] == "fake:all_reduce" and first["op_id"] == 0
    assert first["input_sizes"] == [[2, 3]] == first["output_sizes"] and first["input_dtypes"] == ["Float"]
    assert first["state"] == "completed" and first["retired"] is True and first["is_p2p"] is False and first["duration_ms"] >= 0
    assert isinstance(first["thread_id"], str) and first["thread_name"] == "MainThread"
    assert dump["entries"][1]["input_dtypes"] == ["Long"]
    child.barrier()
    assert recorder.size() == 3  # the oldest has gone
    assert "entries" not in json.loads(recorder.dump_json(include_completed=False))
    recorder.reset()
    assert recorder.size() == 0
    recorder.unregister()
    comm.barrier()
    assert recorder.size() == 0
    assert not recorder.is_enabled()
    shared = FlightRecorderHook(max_entries=0)  # the process's own ring, which has room
    shared.register_with_comm(comm)
    assert shared.is_enabled()
    shared.unregister()
    child.finalize(), comm.finalize()


def test_states_are_real_and_the_analyser_reads_the_files(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHCOMM_FR_DUMP_TEMP_FILE", str(tmp_path / "trace_"))

    def body(comm: TorchComm) -> list[str]:
        rank = comm.get_rank()
        recorder = FlightRecorderHook(isolated=True)
        recorder.register_with_comm(comm)
        comm.all_reduce(torch.ones(4), ReduceOp.SUM)
        if rank == 0:
            comm.send(torch.ones(2), 1)
        else:
            comm.recv(torch.ones(2), 0)
        late: Any = None
        if rank == 0:
            late = comm.recv(torch.zeros(1), 1, True)
            states = [entry["state"] for entry in json.loads(recorder.dump_json())["entries"]]
            assert states == ["completed", "completed", "started"]
            assert len(json.loads(recorder.dump_json(include_completed=False))["entries"]) == 1
        recorder.dump_file(rank)
        comm.barrier()
        if rank == 0:
            late.wait()
        else:
            comm.send(torch.zeros(1), 0)
        states = [entry["state"] for entry in json.loads(recorder.dump_json())["entries"]]
        comm.finalize()
        return states

    assert run(2, lambda: body(new_comm("pccl", "cpu", "test", timeout=30))) == [["completed"] * 4] * 2
    with open(tmp_path / "trace_0", "rb") as file:
        assert pickle.load(file)["entries"][1]["profiling_name"] == "gloo:send 0->1"
    from torch.distributed.flight_recorder import fr_trace

    fr_trace.main([str(tmp_path), "--prefix", "trace_", "-o", str(tmp_path / "database")])
    with open(tmp_path / "database", "rb") as file:
        _, database = pickle.load(file)
    assert [group.size for group in database.groups] == [2]
    assert any(collective.collective_name == "gloo:all_reduce" and collective.pass_check for collective in database.collectives)


def test_dumps_read_their_path_once_or_each_time(tmp_path: pathlib.Path) -> None:
    def rank() -> list[str]:
        recorder = FlightRecorderHook(isolated=True)
        found: list[str] = []
        for name, dynamic in (("a_", "0"), ("b_", "0"), ("c_", "true"), ("d_", "1"), ("e_", "")):
            os.environ["TORCHCOMM_FR_DUMP_TEMP_FILE"] = str(tmp_path / name)
            os.environ["TORCHCOMM_FR_DUMP_DYNAMIC_FILE_NAME"] = dynamic
            found.append(os.path.basename(recorder.dump_file(3)))
        os.environ["TORCHCOMM_FR_DUMP_DYNAMIC_FILE_NAME"] = "perhaps"
        with pytest.raises(RuntimeError, match="Invalid value for environment variable TORCHCOMM_FR_DUMP_DYNAMIC_FILE_NAME: perhaps"):
            recorder.dump_file(3)
        return found

    assert run(1, rank) == [["a_3", "a_3", "c_3", "d_3", "a_3"]]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a_3", "c_3", "d_3"]


def _run_alone(program: str, tmp_path: pathlib.Path) -> None:
    """Runs a program of one rank in a process of its own, which dumps into the folder."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=100,
        env={**os.environ, "RANK": "0", "WORLD_SIZE": "1", "TORCHCOMM_FR_DUMP_TEMP_FILE": str(tmp_path / "trace_")},
    )
    assert done.returncode == 0, done.stderr


def test_an_isolated_recorder_answers_in_the_control_plane_of_torch(tmp_path: pathlib.Path) -> None:
    program = """
    import json, pickle, urllib.request
    import torch
    import torch.distributed as dist
    from torch._C._distributed_c10d import _WorkerServer
    from pccl.comms import ReduceOp, new_comm
    from pccl.comms.hooks import FlightRecorderHook

    comm = new_comm("fake", "cpu", "watched")
    recorder = FlightRecorderHook(isolated=True)
    recorder.register_with_comm(comm)
    server = _WorkerServer("127.0.0.1", 0)
    def ask(name):
        where = f"http://127.0.0.1:{server.port}/handler/{name}"
        with urllib.request.urlopen(urllib.request.Request(where, method="POST"), timeout=20) as answer:
            return json.loads(answer.read())
    comm.barrier()
    assert len(recorder) == 1
    assert ask("torchcomms_health_check") == {"healthy": True}
    trace = ask("torchcomms_fr_trace_json")
    assert trace["entries"] == [] and trace["pg_config"] == {}  # the recorder keeps its own
    assert pickle.load(open(ask("torchcomms_fr_dump_file")["file"], "rb"))["entries"] == []
    server.shutdown()
    comm.finalize()
    """
    _run_alone(program, tmp_path)


def test_answers_in_the_control_plane_of_torch(tmp_path: pathlib.Path) -> None:
    """Asked of torch's own worker server, in a process that ends after it: its end must not crash."""
    program = """
    import json, pickle, urllib.request
    import torch.distributed as dist
    from torch._C._distributed_c10d import _WorkerServer
    from pccl.comms import ReduceOp, new_comm
    from pccl.comms.hooks import FlightRecorderHook

    comm = new_comm("pccl", "cpu", "watched")
    FlightRecorderHook(max_entries=0).register_with_comm(comm)
    server = _WorkerServer("127.0.0.1", 0)
    def ask(name, parameters=""):
        where = f"http://127.0.0.1:{server.port}/handler/{name}?{parameters}"
        with urllib.request.urlopen(urllib.request.Request(where, method="POST"), timeout=20) as answer:
            return json.loads(answer.read())
    assert ask("torchcomms_health_check") == {"healthy": True}
    comm.all_reduce(__import__("torch").ones(3), ReduceOp.SUM)
    trace = ask("torchcomms_fr_trace_json")
    assert [e["profiling_name"] for e in trace["entries"]] == ["gloo:all_reduce"] and trace["pg_config"]["watched"]["ranks"] == "[0]"
    assert ask("torchcomms_fr_trace_json", "onlyactive=true")["entries"] == []
    assert "entries" not in ask("torchcomms_fr_trace_json", "includecollectives=0")
    try:
        ask("torchcomms_fr_trace_json", "onlyactive=perhaps")
    except urllib.error.HTTPError as error:
        assert error.code == 500 and "Invalid value for parameter onlyactive" in json.loads(error.read())["error"]
    with open(ask("torchcomms_fr_dump_file")["file"], "rb") as file:
        assert len(pickle.load(file)["entries"]) == 1
    comm.abort()
    assert ask("torchcomms_health_check") == {"healthy": False}
    server.shutdown()
    comm.finalize()
    """
    _run_alone(program, tmp_path)
    assert (tmp_path / "trace_0").exists()


def test_an_abort_after_unregister_leaves_the_process_healthy(tmp_path: pathlib.Path) -> None:
    """It runs in a process of its own, because an unhealthy process stays unhealthy."""
    program = """
    from pccl.comms import new_comm
    from pccl.comms.hooks import FlightRecorderHook, fr

    for recorded in (False, True):
        comm = new_comm("fake", "cpu", f"recorded {recorded}")
        recorder = FlightRecorderHook(isolated=True)
        recorder.register_with_comm(comm)
        if not recorded:
            recorder.unregister()
        comm.abort()
        assert fr.is_healthy() is not recorded
        comm.finalize()
    """
    _run_alone(program, tmp_path)


def test_log_of_calls(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "log"
    log = clog(str(path), "ALL", verbose=["buffers"])
    comm = fake("logged")
    log.register_with_comm(comm)
    with pytest.raises(RuntimeError, match="already registered"):
        log.register_with_comm(comm)
    for _ in range(2):
        comm.all_reduce(torch.zeros(4), ReduceOp.PRODUCT, True).wait()
    comm.all_gather([numpy.zeros(3)], numpy.zeros(3), False)
    comm.all_to_all_v_single(torch.zeros(2, 2), torch.zeros(2, 2), [1], [2])
    child = comm.split([0], "logged_child")
    assert child is not None
    child.broadcast(torch.zeros(1, dtype=torch.bool), 0)
    child.finalize(), comm.finalize()
    log.close()
    lines = path.read_text().splitlines()
    assert lines[0].startswith("V|1|base_timestamp=") and lines[1] == "new_comm|comm=logged|rank=0|world_size=1"
    assert "split|parent=logged|child=logged_child|ranks=0" in lines
    signatures = [line for line in lines if "|sig|" in line]
    assert len(signatures) == 5 and signatures[0].startswith("C0|sig|all_reduce|in_count=4|out_count=4|dtype=f32|red_op=prod|in_ptrs=0x")
    assert signatures[0].endswith("|async_op=t|comm=logged")
    assert "in_counts" not in signatures[0] and any("|all_gather|in_count=3|out_counts=3|dtype=f64|" in line for line in signatures)
    assert any("in_splits=2|out_splits=1" in line for line in signatures) and any("dtype=bool|root=0" in line for line in signatures)
    for letter, count in (("Q", 5), ("S", 5), ("E", 5), ("W", 2)):
        assert sum(f"|{letter}|" in line for line in lines) == count, letter
    short = clog(str(tmp_path / "short"), [])
    comm = fake("short")
    short.register_with_comm(comm)
    comm.barrier()
    short.close()
    text = (tmp_path / "short").read_text()
    assert "|Q|work_id=0|+" in text and "|E|" not in text
    comm.finalize()


def test_leaked_work_is_told_of(tmp_path: pathlib.Path) -> None:
    def body(comm: TorchComm) -> None:
        log = clog(str(tmp_path / str(comm.get_rank())), "LIFECYCLE")
        log.register_with_comm(comm)
        if comm.get_rank() == 0:
            comm.recv(torch.zeros(1), 1, True)
            comm.barrier()
        else:
            comm.barrier()
            comm.send(torch.zeros(1), 0)
        comm.finalize()

    with_comm(2, body)
    assert "WARN|leaked_work" not in (tmp_path / "1").read_text()


def test_nan_check() -> None:
    def body(comm: TorchComm) -> None:
        rank = comm.get_rank()
        hook, idle = NanCheckHook(), NanCheckHook(False, False)
        assert not hook.is_enabled()
        idle.register_with_comm(comm)
        hook.register_with_comm(comm)
        assert hook.is_enabled() and not idle.is_enabled()
        bad, good = torch.tensor([1.0, float("nan")]), torch.zeros(2)
        with pytest.raises(RuntimeError, match="NaN detected in input tensor for 'all_reduce' on comm 'test'"):
            comm.all_reduce(bad, ReduceOp.SUM)
        with pytest.raises(RuntimeError, match="for 'all_gather'"):
            comm.all_gather([good, good.clone()], numpy.array([numpy.nan, 1], numpy.float32))
        comm.all_reduce(torch.zeros(2, dtype=torch.int32), ReduceOp.SUM)
        comm.broadcast(bad.clone() if rank else good.clone(), 0)  # what is only written is not looked at
        hook.unregister()
        outputs = NanCheckHook(check_inputs=False, check_outputs=True)
        outputs.register_with_comm(comm)
        work = comm.all_reduce(bad.clone() if rank else good.clone(), ReduceOp.SUM, True)
        for _ in range(2):
            with pytest.raises(RuntimeError, match="NaN detected in output tensor for 'all_reduce'"):
                work.wait()
        comm.all_reduce(good, ReduceOp.SUM)
        comm.finalize()

    with_comm(2, body)


def test_hook_exceptions_of_aborts_are_only_logged() -> None:
    comm = fake()
    called: list[int] = []

    def wrong() -> None:
        called.append(1)
        raise RuntimeError("in a hook")

    comm.register_abort_hook(wrong)
    comm.register_abort_hook(lambda: called.append(2))
    comm.abort()
    assert called == [1, 2] and comm.is_aborted()
    comm.finalize()
