"""Ranks of a job as forked processes, with the environment that a launcher gives them, and a limit of time."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import faulthandler
import os
import pickle
import signal
import socket
import sys
import threading
import time
import traceback
from multiprocessing import Pipe
from typing import Any, Callable, Mapping, Optional

_LIMIT = 40.0


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody listens at."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def paths_with(folder: object) -> str:
    """PYTHONPATH of a program of its own that finds modules in that folder, too."""
    return os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(folder))))


class Rank:
    """One forked process that runs a function; `result()` is what it returned, or raises what it raised."""

    def __init__(self, function: Callable[..., Any], arguments: tuple[Any, ...], environment: Mapping[str, str]) -> None:
        self._receiver, sender = Pipe(duplex=False)
        sys.stdout.flush()
        sys.stderr.flush()
        self.pid = os.fork()
        if self.pid == 0:
            self._receiver.close()
            _child(function, arguments, environment, sender)
        sender.close()
        self.status: Optional[int] = None

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Sends it a signal."""
        os.kill(self.pid, number)

    def end(self, seconds: float = _LIMIT) -> int:
        """Waits for its end; the exit status, negative: the signal.  AssertionError: it goes on after `seconds`."""
        if self.status is None:
            reaped = threading.Event()

            def kill_late() -> None:
                if not reaped.wait(seconds):
                    self.kill()

            watch = threading.Thread(target=kill_late, daemon=True)
            watch.start()
            began = time.monotonic()
            _, status = os.waitpid(self.pid, 0)
            reaped.set()
            watch.join()
            self.status = os.waitstatus_to_exitcode(status)
            assert self.status != -signal.SIGKILL or time.monotonic() - began < seconds, f"process {self.pid} went on for {seconds} s"
        return self.status

    def result(self, seconds: float = _LIMIT) -> Any:
        """AssertionError: it failed, with its traceback."""
        said: Any = None
        if self._receiver.poll(seconds):
            try:
                said = pickle.loads(self._receiver.recv_bytes())
            except EOFError:
                pass
        status = self.end(seconds)
        assert said is not None, f"process {self.pid} ended with status {status} and said nothing"
        failed, value = said
        assert not failed, f"a rank failed:\n{value}"
        return value


def _child(function: Callable[..., Any], arguments: tuple[Any, ...], environment: Mapping[str, str], sender: Any) -> None:
    status = 1
    faulthandler.disable()  # the parent's; a test may want a rank to abort
    try:
        for name, value in environment.items():
            os.environ[name] = value
        try:
            said = (False, function(*arguments))
            status = 0
        except BaseException:  # noqa: B902 - it is told to the parent
            said = (True, traceback.format_exc())
        sender.send_bytes(pickle.dumps(said))
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def start(count: int, function: Callable[..., Any], *arguments: Any, environment: Optional[Mapping[str, str]] = None) -> list[Rank]:
    """Starts `count` ranks that call ``function(*arguments)``, with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set."""
    base = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(count), **(environment or {})}
    return [Rank(function, arguments, {**base, "RANK": str(rank)}) for rank in range(count)]


def run(count: int, function: Callable[..., Any], *arguments: Any, environment: Optional[Mapping[str, str]] = None) -> list[Any]:
    """The same, and what each returned."""
    ranks = start(count, function, *arguments, environment=environment)
    return results(ranks)


def results(ranks: list[Rank], seconds: float = _LIMIT) -> list[Any]:
    """What each returned; the others are killed when one has failed."""
    try:
        return [rank.result(seconds) for rank in ranks]
    finally:
        for rank in ranks:
            if rank.status is None:
                rank.kill()
                rank.end()
