"""What all tests of the Python package share: a master for each that asks for one, a limit of time, and the closing line."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import pathlib
import signal
import sys
from typing import Any, Iterator

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from support.master import Master  # noqa: E402

# A shell has what it starts with & ignore this, and all that is started there in turn: interrupts would be waited for in vain.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def master() -> Iterator[Master]:
    """A ``ccoip_master`` process at a port of its own."""
    with Master() as running:
        yield running


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The line that scripts/check.sh adds up; an error in a fixture is a failure."""
    count = {name: len(terminalreporter.stats.get(name, [])) for name in ("passed", "failed", "error")}
    for skipped in terminalreporter.stats.get("skipped", []):
        terminalreporter.write_line(f"SKIPPED {skipped.nodeid.rpartition('::')[2]}: {skipped.longrepr[2].removeprefix('Skipped: ')}")
    terminalreporter.write_line(f"{count['passed']} passed, {count['failed'] + count['error']} failed")
