"""The examples of training need torch."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Iterator

import pytest

torch = pytest.importorskip("torch")

from support.multiworld import Children  # noqa: E402 - needs torch


@pytest.fixture
def children() -> Iterator[Children]:
    with Children() as running:
        yield running
