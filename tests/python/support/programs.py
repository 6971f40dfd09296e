"""Programs of tests as processes that say what they do line by line, and are waited for with a deadline."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import os
import pathlib
import queue
import signal
import subprocess
import sys
import threading
from typing import Optional

_DEADLINE = 60.0

#: The folder of this file's parent, so that programs may import `support`, too.
TESTS = pathlib.Path(__file__).parent.parent


class Program:
    """A Python program, given as text or as a file, with its arguments; what it prints comes line by line.

    As a context it is killed at the end, if it still runs.
    """

    def __init__(self, source: "str | pathlib.Path", *arguments: object, **environment: str) -> None:
        command = [sys.executable, "-u"]
        command += [str(source)] if isinstance(source, pathlib.Path) else ["-c", source]
        paths = os.environ.get("PYTHONPATH", "").split(os.pathsep) + [str(TESTS)]
        self.process = subprocess.Popen(
            [*command, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path), "OMP_NUM_THREADS": "1", **environment},
        )
        self.said: list[str] = []
        self._lines: "queue.Queue[Optional[str]]" = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def line(self) -> Optional[str]:
        """The next line; None: it has ended."""
        try:
            line = self._lines.get(timeout=_DEADLINE)
        except queue.Empty:
            self.kill()
            raise AssertionError(f"nothing was said for {_DEADLINE:.0f} s after {self.said[-20:]}") from None
        if line is not None:
            self.said.append(line)
        return line

    def until(self, word: str) -> str:
        """Reads on to the first line that begins so."""
        while True:
            line = self.line()
            assert line is not None, f"ended before it said {word!r}: {self.said}"
            if line.startswith(word):
                return line

    def tell(self, line: str) -> None:
        """A line to its standard input."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait(timeout=_DEADLINE)

    def end(self) -> int:
        """Reads all that is left, and waits for its end; returns the exit status, below 0 if a signal has ended it."""
        while self.line() is not None:
            pass
        return self.process.wait(timeout=_DEADLINE)

    def succeeds(self) -> None:
        """It ends by itself, and well."""
        status = self.end()
        assert status == 0, f"exit status {status}: {self.said}"

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    pass
