"""What `pip install` leaves: the version that the headers have, and the programs by their names."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import importlib.metadata
import pathlib
import re
import signal
import subprocess
import sysconfig

import pytest

import pccl
from support.programs import Program

ROOT = pathlib.Path(__file__).resolve().parents[3]


@pytest.fixture
def distribution() -> importlib.metadata.Distribution:
    try:
        return importlib.metadata.distribution("libpccl")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the package is not installed: it is imported where it was built")


def version_of_the_headers() -> str:
    return ".".join(re.findall(r"^#define PCCL_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", (ROOT / "include" / "pccl.h").read_text(), re.M))


def test_the_version_is_that_of_the_headers() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", pccl.__version__) and pccl.__version__ == version_of_the_headers()


def test_pip_knows_the_version_and_what_is_required(distribution: importlib.metadata.Distribution) -> None:
    assert distribution.version == version_of_the_headers()
    assert [line for line in distribution.requires or [] if "extra ==" not in line] == ["cffi>=1.15"]
    assert distribution.metadata["Requires-Python"] == ">=3.10"


def test_the_programs_are_on_path(distribution: importlib.metadata.Distribution) -> None:
    named = {entry.name: entry.value for entry in distribution.entry_points if entry.group == "console_scripts"}
    assert named == {"ccoip_master": "pccl.master:ccoip_master", "pccl_master": "pccl.master:main", "pccl": "pccl.command:main"}
    scripts = pathlib.Path(sysconfig.get_path("scripts"))
    said = subprocess.run([scripts / "ccoip_master", "--version"], capture_output=True, text=True, check=True).stdout
    assert said == f"ccoip_master {version_of_the_headers()}\n"
    said = subprocess.run([scripts / "pccl", "--version"], capture_output=True, text=True, check=True).stdout
    assert said.startswith(f"pccl {version_of_the_headers()}\ncompiler: ")
    for name, option in (("ccoip_master", "--listen"), ("pccl_master", "--listen-address")):
        with Program(scripts / name, option, "127.0.0.1:0") as program:
            address = program.until(f"{name}: listening at").rpartition(" ")[2]
            with pccl.Communicator(address) as communicator:
                communicator.connect()
            program.signal(signal.SIGTERM)
            program.succeeds()
