"""Methods of communicators, windows and batches where torch traces them: operators, and copies into what the method writes.

So the graph has nothing but functions in it, with gradients, and torch's passes drop copies that are not needed.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import functools
from typing import Any, Callable

import torch

from pccl.comms.batch import BatchSendRecv, P2POpType
from pccl.comms.communicator import TorchComm
from pccl.comms.functional import registry
from pccl.comms.options import as_seconds
from pccl.comms.window import TorchCommWindow

_COMMON = ("async_op", "hints", "timeout")


class TracedWork:
    """The result of a traced call: `wait` has the values in their place.  A call that is not waited for has them nowhere."""

    def __init__(self, targets: Any, results: Any, over: bool) -> None:
        self._targets, self._results, self._over = targets, results, over

    def wait(self) -> None:
        """Waits."""
        if not self._over:
            self._over = True
            for target, result in zip(self._targets, torch.ops.torchcomms.torchcomm_wait_tensors(self._results)):
                target.copy_(result)

    wait_blocking = wait

    def is_completed(self) -> bool:
        """Whether it was waited for."""
        return self._over


_patched = False


def patch() -> None:
    """Has torch trace the methods as operators from now on; elsewhere they are what they were.  The second time nothing."""
    global _patched
    if _patched:
        return
    _patched = True
    for method in registry.METHODS:
        setattr(TorchComm, method, _either(getattr(TorchComm, method), _operation(method)))
    BatchSendRecv.issue = _either(BatchSendRecv.issue, _issue)  # type: ignore[method-assign]
    for name, traced in (("put", _put), ("signal", _signal), ("wait_signal", _wait_signal)):
        setattr(TorchCommWindow, name, _either(getattr(TorchCommWindow, name), traced))


def _either(plain: Callable[..., Any], traced: Callable[..., Any]) -> Any:
    @functools.wraps(plain)
    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        if torch.compiler.is_compiling():
            return traced(self, *arguments, **named)
        return plain(self, *arguments, **named)

    return method


def _limits(given: dict[str, Any]) -> tuple[float, list[str]]:
    """Timeout and hints as operators take them."""
    options = given.get("options")
    timeout = given.get("timeout")
    hints = given.get("hints")
    if options is not None:
        timeout, hints = timeout or options.timeout, hints or options.hints
    flat: list[str] = []
    for key, value in (hints or {}).items():
        flat += [key, value]
    return as_seconds(timeout) or 0.0, flat


def _operation(method: str) -> Callable[..., Any]:
    parameters = registry.METHODS[method]
    names = (*parameters, *_COMMON)
    kinds = tuple(parameters.items())
    target_name = registry.written(method)
    operator: Any = getattr(torch.ops.torchcomms, f"torchcomm_{method}").default

    def traced(self: Any, *arguments: Any, **named: Any) -> TracedWork:
        given: dict[str, Any] = {}
        for name, value in zip(names, arguments):
            given[name] = value
        for name, value in named.items():
            given[name] = value
        seconds, hints = _limits(given)
        values: list[Any] = []
        for name, kind in kinds:
            value = given[name]
            if kind == "o":
                values += [int(value.type), float(value.factor or 1.0)]
            elif kind in "Ll":
                values.append([] if value is None else list(value))
            elif kind == "n":
                values.append(list(value))
            else:
                values.append(value)
        async_op = bool(given.get("async_op", False))
        result = operator(*values, self._handle, async_op, seconds, hints)
        if not target_name:
            return TracedWork([], [], not async_op)
        target = given[target_name]
        targets = [target] if isinstance(target, torch.Tensor) else list(target or [])
        results = [result] if isinstance(result, torch.Tensor) else list(result)
        return _outcome(targets, results, async_op)

    return traced


def _outcome(targets: Any, results: Any, async_op: bool) -> TracedWork:
    if not async_op:
        for one, value in zip(targets, results):
            one.copy_(value)
    return TracedWork(targets, results, not async_op)


def _issue(self: BatchSendRecv, async_op: bool = False, options: Any = None) -> TracedWork:
    seconds, hints = _limits({"options": options})
    sends, dsts, recvs, srcs = [], [], [], []
    for op in self.ops:
        if op.type is P2POpType.SEND:
            sends.append(op.tensor)
            dsts.append(op.peer)
        else:
            recvs.append(op.tensor)
            srcs.append(op.peer)
    comm: Any = self._comm
    got = torch.ops.torchcomms.batchsendrecv_issue(sends, dsts, recvs, srcs, comm._handle, async_op, seconds, hints)
    return _outcome(recvs, got, async_op)


def _put(self: Any, tensor: Any, dst_rank: int, target_offset_nelems: int, async_op: bool = False, **named: Any) -> TracedWork:
    torch.ops.torchcomms.torchcommwindow_put(tensor, dst_rank, target_offset_nelems, self._handle, _limits(named)[0])
    return TracedWork([], [], True)


def _signal(self: Any, peer_rank: int, async_op: bool = False, **named: Any) -> TracedWork:
    torch.ops.torchcomms.torchcommwindow_signal(peer_rank, self._handle, _limits(named)[0])
    return TracedWork([], [], True)


def _wait_signal(self: Any, peer_rank: int, async_op: bool = False, **named: Any) -> TracedWork:
    result = torch.ops.torchcomms.torchcommwindow_wait_signal(peer_rank, self._handle, _limits(named)[0])
    self._tensor.copy_(result)
    return TracedWork([], [], True)
