"""Ranks of a torch.distributed job as forked processes: none has to import torch again."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import datetime
import itertools
import multiprocessing
import os
import pathlib
import tempfile
import traceback
from typing import Any, Callable, Collection, Optional

import pytest
import torch
import torch.distributed as dist
from support import end_with_parent

from pccl.distributed import Options  # registers the backend

_FORK = multiprocessing.get_context("fork")
_LIMIT = 90.0  # seconds that a job may take
_numbers = itertools.count()


def _backends_can_be_made() -> bool:
    try:
        torch._C._distributed_c10d.Backend(0, 1)
    except TypeError:
        return False
    return True


#: For tests of a group that is torch's own, with a back-end of ours.
needs_backends = pytest.mark.skipif(not _backends_can_be_made(), reason="this torch lets no back-end be made in Python")
#: Both faces of a group, as pg_options.
faces = pytest.mark.parametrize(
    "face", [pytest.param(None, id="group"), pytest.param(Options(as_backend=True), id="backend", marks=needs_backends)]
)

#: A rank that was killed, in the results.
LOST = "lost"


def job(
    size: int,
    function: Callable[..., Any],
    *arguments: Any,
    backend: str = "pccl",
    lost: Collection[int] = (),
    timeout: float = 60.0,
    options: Any = None,
    reconfigurable: bool = False,
    environment: Optional[dict[str, str]] = None,
) -> list[Any]:
    """Calls ``function(rank, size, *arguments)`` at each rank of a group over a file, and returns what each returned.

    `reconfigurable`: as torch's own ``enable_reconfigure`` where there is that, else by pccl's options.
    An exception of a rank that is not one of `lost` is one here, with its text; those of `lost` have to end by a signal.
    """
    wishes: dict[str, Any] = {"pg_options": options}
    if reconfigurable:
        wishes = {"enable_reconfigure": True} if hasattr(dist, "_reconfigure") else {"pg_options": Options(reconfigurable=True)}
    with tempfile.TemporaryDirectory() as folder:
        store = str(pathlib.Path(folder, "store"))
        started = []
        for rank in range(size):
            here, there = _FORK.Pipe()
            call = (there, store, rank, size, function, arguments, backend, timeout, wishes, environment or {})
            process = _FORK.Process(target=_rank, args=call)
            process.start()
            there.close()
            started.append((process, here))
        try:
            results = [_result(rank, process, pipe, rank in lost) for rank, (process, pipe) in enumerate(started)]
        finally:
            for process, _ in started:
                if process.is_alive():
                    process.kill()
                process.join()
    wrong = "\n".join(wrong for wrong, _ in results if wrong)
    assert not wrong, wrong
    return [result for _, result in results]


def _result(rank: int, process: Any, pipe: Any, lost: bool) -> tuple[str, Any]:
    """What is wrong with the rank, or "", and what it returned."""
    if not pipe.poll(_LIMIT):
        return f"rank {rank} has not ended", None
    try:
        wrong, result = pipe.recv()
    except EOFError:
        process.join()
        return ("", LOST) if lost else (f"rank {rank} ended with {process.exitcode}", None)
    if wrong:
        return f"rank {rank}:\n{wrong}", None
    return (f"rank {rank} lives", None) if lost else ("", result)


def _rank(
    pipe: Any, store: str, rank: int, size: int, function: Any, arguments: Any, backend: str, timeout: float,
    wishes: dict[str, Any], environment: dict[str, str],
) -> None:
    end_with_parent()
    os.environ.update(environment)
    torch.set_num_threads(1)
    dist.set_debug_level_from_env()
    torch.manual_seed(rank)
    try:
        dist.init_process_group(
            backend, store=dist.FileStore(store, size), rank=rank, world_size=size, timeout=datetime.timedelta(seconds=timeout),
            **wishes,
        )
        said = ("", function(rank, size, *arguments))
        if dist.is_initialized():
            dist.destroy_process_group()
    except BaseException:  # noqa: B902 - the test says it
        said = (traceback.format_exc(), None)
    pipe.send(said)
    pipe.close()
    os._exit(0)
