"""Calls of a back-end's methods, with the keywords that each takes."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import inspect
from typing import Any, Optional

from pccl.comms.options import Limits


def keywords_of(function: Any) -> frozenset[str]:
    """Which of `hints` and `timeout` a function takes."""
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return frozenset()
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return frozenset(("hints", "timeout"))
    return frozenset(name for name in ("hints", "timeout") if name in parameters)


class Caller:
    """Calls by name; the parameters of each method are read once."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self._takes: dict[str, frozenset[str]] = {}

    def __call__(self, name: str, arguments: tuple[Any, ...], limits: Limits, more: Optional[dict[str, Any]] = None) -> Any:
        function = getattr(self._backend, name)
        takes = self._takes.get(name)
        if takes is None:
            takes = self._takes[name] = keywords_of(function)
        keywords: dict[str, Any] = dict(more or {})
        if "timeout" in takes:
            keywords["timeout"] = limits.seconds
        if "hints" in takes:
            keywords["hints"] = limits.hints
        return function(*arguments, **keywords)
