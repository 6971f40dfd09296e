"""The programs in examples/python/comms, started as they say."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pytest

FOLDER = pathlib.Path(__file__).parents[3] / "examples" / "python" / "comms"
SAID = {
    "AllReduceSync": [line for r in range(4) for line in (f"Rank {r}: After AllReduce: 10.0", f"Rank {r}: Before AllReduce: {r + 1}.0")],
    "AllReduceAsync": [f"Rank {r}: average 2.5, and 64.0" for r in range(4)],
    "SendRecvAsync": [f"Rank {r}: Received {(r - 1) % 4}.0 from rank {(r - 1) % 4}" for r in range(4)],
    "Reconfigure": [f"Rank {r}: 3.0 of 4 ranks are left" for r in range(3)],
}


@pytest.mark.parametrize("name", sorted(SAID))
def test_what_it_says(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "4", str(FOLDER / f"{name}.py")],
        capture_output=True, text=True, timeout=100, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.replace("Rank", "\nRank").split("\n"))[-len(SAID[name]):] == SAID[name], done.stdout


def test_all_of_them() -> None:
    assert {path.stem for path in FOLDER.glob("*.py")} == set(SAID)
