"""Beside the original's distribution, which has the same import name, importing says which of the two is used."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import os
import pathlib
import subprocess
import sys

import pccl

PACKAGE = pathlib.Path(pccl.__file__).parent


def what_importing_says(*folders: pathlib.Path) -> str:
    paths = os.pathsep.join([str(PACKAGE.parent), *map(str, folders)])
    run = subprocess.run(
        [sys.executable, "-c", "import pccl; print('imported')"], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": paths}
    )
    assert run.stdout == "imported\n"
    return run.stderr


def test_without_the_original_nothing_is_said(tmp_path: pathlib.Path) -> None:
    (tmp_path / "pypccl_tools-1.0.dist-info").mkdir()
    assert what_importing_says(tmp_path) == ""


def test_both_are_named_with_their_folders_and_the_remedy(tmp_path: pathlib.Path) -> None:
    (tmp_path / "pypccl-1.0.0.dist-info").mkdir()
    said = what_importing_says(tmp_path)
    assert f"libpccl {pccl.__version__} in {PACKAGE} is used; pypccl in {tmp_path} has the same import name" in said
    assert "`pip uninstall pypccl`" in said and said.count("UserWarning") == 1


def test_in_one_folder_one_has_overwritten_files_of_the_other(tmp_path: pathlib.Path) -> None:
    (tmp_path / "pypccl-1.0.0.dist-info").mkdir()
    (tmp_path / "pccl").symlink_to(PACKAGE)
    run = subprocess.run(
        [sys.executable, "-c", "import pccl"], capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": str(tmp_path)}
    )
    assert "then install libpccl again" in run.stderr
