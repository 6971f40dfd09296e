"""Two distributions have the import name pccl: this one, libpccl, and pypccl, the original's.

The folders of sys.path are read once, at the first import of pccl.  Nothing is imported for it.
"""
# SPDX-License-Identifier: MIT
import os
import sys
import warnings


def find() -> "str | None":
    """The folder where pypccl is installed, by its metadata; None without it."""
    for folder in sys.path:
        try:
            names = os.listdir(folder or ".")
        except OSError:
            continue
        if any(name.startswith("pypccl-") and name.endswith((".dist-info", ".egg-info")) for name in names):
            return folder or os.getcwd()
    return None


def warn(version: str, package: str) -> None:
    """Says which of the two is used, if both are there."""
    other = find()
    if other is None:
        return
    if os.path.realpath(other) == os.path.realpath(os.path.dirname(package)):
        remedy = "both write to the same folder, so run `pip uninstall pypccl`, then install libpccl again"
    else:
        remedy = "to keep one of them, run `pip uninstall pypccl` or `pip uninstall libpccl`"
    warnings.warn(f"pccl: libpccl {version} in {package} is used; pypccl in {other} has the same import name; {remedy}", stacklevel=3)
