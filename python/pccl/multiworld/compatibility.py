"""The names of MultiWorld's own package for programs written for it, where a program asks for that; else nothing has them.

``python -m pccl.multiworld program.py`` runs a program unchanged; `install` does the same from inside.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import logging
import os
import pathlib
import sys
import types
from typing import Any, Optional

from pccl._native import lib
from pccl.multiworld.communicator import DEFAULT_WORLD_NAME, WorldCommunicator
from pccl.multiworld.errors import BrokenWorldException
from pccl.multiworld.manager import WorldManager

_BACKENDS = ("pccl", "gloo", "nccl")
_NAMES = str(pathlib.Path(__file__).with_name("names"))  # has a package multiworld
_BACKEND_OF_CHILDREN = "PCCL_MULTIWORLD_BACKEND"


def install(backend: Optional[str] = None) -> None:
    """From now on ``multiworld``, ``multiworld.manager`` and ``multiworld.communicator`` are this package, in this process.

    With `backend`, worlds are that back-end's whatever the program names.  RuntimeError: another package of that name is imported.
    """
    if backend is not None and backend not in _BACKENDS:
        raise ValueError(f"pccl: backend is {backend!r}; pass one of {', '.join(_BACKENDS)}, or None")
    there = sys.modules.get("multiworld")
    if there is not None and not hasattr(there, "__pccl__"):
        raise RuntimeError("pccl: another package multiworld is imported; call pccl.multiworld.install() before that")
    manager = WorldManager if backend is None else _manager_of(backend)
    package = _module("multiworld", {"__version__": _version(), "__path__": [], "__pccl__": True})
    package.manager = _module("multiworld.manager", {"WorldManager": manager})  # type: ignore[attr-defined]
    package.communicator = _module("multiworld.communicator", {  # type: ignore[attr-defined]
        "DEFAULT_WORLD_NAME": DEFAULT_WORLD_NAME, "WorldCommunicator": WorldCommunicator, "BrokenWorldException": BrokenWorldException,
    })


def for_children(backend: Optional[str]) -> None:
    """The same for the processes that this one starts: the names, and the back-end."""
    paths = os.environ.get("PYTHONPATH")
    if _NAMES not in (paths or "").split(os.pathsep):
        os.environ["PYTHONPATH"] = f"{_NAMES}{os.pathsep}{paths}" if paths else _NAMES
    if _NAMES not in sys.path:
        sys.path.append(_NAMES)  # which those of multiprocessing inherit
    os.environ.pop(_BACKEND_OF_CHILDREN, None)
    if backend is not None:
        os.environ[_BACKEND_OF_CHILDREN] = backend


def in_child() -> None:
    """Gives a child process the setup of the program's own process.  The child's first import of ``multiworld`` calls this."""
    log_to_stdout()
    install(os.environ.get(_BACKEND_OF_CHILDREN))


def log_to_stdout() -> None:
    """As the import of the original's package has it.  ValueError: M8D_LOG_LEVEL is none."""
    level = os.environ.get("M8D_LOG_LEVEL") or "WARNING"
    try:
        logging.basicConfig(stream=sys.stdout, level=level.upper())
    except ValueError:
        raise ValueError(f"pccl: M8D_LOG_LEVEL is {level!r}; write one of DEBUG, INFO, WARNING, ERROR and CRITICAL") from None


def _manager_of(backend: str) -> type[WorldManager]:
    class BoundWorldManager(WorldManager):
        """All worlds by one back-end."""

        def _formation(self, name: str, rank: int, size: int, _: str, *rest: Any) -> Any:
            return super()._formation(name, rank, size, backend, *rest)

    return BoundWorldManager


def _module(name: str, contents: dict[str, Any]) -> types.ModuleType:
    module = types.ModuleType(name, f"{name} of pccl.multiworld, for programs written for MultiWorld's own package.")
    module.__dict__.update(contents)
    sys.modules[name] = module
    return module


def _version() -> str:
    return f"{lib.PCCL_VERSION_MAJOR}.{lib.PCCL_VERSION_MINOR}.{lib.PCCL_VERSION_PATCH}"
