"""written.py - files that a script writes from other files of the tree: it writes them, or checks that they are up to date.

SPDX-License-Identifier: MIT
"""
import sys
from pathlib import Path

from rules import report

ROOT = Path(__file__).resolve().parent.parent


def stale(path, text):
    if not path.exists() or path.read_text() != text:
        yield f"{path.relative_to(ROOT)}: not what it is written from; run scripts/{Path(sys.argv[0]).name}"


def write_or_check(files):
    """The command `SCRIPT [--check]` for files of (what is reported, path, text); the exit status.  --check writes nothing."""
    if sys.argv[1:] != ["--check"]:
        for _, path, text in files:
            path.write_text(text)
        return 0
    return report((name, stale(path, text)) for name, path, text in files)
