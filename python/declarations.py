"""Writes the C source of the extension ``pccl._native`` out of the public headers.

    declarations.py INCLUDE OUTPUT [COMPILER]

cffi compiles every declaration of ``pccl.h`` and ``pccl_topology.h`` against the headers themselves (out of line, API mode): a
structure, a constant or a prototype that differs is refused when the extension is built.  The headers are read with the C
preprocessor, with empty system headers in their place, so that nothing of theirs is bound.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import pathlib
import re
import subprocess
import sys
import tempfile

import cffi

SYSTEM_HEADERS = ("stdbool.h", "stddef.h", "stdint.h")
OWN_HEADERS = ("ccoip_inet.h", "ccoip.h", "pccl.h", "pccl_topology.h")
NO_BINDING = ("PCCL_H", "PCCL_TOPOLOGY_H", "CCOIP_H", "CCOIP_INET_H", "PCCL_EXPORT", "PCCL_NULLABLE")


def declarations(include: pathlib.Path, compiler: str) -> str:
    """What the headers declare, in the form that cffi reads."""
    with tempfile.TemporaryDirectory() as empty:
        for name in SYSTEM_HEADERS:
            pathlib.Path(empty, name).touch()
        command = [compiler, "-E", "-P", "-nostdinc", "-I", empty, "-I", str(include), str(include / "pccl_topology.h")]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    text = text.replace('__attribute__((visibility("default")))', "")
    text = text.replace("INT32_MAX", str(2**31 - 1))
    return "\n".join(constants(include)) + "\n" + text


def constants(include: pathlib.Path) -> list[str]:
    """The macros that are numbers; their values are the compiler's to say."""
    pattern = re.compile(r"^#define ((?:PCCL|CCOIP)_[A-Z_]+) +\S", re.MULTILINE)
    names = [name for header in OWN_HEADERS for name in pattern.findall((include / header).read_text())]
    return [f"#define {name} ..." for name in names if name not in NO_BINDING]


def main(include: str, output: str, compiler: str = "cc") -> None:
    builder = cffi.FFI()
    builder.cdef(declarations(pathlib.Path(include), compiler))
    builder.set_source("pccl._native", "#include <pccl_topology.h>\n")
    builder.emit_c_code(output)


if __name__ == "__main__":
    main(*sys.argv[1:])
