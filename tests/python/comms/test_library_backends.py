"""Back-ends that are C libraries: the example of examples/c/backend is built, loaded and used; libraries that cannot be are refused."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import ctypes
import os
import pathlib
import shutil
import subprocess
from typing import Any

import pytest
import torch

from pccl.comms import ReduceOp, load_backend, new_comm
from pccl.comms.backends import library_table
from support.communicators import every_operation
from support.ranks import results, run, start

ROOT = pathlib.Path(__file__).parents[3]
COMPILER = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")

pytestmark = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")


def built(target: pathlib.Path, *sources: pathlib.Path) -> str:
    command = [str(COMPILER), "-std=c11", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror", "-O1", "-fPIC", "-shared", "-fvisibility=hidden"]
    subprocess.run([*command, f"-I{ROOT / 'include'}", *map(str, sources), "-o", str(target), "-lpthread"], check=True, timeout=100)
    return str(target)


@pytest.fixture(scope="module")
def mesh(tmp_path_factory: pytest.TempPathFactory) -> str:
    return built(tmp_path_factory.mktemp("mesh") / "libmesh.so", *sorted((ROOT / "examples" / "c" / "backend").glob("*.c")))


@pytest.mark.parametrize("size", (1, 3))
def test_the_example(mesh: str, size: int) -> None:
    def rank() -> None:
        for name in ("first", "second"):
            comm = new_comm("mesh", "cpu", name, timeout=30)
            assert comm.get_backend() == "mesh" and comm.get_backend_version() == "mesh 1.0"
            every_operation(comm)
            me = comm.get_rank()
            child = comm.split([size - 1, 0][: min(size, 2)] if me in (0, size - 1) else [], "child")
            assert (child is None) == (me not in (0, size - 1))
            if child is not None:
                for k in range(3):  # with the parent's between them
                    tensor = torch.tensor([me + 1, k])
                    child.all_reduce(tensor, ReduceOp.SUM)
                    assert tensor.tolist() == [size + 1 if size > 1 else 1, 2 * k if size > 1 else k]
            comm.barrier()
            if child is not None:
                child.finalize()
            with pytest.raises(RuntimeError, match="Invalid rank"):
                comm.split([size], "wrong")
            for dtype in (torch.int8, torch.uint8, torch.int32, torch.int64, torch.float64):
                tensor = torch.tensor([49 * (me + 1)], dtype=torch.int64).to(dtype)
                inputs = [torch.tensor([49 * (r + 1)], dtype=torch.int64).to(dtype) for r in range(size)]
                comm.all_reduce(tensor, ReduceOp.AVG)
                wanted = torch.stack(inputs).sum(0).to(dtype).div(size, rounding_mode=None if dtype.is_floating_point else "trunc")
                assert torch.equal(tensor, wanted.to(dtype)), dtype
            comm.finalize()

    run(size, rank, environment={"TORCHCOMMS_BACKEND_LIB_PATH_MESH": mesh})


def test_large_messages_around_a_ring(mesh: str) -> None:
    def rank() -> None:
        comm = new_comm("mesh", "cpu", "ring", timeout=30)
        me, size = comm.get_rank(), comm.get_size()
        send, receive = torch.full((1 << 20,), float(me)), torch.zeros(1 << 20)
        works = [comm.send(send, (me + 1) % size, True), comm.recv(receive, (me - 1) % size, True)]
        for work in works:
            work.wait()
        assert torch.equal(receive, torch.full((1 << 20,), float((me - 1) % size)))
        comm.finalize()

    run(3, rank, environment={"TORCHCOMMS_BACKEND_LIB_PATH_MESH": mesh})


def test_failures_of_the_example(mesh: str) -> None:
    def rank(how: str) -> str:
        comm = new_comm("mesh", "cpu", "failing", timeout=30)
        comm.barrier()
        if how == "timeout" and comm.get_rank() == 0:
            with pytest.raises(RuntimeError, match="operation timed out"):
                comm.recv(torch.zeros(1), 1, timeout=0.2)
        elif how == "death" and comm.get_rank() == 0:
            os._exit(7)
        elif how == "abort" and comm.get_rank() == 0:
            comm.abort()
            with pytest.raises(RuntimeError, match="was aborted"):
                comm.barrier()
        else:
            with pytest.raises(RuntimeError, match="has gone"):
                comm.barrier()
        comm.finalize()
        return how

    for how in ("timeout", "abort", "death"):
        ranks = start(2, rank, how, environment={"TORCHCOMMS_BACKEND_LIB_PATH_MESH": mesh})
        if how == "death":
            assert ranks[0].end() == 7
        assert results(ranks[1:] if how == "death" else ranks)[-1] == how


def test_structures_are_those_of_the_header(tmp_path: pathlib.Path) -> None:
    names = {"Part": "Part", "Call": "Call", "StoreTable": "Store", "Params": "Params", "Table": ""}
    lines = ["#include <pccl_backend.h>", "PCCL_EXPORT extern const unsigned long sizes[];", "const unsigned long sizes[] = {"]
    wanted: list[int] = []
    for python, c in names.items():
        kind: Any = getattr(library_table, python)
        full = f"pcclBackend{c}_t"
        lines.append(f"sizeof({full}),")
        wanted.append(ctypes.sizeof(kind))
        for field, *_ in kind._fields_:
            lines.append(f"offsetof({full}, {field}),")
            wanted.append(getattr(kind, field).offset)
    lines.append("PCCL_BACKEND_MAGIC, PCCL_BACKEND_VERSION};")
    (tmp_path / "sizes.c").write_text("\n".join(lines))
    library = ctypes.CDLL(built(tmp_path / "sizes.so", tmp_path / "sizes.c"))
    wanted += [library_table.MAGIC, library_table.VERSION]
    assert list((ctypes.c_ulong * len(wanted)).in_dll(library, "sizes")) == wanted


BROKEN = """
#include <pccl_backend.h>
PCCL_EXPORT const pcclBackend_t *create_dynamic_loader_old(void);
PCCL_EXPORT const pcclBackend_t *create_dynamic_loader_empty(void);
PCCL_EXPORT const pcclBackend_t *create_dynamic_loader_null(void);
const pcclBackend_t *create_dynamic_loader_old(void)
{
    static const pcclBackend_t table = {.size = sizeof table, .magic = PCCL_BACKEND_MAGIC, .version = 99};
    return &table;
}
const pcclBackend_t *create_dynamic_loader_empty(void)
{
    static const pcclBackend_t table = {.size = sizeof table, .magic = PCCL_BACKEND_MAGIC, .version = PCCL_BACKEND_VERSION};
    return &table;
}
const pcclBackend_t *create_dynamic_loader_null(void)
{
    return NULL;
}
"""


def test_libraries_that_cannot_be_used(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.c").write_text(BROKEN)
    path = built(tmp_path / "broken.so", tmp_path / "broken.c")
    for name, text in (
        ("old", "ABI version mismatch"), ("empty", "missing required function pointers: create, destroy"),
        ("null", "Failed to load backend library"), ("other", "Failed to load backend library"),
    ):
        with pytest.raises(RuntimeError, match=text):
            load_backend(name, path)
    monkeypatch.setenv("TORCHCOMMS_BACKEND_LIB_PATH_NOWHERE", str(tmp_path / "nowhere.so"))
    with pytest.raises(RuntimeError, match="Failed to load backend library"):
        new_comm("nowhere", "cpu", "x")


