"""The backend's tests need torch, and have one master for all, which their jobs find in the environment."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Iterator

import pytest
from support.master import Master

torch = pytest.importorskip("torch")


@pytest.fixture(scope="session", autouse=True)
def shared_master() -> Iterator[None]:
    with Master() as master, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PCCL_MASTER", master.address)
        patch.setenv("OMP_NUM_THREADS", "1")
        yield
