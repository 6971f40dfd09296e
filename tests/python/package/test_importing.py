"""Importing a face does nothing but that: what a program had set up, and what the system knows of its process, is as it was."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest

#: What each imports by itself, whose effects are not ours: it is imported before the first look.
FACES = {
    "pccl": [],
    "pccl.engine": [],
    "pccl.engine.bootstrap": [],
    "pccl.multiworld": ["asyncio"],
    "pccl.multiworld, with torch": ["torch.distributed"],
    "pccl.comms": [],
    "pccl.comms, with torch": ["torch.distributed"],
    "pccl.distributed": ["torch.distributed"],
}

LOOK_TWICE = """
import importlib, json, logging, os, signal, sys, threading, warnings

def look():
    status = dict(line.split(":", 1) for line in open("/proc/self/status") if line.startswith(("SigBlk", "SigIgn", "SigCgt", "Threads", "Umask")))
    loggers = logging.root.manager.loggerDict
    return {
        "threads of Python": [thread.name for thread in threading.enumerate()],
        "threads, and signals that are blocked, ignored and caught": {name: value.strip() for name, value in status.items()},
        "handlers of signals": {str(number): str(signal.getsignal(number)) for number in signal.valid_signals()},
        "level and handlers of the root logger": [logging.root.level, str(logging.root.handlers), logging.root.disabled],
        "loggers with a handler or a level": [name for name, own in sorted(loggers.items()) if getattr(own, "handlers", 0) or getattr(own, "level", 0)],
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "descriptors": [(fd, os.readlink(f"/proc/self/fd/{fd}")) for fd in os.listdir("/proc/self/fd") if os.path.lexists(f"/proc/self/fd/{fd}")],
        "hooks": [str(hook) for hook in (sys.excepthook, sys.unraisablehook, threading.excepthook, sys.displayhook, sys.stdout, sys.stderr)],
        "settings": [sys.getswitchinterval(), sys.getrecursionlimit(), str(warnings.filters), sys.path, str(sys.meta_path)],
    }

for name in sys.argv[2:]:
    importlib.import_module(name)
before = look()
importlib.import_module(sys.argv[1])
after = look()
print(json.dumps({name: [before[name], after[name]] for name in before if before[name] != after[name]}))
"""


#: As this process was started: what an import into it may have changed is not handed on.
ENVIRONMENT = dict(entry.split("=", 1) for entry in pathlib.Path("/proc/self/environ").read_text().split("\0") if "=" in entry)


@pytest.mark.parametrize("face", FACES)
def test_importing_has_no_effect(face: str) -> None:
    command = [sys.executable, "-c", LOOK_TWICE, face.partition(",")[0], *FACES[face]]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60, env=ENVIRONMENT)
    assert (run.returncode, run.stderr) == (0, "")
    assert json.loads(run.stdout) == {}  # all that it says is what has changed


def test_pccl_needs_neither_torch_nor_numpy_nor_what_is_slow_to_import() -> None:
    code = "import sys, pccl; print(*(set(sys.modules) & {'torch', 'numpy', 'ml_dtypes', 'asyncio', 'logging', 'multiprocessing', 'argparse'}))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []
