"""Masters that a process starts for itself: the same one as long as it runs, and again at its address when it has ended."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import os
import signal
import socket
import subprocess
from typing import Iterator, Optional

import pytest

from pccl.engine import bootstrap
from pccl.engine.bootstrap import answers, named_master, own_master

HOST = "127.0.0.1"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The processes that were started as masters, which end with the test."""
    pids: list[int] = []
    first_line = bootstrap._first_line

    def noted(child: "subprocess.Popen[bytes]") -> Optional[str]:
        pids.append(child.pid)
        return first_line(child)

    monkeypatch.setattr(bootstrap, "_first_line", noted)
    monkeypatch.setattr(bootstrap, "_own_ports", {})
    yield pids
    for pid in pids:
        end(pid)


def end(pid: int) -> None:
    """Nothing, if it has ended."""
    try:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    except (ProcessLookupError, ChildProcessError):
        pass


def port_of(address: str) -> int:
    return int(address.rpartition(":")[2])


def test_a_process_has_one_master_that_comes_back_at_its_address(started: list[int]) -> None:
    address = own_master(HOST)
    assert own_master(HOST) == address and answers(address)
    end(started[0])
    assert not answers(address)
    assert own_master(HOST) == address and answers(address)


def test_a_port_that_somebody_else_has(started: list[int]) -> None:
    with socket.create_server((HOST, 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(RuntimeError, match="no master could be started"):
            own_master(HOST, port, elsewhere=False)
        address = own_master(HOST, port)
        assert port_of(address) != port and answers(address)
        assert own_master(HOST, port) == address, "it does not stay where it was first"


def test_a_master_that_the_environment_names_is_an_address_or_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, expected in (("", ""), (" ", ""), (" 127.0.0.1:5 ", "127.0.0.1:5")):
        monkeypatch.setenv("PCCL_MASTER", text)
        assert named_master() == expected
    monkeypatch.setenv("PCCL_MASTER", "host:port")
    with pytest.raises(ValueError, match="^PCCL_MASTER: .*'port' is no port, .*; set it to a running ccoip_master's host:port"):
        named_master()
