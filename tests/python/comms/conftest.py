"""Torch, whose import takes longer than most tests, is there once before ranks are forked; one thread in each."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import os
from typing import Iterator

import pytest

os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch  # noqa: E402
import torch.distributed  # noqa: E402,F401

torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="module")
def one_master() -> Iterator[None]:
    """Ranks of a module's tests share a master, so that not each test starts one."""
    from support.master import Master

    with Master() as master:
        os.environ["PCCL_MASTER"] = master.address
        yield
        os.environ.pop("PCCL_MASTER", None)
