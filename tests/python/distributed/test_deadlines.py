"""Timeouts are kept where nobody answers: a rank or the master is frozen, and there is no loss to be told of yet."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import datetime
import os
import signal
import threading
import time
from typing import Any, Callable

import pytest
import torch
import torch._dynamo  # noqa: F401 - before the ranks are forked: each would import it anew
import torch.distributed as dist
from support.master import Master, freeze
from support.torch_ranks import LOST, faces, job
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from pccl.errors import OperationTimeout, RankConnectionLost

SECOND = datetime.timedelta(seconds=1)
SOON = 8.0  #: seconds that a timeout of one may take on a busy machine: before the 10 s after which silence alone is a loss
TOLD = r"timed out after 1 s, waiting for rank 2"


def blocking(group: Any) -> None:
    with pytest.raises(OperationTimeout, match=f"all_reduce: Timed out .*{TOLD}"):
        dist.all_reduce(torch.ones(1), group=group)


def waited_for(group: Any) -> None:
    work = dist.broadcast(torch.ones(100_000), 2, group=group, async_op=True)
    with pytest.raises(OperationTimeout, match=f"broadcast: Timed out .*{TOLD}"):
        work.wait()


def with_a_limit(group: Any) -> None:
    work = dist.barrier(group, async_op=True)
    with pytest.raises(TimeoutError, match="timed out after 0.2 s in barrier, waiting for rank 2; the operation goes on"):
        work.wait(SECOND / 5)
    with pytest.raises(OperationTimeout, match=TOLD):
        work.wait(60 * SECOND)


def future(group: Any) -> None:
    with pytest.raises(RuntimeError, match=f"OperationTimeout: all_reduce: Timed out .*{TOLD}"):
        dist.all_reduce(torch.ones(1), group=group, async_op=True).get_future().wait()


def message(group: Any) -> None:
    with pytest.raises(OperationTimeout, match="timed out after 1 s"):
        dist.send(torch.ones(2**22), 2, group)


def training(group: Any) -> None:
    net = DistributedDataParallel(nn.Linear(2, 2), process_group=group, init_sync=False)
    with pytest.raises(RuntimeError, match=f"OperationTimeout: all_reduce: Timed out .*{TOLD}"):
        net(torch.ones(1, 2)).sum().backward()


WAYS: list[Callable[[Any], None]] = [blocking, waited_for, with_a_limit, future, message, training]


def frozen(rank: int, size: int, face: Any) -> None:
    store = dist.distributed_c10d._get_default_store()
    groups = []
    for _ in WAYS:
        groups.append(dist.new_group([0, 1, 2], timeout=60 * SECOND, pg_options=face))
        dist.barrier(groups[-1])
        (groups[-1] if face is None else dist.get_backend_impl(groups[-1])).set_timeout(SECOND)
    if rank == 2:
        store.set("pid", str(os.getpid()))
        os.kill(os.getpid(), signal.SIGSTOP)
    frozen_one = int(store.get("pid"))
    begin = time.monotonic()
    wrong: list[BaseException] = []

    def run(way: Callable[[Any], None], group: Any) -> None:
        try:
            way(group)
            with pytest.raises(RankConnectionLost, match="timed out after 1 s|revoked"):
                dist.barrier(group)
        except BaseException as error:  # noqa: B902 - raised below
            wrong.append(error)

    threads = [threading.Thread(target=run, args=both) for both in zip(WAYS, groups)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    elapsed = time.monotonic() - begin
    store.set(f"done/{rank}", "")
    store.wait(["done/0", "done/1"], 30 * SECOND)
    if rank == 0:
        os.kill(frozen_one, signal.SIGKILL)
    assert elapsed < SOON
    if wrong:
        raise wrong[0]


@faces
def test_an_operation_with_a_frozen_rank_ends_by_its_timeout(face: Any) -> None:
    assert job(3, frozen, face, lost={2}, options=face)[2] == LOST


def without_an_answer(rank: int, size: int, master: int) -> None:
    if rank == 0:
        freeze(master)
    dist.barrier()
    begin = time.monotonic()
    group = dist.new_group([0, 1], timeout=SECOND)
    with pytest.raises(RuntimeError):
        dist.barrier(group)
    assert time.monotonic() - begin < SOON
    dist.barrier()
    if rank == 0:
        os.kill(master, signal.SIGCONT)


def test_a_group_with_a_frozen_master_has_its_own_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    with Master() as own:
        monkeypatch.setenv("PCCL_MASTER", own.address)
        job(2, without_an_answer, own.process.pid)
