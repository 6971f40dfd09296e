"""Members of worlds: processes that are killed or frozen, forked from one that has torch already; and managers of this process."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import asyncio
import itertools
import multiprocessing
import os
import pathlib
import re
import runpy
import signal
import sys
import threading
import time
from typing import Any, Awaitable, Callable, Iterator, Optional

from pccl.multiworld import WorldManager

EXAMPLES = pathlib.Path(__file__).resolve().parents[3] / "examples" / "python" / "multiworld"
DEADLINE = 60.0  #: seconds for anything of a process to come: only a failure takes as long
SECONDS = 30.0   #: the same of this one

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(
    ["torch", "torch._dynamo", "numpy", "sklearn.datasets", "pccl.distributed", "pccl.multiworld", "pccl.multiworld.group_formation"]
)


class Child:
    """A process that runs `function`, and what it has printed: `lines`, with the time at which each came."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        here, there = _context.Pipe(duplex=False)
        self._process = _context.Process(target=_run, args=(there, function, arguments))
        self._process.start()
        there.close()
        self._changed = threading.Condition()
        self._pipe = here
        self.lines: list[tuple[float, str]] = []
        self.over = False
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    @property
    def pid(self) -> int:
        assert self._process.pid is not None
        return self._process.pid

    def _read(self) -> None:
        with os.fdopen(os.dup(self._pipe.fileno()), "r", errors="replace") as stream:
            for line in stream:
                with self._changed:
                    self.lines.append((time.monotonic(), line.rstrip("\n")))
                    self._changed.notify_all()
        with self._changed:
            self.over = True
            self._changed.notify_all()

    def find(self, pattern: str) -> Iterator[tuple[float, "re.Match[str]"]]:
        """All lines in which the pattern is, so far."""
        with self._changed:
            lines = list(self.lines)
        return ((when, found) for when, line in lines if (found := re.search(pattern, line)))

    def wait_for(self, pattern: str, nth: int = 1) -> tuple[float, "re.Match[str]"]:
        """The first such line, or the nth, also if it has still to come.  AssertionError: it does not come."""
        until = time.monotonic() + DEADLINE
        while True:
            with self._changed:
                seen = len(self.lines)
            for found in itertools.islice(self.find(pattern), nth - 1, None):
                return found
            with self._changed:
                if len(self.lines) > seen:
                    continue
                assert not self.over and time.monotonic() < until, f"{pattern!r} does not come:\n{self.text()}"
                self._changed.wait(1.0)

    def text(self) -> str:
        """All that it has printed."""
        return "\n".join(line for _, line in self.lines[-200:])

    def signal(self, number: int) -> float:
        """Sends a signal; the time."""
        os.kill(self.pid, number)
        return time.monotonic()

    def join(self) -> Optional[int]:
        """Waits for its end; the status, as multiprocessing tells it.  AssertionError: it does not end."""
        self._process.join(DEADLINE)
        assert self._process.exitcode is not None, f"it does not end:\n{self.text()}"
        self._reader.join(DEADLINE)
        return self._process.exitcode

    def end(self) -> None:
        """Kills it if it runs, frozen or not."""
        if self._process.exitcode is None:
            os.kill(self.pid, signal.SIGKILL)
        self._process.join()
        self._reader.join()
        self._pipe.close()
        self._process.close()


class Children:
    """Some of them, that end with the test."""

    def __init__(self) -> None:
        self._all: list[Child] = []

    def start(self, function: Callable[..., Any], *arguments: Any) -> Child:
        """One more."""
        child = Child(function, *arguments)
        self._all.append(child)
        return child

    def example(self, name: str, *arguments: object) -> Child:
        """A script of the examples, with these arguments."""
        return self.start(run_script, str(EXAMPLES / name), [str(argument) for argument in arguments])

    def __enter__(self) -> "Children":
        return self

    def __exit__(self, *_: object) -> None:
        for child in self._all:
            child.end()


def run_script(path: str, arguments: list[str]) -> None:
    """As `python path arguments` would."""
    sys.argv = [path, *arguments]
    sys.path.insert(0, str(pathlib.Path(path).parent))
    runpy.run_path(path, run_name="__main__")


def _run(pipe: Any, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    os.dup2(pipe.fileno(), 1)
    os.dup2(pipe.fileno(), 2)
    pipe.close()
    sys.stdout = os.fdopen(1, "w", buffering=1, closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, closefd=False)
    function(*arguments)


# -- Managers of this process --

async def enter(managers: list[WorldManager], port: int, name: str = "w", backend: str = "pccl") -> None:
    """All of them in one world, by their order."""
    await asyncio.gather(
        *(manager.initialize_world(name, rank, len(managers), backend, port=port) for rank, manager in enumerate(managers))
    )


def in_worlds(
    count: int, port: int, body: Callable[..., Awaitable[None]], names: tuple[str, ...] = ("w",), backend: str = "pccl"
) -> None:
    """Runs `body` with the communicators of so many managers that are in these worlds."""

    async def run() -> None:
        managers = [WorldManager() for _ in range(count)]
        for name in names:
            await enter(managers, port, name, backend)
        await asyncio.wait_for(body(*(manager.communicator for manager in managers)), SECONDS)
        for manager in managers:
            manager.cleanup()
            assert manager.communicator.worlds() == []

    asyncio.run(run())


def each(*calls: Awaitable[Any]) -> "asyncio.Future[list[Any]]":
    """The outcomes of all: values and exceptions."""
    return asyncio.gather(*calls, return_exceptions=True)
