"""A master as a process, that ends with the test."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Optional

from pccl.engine.bootstrap import master_program


class Master:
    """``ccoip_master`` at 127.0.0.1, at `port` or any that is free; `address` is its "host:port"."""

    def __init__(self, port: int = 0, *options: str) -> None:
        command = [master_program(), "--listen", f"127.0.0.1:{port}", "--log-level", "none", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().strip().rpartition(" ")[2]
        assert self.address, "ccoip_master did not start"

    @classmethod
    def at_a_port_that_stays(cls, *options: str) -> "Master":
        """At a port that no connection is given by chance, so that another master can be there when this one has ended."""
        for port in random.sample(range(20000, 32000), 20):
            try:
                return cls(port, *options)
            except AssertionError:
                continue  # somebody listens there
        raise AssertionError("20 ports are taken")

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def end(self, number: int = signal.SIGTERM, status: Optional[int] = 0) -> None:
        """Ends it by a signal; with SIGTERM it says that all was well."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        ended = self.process.wait(timeout=30)
        if self.process.stdout is not None:
            self.process.stdout.close()
        assert status is None or number != signal.SIGTERM or ended == status

    def __enter__(self) -> "Master":
        return self

    def __exit__(self, *_: object) -> None:
        self.end(status=None)


def freeze(pid: int) -> None:
    """Stops a process of any parent and returns once none of its threads runs: SIGSTOP reaches them one after the other."""
    os.kill(pid, signal.SIGSTOP)
    until = time.monotonic() + 30
    while any(task.joinpath("stat").read_text().rpartition(") ")[2][0] != "T" for task in Path(f"/proc/{pid}/task").iterdir()):
        assert time.monotonic() < until, f"process {pid} does not stop"
