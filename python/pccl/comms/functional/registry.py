"""The operators of the library `torchcomms`: ``torchcomm_<method>`` returns what the method would write, ``torchcomm_<method>_`` writes it.

Arguments are the method's, with an operator as its number and factor.  The communicator's handle and `async_op` follow; with `async_op`
the result has to pass through ``torchcomm_wait_tensors``, or is filled by ``torchcomm_wait_tensors_``.  Then come the timeout in seconds,
0 for the communicator's, and hints as keys and values in turn.  An operator whose method writes no tensor, or an empty list, returns a
token, so that this work alone can be waited for.  Operators with a result are effects: none is removed or reordered, since ranks could not
agree on that.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import importlib
from typing import Any, Callable, Sequence

import torch

from pccl.comms import handles
from pccl.comms.batch import P2POp, P2POpType
from pccl.comms.functional import gradients, inductor_lowering, pending
from pccl.comms.functional.param_parsing import METHODS, parsed, schema, written
from pccl.comms.options import BatchP2POptions

LIBRARY = "torchcomms"

_library: Any = torch.library.Library(LIBRARY, "FRAGMENT")  # type: ignore[no-untyped-call]


def _call(method: str, taken: dict[str, Any], comm: str, async_op: bool, timeout: float, hints: Sequence[str]) -> Any:
    return getattr(handles.thing_of(comm), method)(
        *taken.values(), async_op, hints=dict(zip(hints[::2], hints[1::2])), timeout=timeout or None
    )


def copied(value: Any) -> Any:
    """A copy of a tensor, or of each in a list, one element behind the other."""
    return [copied(one) for one in value] if isinstance(value, (list, tuple)) else value.clone(memory_format=torch.contiguous_format)


def contiguous(value: Any) -> Any:
    """As it is where its elements lie so, else a copy."""
    return [one.contiguous() for one in value] if isinstance(value, (list, tuple)) else value.contiguous()


def _functional(method: str) -> Callable[..., Any]:
    target = written(method)

    def run(*values: Any) -> Any:
        taken, (comm, async_op, timeout, hints) = parsed(method, values)
        for name, kind in METHODS[method].items():
            if kind in "tl":  # memory of compiled programs is used anew when an operator has returned
                taken[name] = copied(taken[name]) if async_op else contiguous(taken[name])
        if target:
            taken[target] = copied(taken[target])
        work = _call(method, taken, comm, async_op, timeout, hints)
        return _results(taken[target] if target else pending.token(), work, async_op)

    return run


def _results(results: Any, work: Any, async_op: bool) -> Any:
    """The value that an operator returns: the results, or placeholders for them; a token where there are none."""
    if isinstance(results, list) and not results:
        results = [pending.token()]
    return pending.enter(results, work) if async_op else results


def _in_place(method: str) -> Callable[..., None]:
    target = written(method)

    def run(*values: Any) -> None:
        taken, (comm, timeout, hints) = parsed(method, values)
        given = taken[target]
        for name, kind in METHODS[method].items():
            if kind in "TXLtl":
                taken[name] = contiguous(taken[name])
        _call(method, taken, comm, False, timeout, hints)
        for tensor, result in zip(*([one] if isinstance(one, torch.Tensor) else one for one in (given, taken[target]))):
            if tensor is not result:
                tensor.copy_(result)

    return run


def _shapes(method: str) -> Callable[..., Any]:
    names, target = list(METHODS[method]), written(method)

    def fake(*values: Any) -> Any:
        if not target:
            return _token()
        at = sum(2 if METHODS[method][name] == "o" else 1 for name in names[:names.index(target)])
        return _results_like(values[at])

    return fake


def _token() -> torch.Tensor:
    return torch.empty(1, dtype=torch.uint8)


def _results_like(value: Any) -> Any:
    return _like(value) if isinstance(value, torch.Tensor) or value else [_token()]


def _like(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_like(one) for one in value]
    return torch.empty_like(value, memory_format=torch.contiguous_format)


def _define(name: str, signature: str, run: Callable[..., Any], fake: Callable[..., Any], effect: bool) -> None:
    def traced(*values: Any) -> Any:
        inductor_lowering.register()
        return fake(*values)

    _library.define(name + signature)
    _library.impl(name, run, "CompositeExplicitAutograd")
    torch.library.register_fake(f"{LIBRARY}::{name}", traced, lib=_library)
    if effect:
        operator = getattr(getattr(torch.ops, LIBRARY), name).default
        effects: Any = importlib.import_module("torch._higher_order_ops.effects")  # private: of this folder alone
        effects._register_effectful_op(operator, effects._EffectType.ORDERED)
        inductor_lowering.enter(operator)


def _batch(sends: Any, dsts: Any, recvs: Any, srcs: Any, comm: str, async_op: bool, timeout: float, hints: Any) -> Any:
    got = copied(recvs)
    ops = [P2POp(P2POpType.SEND, tensor, peer) for tensor, peer in zip(copied(sends), dsts)]
    ops += [P2POp(P2POpType.RECV, tensor, peer) for tensor, peer in zip(got, srcs)]
    options = BatchP2POptions(dict(zip(hints[::2], hints[1::2])), timeout or None)
    return _results(got, handles.thing_of(comm)._issue_batch(ops, async_op, options), async_op)


def _wait_in_place(tensors: Sequence[torch.Tensor]) -> None:
    """By the operator that is an effect, and copies: compiled programs see what is written."""
    for tensor, value in zip(tensors, torch.ops.torchcomms.torchcomm_wait_tensors(tensors)):
        tensor.copy_(value)


def _put(tensor: torch.Tensor, dst_rank: int, target_offset_nelems: int, window: str, timeout: float) -> None:
    handles.thing_of(window).put(tensor.contiguous(), dst_rank, target_offset_nelems, timeout=timeout or None)


def _signal(peer_rank: int, window: str, timeout: float) -> None:
    handles.thing_of(window).signal(peer_rank, timeout=timeout or None)


def _wait_signal(peer_rank: int, window: str, timeout: float) -> torch.Tensor:
    """This rank's part, as it is then: programs that are compiled cannot know that it has changed."""
    of_window = handles.thing_of(window)
    of_window.wait_signal(peer_rank, timeout=timeout or None)
    return copied(of_window._tensor)  # type: ignore[no-any-return]


