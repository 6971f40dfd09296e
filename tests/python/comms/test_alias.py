"""The name `torchcomms`: the examples of the guide run as printed, on CPU; modules, masks, refusals."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import contextlib
import io
import os
import pathlib
import re
import subprocess
import sys
import textwrap
from typing import Any, Callable

import pytest
import torch

from pccl.comms.alias import install_as_torchcomms
from support.ranks import paths_with, run

EXAMPLES = pathlib.Path(__file__).parent / "guide_examples.md"


def example(number: int) -> str:
    """The program of the guide's example, for CPU: devices, and what only CUDA has, replaced."""
    text = EXAMPLES.read_text()
    section = text[text.index(f"### Example {number}:"):]
    found = re.search(r"```python\n(.*?)```", section, re.DOTALL)
    assert found is not None
    program = found.group(1)
    program = re.sub(r'torch\.device\((f?)"cuda[^"]*"\)', 'torch.device("cpu")', program)
    program = program.replace("torch.cuda.device_count()", "1")
    return program.replace("    torch.cuda.current_stream().synchronize()\n", "")


def outputs(number: int, size: int, backend: str) -> list[str]:
    def rank() -> str:
        install_as_torchcomms({"ncclx": backend} if backend == "pccl" else None)
        program = example(number) if backend == "pccl" else example(number).replace('"ncclx"', f'"{backend}"')
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(program, f"example {number}", "exec"), {"__name__": "__main__"})
        return said.getvalue()

    return run(size, rank)


@pytest.mark.filterwarnings("ignore:back-end ncclx")
@pytest.mark.parametrize("backend", ("pccl", "gloo"))
def test_examples_of_collectives(backend: str) -> None:
    said = outputs(1, 4, backend)
    assert said == [f"Rank {r}: Before AllReduce: {r + 1}.0\nRank {r}: After AllReduce: 10.0\n" for r in range(4)]
    for r, text in enumerate(outputs(2, 2, backend)):
        assert text.startswith(f"Rank {r}: Doing other computation...\n") and text.endswith(f"Rank {r}: Result: 3.0\n")
    for r, text in enumerate(outputs(3, 4, backend)):
        assert text.endswith(f"Rank {r}: Received {(r - 1) % 4}.0 from rank {(r - 1) % 4}\n")
    for r, text in enumerate(outputs(4, 3, backend)):
        assert text == "".join(f"Rank {r}: Tensor from rank {k}: {k}.0\n" for k in range(3))
    for r, text in enumerate(outputs(5, 3, backend)):
        assert text == f"Rank {r}: Before broadcast: {0.0 if r else 42.0}\nRank {r}: After broadcast: 42.0\n"


@pytest.mark.filterwarnings("ignore:back-end ncclx")
def test_examples_of_objects_batches_and_training() -> None:
    gathered = [["foo", "bar"], {"key": "value"}, 42, (1, 2, 3)]
    assert outputs(7, 4, "pccl") == [f"Rank {r}: Gathered objects: {gathered}\n" for r in range(4)]
    assert outputs(8, 3, "pccl") == [f"Rank {r}: Batch operations completed\n" for r in range(3)]
    said = outputs(9, 2, "pccl")
    assert [line.partition(":")[0] for line in said[0].splitlines()] == [*(f"Epoch {k}" for k in range(5)), "Rank 0"]
    assert said[1] == "Rank 1: Training completed!\n"


def test_the_example_of_cuda_graphs_says_what_it_needs() -> None:
    def rank() -> str:
        install_as_torchcomms({"ncclx": "pccl"})
        text = EXAMPLES.read_text()
        found = re.search(r"```python\n(.*?)```", text[text.index("### Example 6:"):], re.DOTALL)
        assert found is not None
        with pytest.raises(RuntimeError) as caught:
            exec(compile(found.group(1), "example 6", "exec"), {"__name__": "__main__"})
        return str(caught.value)

    assert "only CPU is supported" in run(1, rank)[0] and "CUDA graphs" in run(1, rank)[0]


