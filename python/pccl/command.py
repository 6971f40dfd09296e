"""``pccl``: the command that the package carries, with `pccl bench` and `pccl --version`."""
# SPDX-License-Identifier: MIT
import os
import sys


def main() -> None:
    """Runs the program in place of this process.  RuntimeError: the package was installed without it."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "pccl")
    if not os.access(program, os.X_OK):
        raise RuntimeError(f"pccl: there is no program {program}; install libpccl again")
    os.execv(program, [program, *sys.argv[1:]])