def _part_of(peer_rank: int, window: str, timeout: float) -> torch.Tensor:
    tensor = handles.thing_of(window)._tensor
    return torch.empty(tensor.shape, dtype=tensor.dtype)


for _method in METHODS:
    _define(f"torchcomm_{_method}", schema(_method, False), _functional(_method), _shapes(_method), True)
    if written(_method):
        gradients.register(_library, LIBRARY, _method, METHODS[_method])
        _define(f"torchcomm_{_method}_", schema(_method, True), _in_place(_method), lambda *values: None, False)
_define("torchcomm_wait_tensors", "(Tensor[] tensors) -> Tensor[]", pending.waited, _like, True)
_library.define("torchcomm_wait_tensors_(Tensor(a!)[] tensors) -> ()")
_library.impl("torchcomm_wait_tensors_", _wait_in_place, "CompositeImplicitAutograd")
gradients.register_wait(_library, LIBRARY)
_define(
    "batchsendrecv_issue", "(Tensor[] sends, int[] dsts, Tensor[] recvs, int[] srcs, str comm, bool async_op, float timeout, str[] hints)"
    " -> Tensor[]", _batch, lambda sends, dsts, recvs, *rest: _results_like(recvs), True,
)
_define("torchcommwindow_put", "(Tensor tensor, int dst_rank, int target_offset_nelems, str window, float timeout) -> ()", _put, lambda *v: None, True)
_define("torchcommwindow_signal", "(int peer_rank, str window, float timeout) -> ()", _signal, lambda *v: None, True)
_define("torchcommwindow_wait_signal", "(int peer_rank, str window, float timeout) -> Tensor", _wait_signal, _part_of, True)
