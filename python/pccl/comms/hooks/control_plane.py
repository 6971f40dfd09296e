"""Answers in torch's control plane, which its debug server asks: whether this process is healthy, and what its recorder has.

They are POST requests to ``/handler/NAME`` of torch's worker server: `torchcomms_health_check`, `torchcomms_fr_trace_json` with the
parameters `onlyactive` and `includecollectives`, and `torchcomms_fr_dump_file`.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import ctypes
import json
import sys
from typing import Any, Callable

from pccl.comms import environment

_served = False


def serve() -> None:
    """Has torch's control plane know them, once; nothing where `torch.distributed` is not imported."""
    global _served
    c10d: Any = getattr(sys.modules.get("torch._C"), "_distributed_c10d", None)
    if _served or "torch.distributed" not in sys.modules or not hasattr(c10d, "_register_handler"):
        return
    _served = True
    for name, answer in (
        ("torchcomms_health_check", _health), ("torchcomms_fr_trace_json", _trace), ("torchcomms_fr_dump_file", _dumped),
    ):
        handler = _handler(answer)
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(handler))  # torch lets go of it when there is no interpreter any more
        try:
            c10d._register_handler(name, handler)
        except RuntimeError:  # a program has one of that name
            pass


def _handler(answer: Callable[[Callable[[str], str]], Any]) -> Callable[[Any, Any], None]:
    def handle(request: Any, response: Any) -> None:
        try:
            content, status = answer(request.get_param), 200
        except Exception as error:  # torch would end the process
            content, status = {"error": f"{type(error).__name__}: {error}"}, 500
        response.set_content(json.dumps(content), "application/json")
        response.set_status(status)

    return handle


def _health(parameter: Callable[[str], str]) -> Any:
    from pccl.comms.hooks.fr import is_healthy

    return {"healthy": is_healthy()}


def _trace(parameter: Callable[[str], str]) -> Any:
    from pccl.comms.hooks.fr import FlightRecorderHook

    dump = FlightRecorderHook().dump_for_analyser(include_completed=not _flag(parameter, "onlyactive", False))
    if not _flag(parameter, "includecollectives", True):
        del dump["entries"]
    return dump


def _dumped(parameter: Callable[[str], str]) -> Any:
    from pccl.comms.hooks.fr import FlightRecorderHook

    return {"file": FlightRecorderHook().dump_file(environment.rank_and_size()[0])}


def _flag(parameter: Callable[[str], str], name: str, default: bool) -> bool:
    value = parameter(name)
    return default if not value else environment.as_flag(value, f"parameter {name}")
