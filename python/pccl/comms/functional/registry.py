"""The operators of the library `torchcomms`: ``torchcomm_<method>`` returns what the method would write, ``torchcomm_<method>_`` writes it.

Arguments are the method's, with an operator as its number and factor.  The communicator's handle and `async_op` follow; with `async_op`
the result has to pass through ``torchcomm_wait_tensors``.  Then come the timeout in seconds, 0 for the communicator's, and hints as keys
and values in turn.  Operators with a result are effects: none is removed or reordered, since ranks could not agree on that.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import importlib
from typing import Any, Callable, Sequence

import torch

from pccl.comms import handles
from pccl.comms.batch import P2POp, P2POpType
from pccl.comms.functional import gradients, pending
from pccl.comms.options import BatchP2POptions
from pccl.comms.reduce_op import RedOpType, ReduceOp

LIBRARY = "torchcomms"

#: Parameters of each method and what they are: T the tensor that is written, X one that is read too, L a list that is written,
#: t and l what is only read, i a number, n a list of numbers, o an operator.
METHODS: dict[str, dict[str, str]] = {
    "send": {"tensor": "t", "dst": "i"},
    "recv": {"tensor": "T", "src": "i"},
    "broadcast": {"tensor": "X", "root": "i"},
    "all_reduce": {"tensor": "X", "op": "o"},
    "reduce": {"tensor": "X", "root": "i", "op": "o"},
    "all_gather": {"tensor_list": "L", "tensor": "t"},
    "all_gather_v": {"tensor_list": "L", "tensor": "t"},
    "all_gather_single": {"output": "T", "input": "t"},
    "reduce_scatter": {"output": "T", "input_list": "l", "op": "o"},
    "reduce_scatter_v": {"output": "T", "input_list": "l", "op": "o"},
    "reduce_scatter_single": {"output": "T", "input": "t", "op": "o"},
    "all_to_all_single": {"output": "T", "input": "t"},
    "all_to_all_v_single": {"output": "T", "input": "t", "output_split_sizes": "n", "input_split_sizes": "n"},
    "all_to_all": {"output_tensor_list": "L", "input_tensor_list": "l"},
    "barrier": {},
    "scatter": {"output_tensor": "T", "input_tensor_list": "l", "root": "i"},
    "gather": {"output_tensor_list": "L", "input_tensor": "t", "root": "i"},
    "gather_single": {"output": "T", "input": "t", "root": "i"},
}

_TYPES = {"T": "Tensor", "X": "Tensor", "t": "Tensor", "L": "Tensor[]", "l": "Tensor[]", "i": "int", "n": "int[]"}
_WRITTEN = {"T": "Tensor(a!)", "X": "Tensor(a!)", "L": "Tensor(a!)[]"}
_RESULTS = {"T": "Tensor", "X": "Tensor", "L": "Tensor[]"}

_library: Any = torch.library.Library(LIBRARY, "FRAGMENT")  # type: ignore[no-untyped-call]


def written(method: str) -> str:
    """The parameter that a method writes; empty: none."""
    return next((name for name, kind in METHODS[method].items() if kind in _WRITTEN), "")


def _schema(method: str, in_place: bool) -> str:
    types = {**_TYPES, **_WRITTEN} if in_place else _TYPES
    parameters = ["int op, float factor" if kind == "o" else f"{types[kind]} {name}" for name, kind in METHODS[method].items()]
    parameters += ["str comm", *([] if in_place else ["bool async_op"]), "float timeout", "str[] hints"]
    target = written(method)
    result = "()" if in_place or not target else _RESULTS[METHODS[method][target]]
    return f"({', '.join(parameters)}) -> {result}"


def _taken(method: str, values: Sequence[Any]) -> tuple[dict[str, Any], Sequence[Any]]:
    """Arguments of the method by name, and what follows them."""
    rest, taken = list(values), {}
    for name, kind in METHODS[method].items():
        taken[name] = rest.pop(0)
        if kind == "o":
            factor = rest.pop(0)
            taken[name] = ReduceOp.PREMUL_SUM(factor) if taken[name] == RedOpType.PREMUL_SUM else ReduceOp(RedOpType(taken[name]))
    return taken, rest


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
        taken, (comm, async_op, timeout, hints) = _taken(method, values)
        for name, kind in METHODS[method].items():
            if kind in "tl":  # memory of compiled programs is used anew when an operator has returned
                taken[name] = copied(taken[name]) if async_op else contiguous(taken[name])
        if not target:
            work = _call(method, taken, comm, async_op, timeout, hints)
            if async_op:
                pending.enter([], work)
            return None
        taken[target] = copied(taken[target])
        work = _call(method, taken, comm, async_op, timeout, hints)
        if async_op:
            pending.enter(taken[target], work)
        return taken[target]

    return run


def _in_place(method: str) -> Callable[..., None]:
    target = written(method)

    def run(*values: Any) -> None:
        taken, (comm, timeout, hints) = _taken(method, values)
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
            return None
        at = sum(2 if METHODS[method][name] == "o" else 1 for name in names[:names.index(target)])
        return _like(values[at])

    return fake


def _like(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_like(one) for one in value]
    return torch.empty_like(value, memory_format=torch.contiguous_format)


def _define(name: str, schema: str, run: Callable[..., Any], fake: Callable[..., Any], effect: bool) -> None:
    _library.define(name + schema)
    _library.impl(name, run, "CompositeExplicitAutograd")
    torch.library.register_fake(f"{LIBRARY}::{name}", fake, lib=_library)
    if effect:
        effects: Any = importlib.import_module("torch._higher_order_ops.effects")  # private: of this place alone
        effects._register_effectful_op(getattr(getattr(torch.ops, LIBRARY), name).default, effects._EffectType.ORDERED)


def _batch(sends: Any, dsts: Any, recvs: Any, srcs: Any, comm: str, async_op: bool, timeout: float, hints: Any) -> Any:
    got = copied(recvs)
    ops = [P2POp(P2POpType.SEND, tensor, peer) for tensor, peer in zip(copied(sends), dsts)]
    ops += [P2POp(P2POpType.RECV, tensor, peer) for tensor, peer in zip(got, srcs)]
    options = BatchP2POptions(dict(zip(hints[::2], hints[1::2])), timeout or None)
    work = handles.thing_of(comm)._issue_batch(ops, async_op, options)
    if async_op:
        pending.enter(got, work)
    return got


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
    _define(f"torchcomm_{_method}", _schema(_method, False), _functional(_method), _shapes(_method), True)
    if written(_method):
        gradients.register(_library, LIBRARY, _method, METHODS[_method])
        _define(f"torchcomm_{_method}_", _schema(_method, True), _in_place(_method), lambda *values: None, False)
_define("torchcomm_wait_tensors", "(Tensor[] tensors) -> Tensor[]", pending.waited, _like, True)
gradients.register_wait(_library, LIBRARY)
_define(
    "batchsendrecv_issue", "(Tensor[] sends, int[] dsts, Tensor[] recvs, int[] srcs, str comm, bool async_op, float timeout, str[] hints)"
    " -> Tensor[]", _batch, lambda sends, dsts, recvs, *rest: _like(recvs), True,
)
_define("torchcommwindow_put", "(Tensor tensor, int dst_rank, int target_offset_nelems, str window, float timeout) -> ()", _put, lambda *v: None, True)
_define("torchcommwindow_signal", "(int peer_rank, str window, float timeout) -> ()", _signal, lambda *v: None, True)
_define("torchcommwindow_wait_signal", "(int peer_rank, str window, float timeout) -> Tensor", _wait_signal, _part_of, True)
