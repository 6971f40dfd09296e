"""Hooks, and recorders that use them: the flight recorder, a log of calls, a check for NaNs."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any

from pccl.comms.hooks.registry import OpName, RemovableHandle

__all__ = ["FlightRecorderHook", "NanCheckHook", "OpName", "RemovableHandle", "clog"]


def __getattr__(name: str) -> Any:
    """Recorders are loaded on use: they need communicators, which need the hooks' registry."""
    import importlib

    homes = {"FlightRecorderHook": "fr", "NanCheckHook": "nan_check", "clog": "call_log", "fr": "fr", "nan_check": "nan_check"}
    if name not in homes:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(f"pccl.comms.hooks.{homes[name]}")
    value = module if name in ("fr", "nan_check") else getattr(module, name)
    globals()[name] = value
    return value
