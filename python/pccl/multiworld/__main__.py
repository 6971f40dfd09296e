"""``python -m pccl.multiworld [--backend NAME] program.py ...``: runs a program written for MultiWorld's own package, unchanged.

The processes that the program starts have the same names.  `M8D_LOG_LEVEL` is the level of what is logged to standard output, as it is there; WARNING by default.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import argparse
import os
import runpy
import sys

from pccl.multiworld.compatibility import _BACKENDS, for_children, install, log_to_stdout


def main() -> None:
    """Runs the program in this process, as its main module."""
    parser = argparse.ArgumentParser(prog="python -m pccl.multiworld", description="Run a program written for MultiWorld, unchanged.")
    parser.add_argument("--backend", choices=_BACKENDS, help="take this back-end, whatever the program names")
    parser.add_argument("program", help="its file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its own arguments")
    options = parser.parse_args()
    log_to_stdout()
    install(options.backend)
    for_children(options.backend)
    sys.argv = [options.program, *options.arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(options.program))
    runpy.run_path(options.program, run_name="__main__")


if __name__ == "__main__":
    main()
