"""Which collectives wait for which earlier ones, by the memory that each reads and writes."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any, Optional

import numpy as np
import pytest

from pccl.comms.order import Order


class Work:
    """It ends when somebody waits for it."""

    _place = 0

    def __init__(self) -> None:
        self.over = False

    def _finish(self, seconds: Optional[float]) -> None:
        self.over = True

    def _ended(self) -> bool:
        return self.over


memory = np.zeros(8)
first, second = memory[:4], memory[4:]


@pytest.mark.parametrize(("earlier", "later", "waits"), [
    ({"input": first, "output": second}, {"input": second, "output": np.zeros(4)}, True),   # read after write
    ({"input": first, "output": second}, {"input": np.zeros(4), "output": first}, True),    # write after read
    ({"input": first, "output": second}, {"input": np.zeros(4), "output": second}, True),   # write after write
    ({"input": first, "output": second}, {"input": first, "output": np.zeros(4)}, False),   # read after read
    ({"tensor": first}, {"input": [np.zeros(4), memory[3:5]], "output": np.zeros(8)}, True),  # one element of one of a list
    ({"tensor": first}, {"tensor": second}, False),
])
def test_a_collective_waits_for_those_whose_memory_it_meets(earlier: Any, later: Any, waits: bool) -> None:
    """It is issued then; else it would read what is not there yet, or overwrite what is still to be read."""
    order, work = Order(), Work()
    order.enter(work, order.prepare(earlier))  # type: ignore[arg-type]
    order.prepare(later)
    assert work.over is waits
