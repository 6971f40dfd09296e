#!/usr/bin/env python3
"""quick_starts.py NAME... - runs the quick starts of README.md as they are written, and compares what they print.

A quick start is a section with three listings: a program, which the text before it names, the commands that start it, and the
output.  NAME is the section's heading.  Each runs in a folder and a network namespace of its own, so the ports that the listings
name are free; the programs on PATH are those under test.  The last line is "N passed, N failed".
SPDX-License-Identifier: MIT
"""
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rules import report

README = Path(__file__).resolve().parent.parent / "README.md"
MOST_LINES = 12  # of a program
PATIENCE = 180.0  # seconds: torch is imported six times, on a machine that does other work
ALONE = ["unshare", "--map-root-user", "--net", "--pid", "--fork", "--kill-child"]  # all of it ends with its first process


class QuickStart:
    """One section: the program's name and text, the commands, the lines of output."""

    def __init__(self, text, heading):
        section = re.search(rf"^## {re.escape(heading)}\n(.*?)(?=^## |\Z)", text, re.M | re.S)
        if section is None:
            raise LookupError(f"README.md has no section '{heading}'")
        self.heading = heading
        blocks = re.findall(r"^```(\w+)\n(.*?)^```", section.group(1), re.M | re.S)
        if [language for language, _ in blocks][1:] != ["sh", "text"]:
            raise LookupError(f"README.md, {heading}: expected a program, commands (sh) and output (text)")
        self.name = re.search(r"`(\w+\.\w+)`", section.group(1)).group(1)
        self.program, self.commands, output = (body for _, body in blocks)
        self.output = sorted(output.splitlines())

    def missing(self, said):
        """The lines of the output that are not among those that were said, each as often as it is listed."""
        # torchrun starts Python with -u, so a line and its end are two writes, and two processes may write into one line.
        listed = re.compile("|".join(map(re.escape, self.output)))
        rest = []
        for line in said.splitlines():
            parts = listed.findall(line)
            rest += parts if "".join(parts) == line else [line]
        return [line for line in self.output if line not in rest or rest.remove(line)]

    def breaches(self):
        lines = len(self.program.splitlines())
        if lines > MOST_LINES:
            yield f"README.md: {self.name} has {lines} lines, at most {MOST_LINES}"
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / self.name).write_text(self.program)
            script = f"ip link set lo up\n{self.commands}\nwait"
            with open(Path(folder) / "said", "w+") as said:
                # Python then writes what it prints in one piece, so that the lines of several processes do not mix.
                environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
                shell = subprocess.Popen(
                    [*ALONE, "bash", "-c", script], cwd=folder, env=environment, stdout=said, stderr=subprocess.STDOUT
                )
                end = time.monotonic() + PATIENCE
                while self.missing((Path(folder) / "said").read_text()) and time.monotonic() < end and shell.poll() is None:
                    time.sleep(0.05)
                shell.kill()
                shell.wait()
            text = (Path(folder) / "said").read_text()
            missing = self.missing(text)
            if missing:
                print(text)
                yield f"README.md: {self.heading} did not print: {missing}"


def main():
    if subprocess.run([*ALONE, "true"], capture_output=True, check=False).returncode != 0:
        print("no network namespace may be made here")
        return 77
    text = README.read_text()
    return report((f"the quick start {name} prints what README.md shows", QuickStart(text, name).breaches()) for name in sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
