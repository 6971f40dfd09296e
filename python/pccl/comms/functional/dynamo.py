"""Methods of communicators, windows and batches where torch traces them: operators, and copies into what the method writes.

So the graph has nothing but functions in it, with gradients, and torch's passes drop copies that are not needed.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import functools
from typing import Any, Callable

import torch

from pccl.comms.batch import P2POpType
from pccl.comms.communicator import TorchComm
from pccl.comms.functional import pending, registry  # noqa: F401 - has the operators
from pccl.comms.functional.param_parsing import METHODS, given, limits, operator_values, written
from pccl.comms.options import TimeoutLike
from pccl.comms.window import TorchCommWindow


class TracedWork:
    """The work of a traced call.  `wait` writes the values; a call that is not waited for writes none."""

    def __init__(self, targets: Any, results: Any, over: bool) -> None:
        self._targets, self._results, self._over = targets, results, over

    def wait(self, timeout: TimeoutLike = None) -> None:
        """Waits until it has ended.  Its error is raised, each time."""
        if timeout is not None:
            raise RuntimeError("wait timeout not supported for a call that torch.compile has traced; pass timeout to the call")
        if not self._over:
            for target, result in zip(self._targets, torch.ops.torchcomms.torchcomm_wait_tensors(self._results)):
                target.copy_(result)
            self._over = True

    wait_blocking = wait

    def is_completed(self) -> bool:
        """Whether it has succeeded; inside of a compiled program, whether it was waited for."""
        return self._over or (not torch.compiler.is_compiling() and pending.completed(self._results))


_patched = False


def patch() -> None:
    """Has torch trace the methods as operators from now on; elsewhere they are what they were.  The second time nothing."""
    global _patched
    if _patched:
        return
    _patched = True
    for method in METHODS:
        setattr(TorchComm, method, _either(getattr(TorchComm, method), _operation(method)))
    TorchComm._issue_batch = _either(TorchComm._issue_batch, _issue_batch)  # type: ignore[method-assign]
    for name, traced in (("put", _put), ("signal", _signal), ("wait_signal", _wait_signal)):
        setattr(TorchCommWindow, name, _either(getattr(TorchCommWindow, name), traced))


def _either(plain: Callable[..., Any], traced: Callable[..., Any]) -> Any:
    @functools.wraps(plain)
    def method(self: Any, *arguments: Any, **named: Any) -> Any:
        if torch.compiler.is_compiling():
            return traced(self, *arguments, **named)
        return plain(self, *arguments, **named)

    return method


def _operation(method: str) -> Callable[..., Any]:
    target_name = written(method)
    operator: Any = getattr(torch.ops.torchcomms, f"torchcomm_{method}").default

    def traced(self: Any, *arguments: Any, **named: Any) -> TracedWork:
        found = given(method, arguments, named)
        async_op = bool(found.get("async_op", False))
        result = operator(*operator_values(method, found), self._handle, async_op, *limits(found))
        target = found[target_name] if target_name else None
        targets = [target] if isinstance(target, torch.Tensor) else list(target or [])
        results = [result] if isinstance(result, torch.Tensor) else list(result)
        return _outcome(targets, results, async_op)

    return traced


def _outcome(targets: Any, results: Any, async_op: bool) -> TracedWork:
    if not async_op:
        for one, value in zip(targets, results):
            one.copy_(value)
    return TracedWork(targets, results, not async_op)


def _issue_batch(self: Any, ops: Any, async_op: bool, options: Any) -> TracedWork:
    seconds, hints = limits({"options": options})
    sends, dsts, recvs, srcs = [], [], [], []
    for op in ops:
        if op.type is P2POpType.SEND:
            sends.append(op.tensor)
            dsts.append(op.peer)
        else:
            recvs.append(op.tensor)
            srcs.append(op.peer)
    got = torch.ops.torchcomms.batchsendrecv_issue(sends, dsts, recvs, srcs, self._handle, async_op, seconds, hints)
    return _outcome(recvs, got, async_op)


def _put(self: Any, tensor: Any, dst_rank: int, target_offset_nelems: int, async_op: bool = False, **named: Any) -> TracedWork:
    torch.ops.torchcomms.torchcommwindow_put(tensor, dst_rank, target_offset_nelems, self._handle, limits(named)[0])
    return TracedWork([], [], True)


def _signal(self: Any, peer_rank: int, async_op: bool = False, **named: Any) -> TracedWork:
    torch.ops.torchcomms.torchcommwindow_signal(peer_rank, self._handle, limits(named)[0])
    return TracedWork([], [], True)


def _wait_signal(self: Any, peer_rank: int, async_op: bool = False, **named: Any) -> TracedWork:
    result = torch.ops.torchcomms.torchcommwindow_wait_signal(peer_rank, self._handle, limits(named)[0])
    self._tensor.copy_(result)
    return TracedWork([], [], True)