def fresh(program: str, **environment: str) -> str:
    """What a program of its own says."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], env={**os.environ, **environment}, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("order", ("before", "after"))
def test_modules(order: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "torchcomms" / "tests").mkdir(parents=True)
    (tmp_path / "torchcomms" / "tests" / "shared.py").write_text("value = 7\n")
    program = """
    import sys
    if ORDER == "after":
        import torch.distributed
    import pccl.comms
    assert pccl.comms.install_as_torchcomms() is pccl.comms.install_as_torchcomms()
    import torchcomms, torch.distributed
    from torchcomms import new_comm, ReduceOp, AllReduceOptions, objcol, hooks, CommOptions
    from torchcomms._comms import RedOpType, OpName, WorkStatus, RemovableHandle, get_mem_allocator, AllReducePreHookArgs
    from torchcomms._comms_gloo import TorchCommGloo
    from torchcomms.hooks import FlightRecorderHook, NanCheckHook, clog
    from torchcomms.hooks.fr import FlightRecorderHook as again
    from torchcomms.hooks.clog import clog as log
    from torchcomms._comms.hooks.fr import FlightRecorderHook as third
    import torchcomms.objcol, torchcomms.hooks.nan_check
    from torchcomms.tests.shared import value
    from torchcomms.device_mesh import init_device_mesh, _create_torchcomm_process_group
    from torchcomms.device_mesh import _flatten_with_comm
    from torchcomms._comms import _BackendWrapper, _BackendWrapperOptions, WorkWrapper
    from torchcomms._transport import RdmaMemory, RdmaTransport
    from torchcomms.functional import all_reduce, is_torch_compile_supported
    from torchcomms.functional.async_tensor import TorchCommsAsyncTensor
    import torchcomms.functional.registry
    from torchcomms.functional.param_parsing import schema
    assert schema("send", False) == "(Tensor tensor, int dst, str comm, bool async_op, float timeout, str[] hints) -> Tensor"
    from torchcomms.functional.inductor_lowering import register
    assert torchcomms.functional.collectives.all_reduce is all_reduce and is_torch_compile_supported()
    import torchcomms.distwrap as distwrap
    import torchcomms.distwrap.collectives, torchcomms.distwrap.new_comm
    from torchcomms.distwrap.pginfo import info_of
    assert torchcomms.distwrap.collectives.all_reduce is distwrap.all_reduce and "all_reduce" in distwrap.__all__ and info_of(None) is None
    assert RdmaTransport.supported() and RdmaMemory(bytearray(3)).to_remote_buffer().len == 3
    from torchcomms._store_manager import _create_prefix_store, _dup_prefix_store
    assert issubclass(_BackendWrapper, torch.distributed.ProcessGroup) and issubclass(WorkWrapper, torch.distributed.Work)
    assert value == 7 and log is clog and again is FlightRecorderHook is third
    assert all(getattr(torchcomms, name).__module__ == "torchcomms" for name in torchcomms.__all__), torchcomms.__all__
    assert torchcomms.is_backend_built("gloo") and set(torchcomms.built_backends()) >= {"gloo", "xccl", "mccl", "pccl", "fake"}
    try:
        new_comm("ncclx", "cpu", "x")
    except ModuleNotFoundError as error:
        assert "failed to find backend" in str(error)
    comm = new_comm("gloo", torch.device("cpu"), "main", options=CommOptions(timeout=20))
    assert type(comm.get_backend_impl()) is TorchCommGloo and comm.get_backend() == "gloo"
    tensor = torch.ones(2)
    comm.all_reduce(tensor, ReduceOp.SUM, options=AllReduceOptions(timeout=3, hints={"torchcomm::ncclx::high_priority_stream": "true"}))
    child = comm.split([0], "child")
    assert child.get_backend() == "gloo"
    child.finalize(), comm.finalize()
    print("well")
    """.replace("ORDER", repr(order))
    assert fresh(program, PYTHONPATH=paths_with(tmp_path), RANK="0", WORLD_SIZE="1") == "well\n"


def test_a_real_one_is_not_hidden(tmp_path: pathlib.Path) -> None:
    (tmp_path / "torchcomms").mkdir()
    (tmp_path / "torchcomms" / "__init__.py").write_text("")
    program = """
    import pccl.comms
    try:
        pccl.comms.install_as_torchcomms()
    except RuntimeError as error:
        print("a real torchcomms is installed" in str(error))
    """
    assert fresh(program, PYTHONPATH=paths_with(tmp_path)) == "True\n"


MASKED: list[tuple[str, dict[str, Any]]] = [
    ("gloo", {"wait": False, "reconfigure": True}), ("xccl", {"wait": False, "reconfigure": False}),
    ("mccl", {"wait": True, "reconfigure": True}), ("pccl", {"wait": True, "reconfigure": True}),
]


def refused(call: Callable[[], Any], text: str) -> bool:
    try:
        call()
    except RuntimeError as error:
        assert text in str(error), error
        return True
    return False


def test_masks() -> None:
    def rank() -> None:
        torchcomms: Any = install_as_torchcomms()
        for name, works in MASKED:
            comm = torchcomms.new_comm(name, torch.device("cpu"), name="masked", timeout=30)
            tensor = torch.ones(1)
            work = comm.all_reduce(tensor, torchcomms.ReduceOp.SUM, True)
            assert refused(work.wait_blocking, "waitBlocking not implemented") is not works["wait"], name
            work.wait()
            comm.all_reduce(tensor, torchcomms.ReduceOp.SUM, False).wait_blocking()
            assert refused(comm.get_init_handle, "getInitHandle not implemented") is not works["reconfigure"]
            if not works["reconfigure"]:
                assert refused(lambda: comm.reconfigure(1, ["x"]), "reconfigure not implemented")
                assert refused(lambda: torchcomms.new_comm(name, "cpu", "x", enable_reconfigure=True), "is not supported by backend")
            assert refused(comm.batch_op_create().issue, "Cannot issue empty batch operation") is (name != "pccl")
            comm.tensor_register(tensor)
            comm.tensor_deregister(tensor)
            assert refused(lambda: work._set_status(torchcomms._comms.WorkStatus.ERROR), "only supported on Python-created work objects")
            comm.finalize()

    run(1, rank)


NAMES = """
from pccl.comms.alias import install_as_torchcomms
torchcomms = install_as_torchcomms({"xyz": "pccl"})
import torchcomms.distwrap, torchcomms.functional
from torchcomms.functional import registry
print(torchcomms.OpName.barrier, f"{torchcomms.OpName.barrier}", int(torchcomms.OpName.barrier))
print(hasattr(torchcomms.distwrap, "__path__"), hasattr(torchcomms.functional, "__path__"))
for name in ("pccl", "gloo", "xyz"):
    print(type(torchcomms.get_mem_allocator(name)).__name__)
"""


def test_names_print_as_words_packages_have_paths_and_mapped_names_have_allocators() -> None:
    done = subprocess.run([sys.executable, "-c", NAMES], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["OpName.barrier OpName.barrier 14", "True True", *["SharedMemoryAllocator"] * 3]
