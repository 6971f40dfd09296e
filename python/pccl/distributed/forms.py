"""The forms in which torch's process groups are called, and the one form that `calls` has.

torch takes the operands by position or by name, then either an options object or the operator, root and timeout themselves.  One operand
may stand for a list of one.  All forms of a call differ by the types of what they pass, so one function reads all of them.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from datetime import timedelta
from typing import Any, Callable, NamedTuple, Optional, Sequence

import torch
import torch.distributed as dist

from pccl.distributed import calls
from pccl.distributed.work import Call

_Build = Callable[..., Call]
_UNSET = timedelta(milliseconds=-1)  # as torch's options have it


class CallOptions(NamedTuple):
    """The fields of torch's options objects, for a call without one."""

    reduceOp: Any  # noqa: N815 - torch's names
    rootRank: int = 0  # noqa: N815
    timeout: timedelta = _UNSET
    asyncOp: bool = True  # noqa: N815


class Form(NamedTuple):
    """How a function of `calls` is called: its operands' names, and which of them may be a tensor in place of a list of one."""

    operands: tuple[tuple[str, ...], ...]
    lists: Callable[[list[Any]], list[Any]] = lambda operands: operands
    takes: tuple[str, ...] = ("timeout",)  #: beside the operands, in place of an options object


def _gathered(operands: list[Any]) -> list[Any]:
    outputs, tensor = operands
    return [[outputs], [tensor]] if isinstance(tensor, torch.Tensor) else operands


def _scattered(operands: list[Any]) -> list[Any]:
    output, inputs = operands
    return [[output], [inputs]] if isinstance(output, torch.Tensor) else operands


_SINGLE = Form((("output", "outputTensor", "output_tensor"), ("input", "inputTensor", "input_tensor")))
_SINGLES = Form((("outputs",), ("inputs",)))
_LISTS = Form((("output_tensors", "output_tensor"), ("input_tensors", "input_tensor")))
_MESSAGE = Form((("tensors",), ("dstRank", "srcRank"), ("tag",)), takes=())

_FORMS: dict[_Build, Form] = {
    calls.all_reduce: Form((("tensors", "tensor"),), takes=("op", "timeout")),
    calls.all_reduce_coalesced: Form((("tensors",),)),
    calls.broadcast: Form((("tensors", "tensor"),), takes=("root", "timeout")),
    calls.reduce: Form((("tensors", "tensor"),), takes=("root", "op", "timeout")),
    calls.all_gather: _LISTS._replace(lists=_gathered),
    calls.all_gather_coalesced: Form((("output_lists",), ("input_list",))),
    calls.all_gather_single: _SINGLE,
    calls.all_gather_single_coalesced: _SINGLES,
    calls.gather: _LISTS._replace(lists=_gathered, takes=("root", "timeout")),
    calls.gather_single: _SINGLE._replace(takes=("root", "timeout")),
    calls.scatter: _LISTS._replace(lists=_scattered, takes=("root", "timeout")),
    calls.reduce_scatter: Form(
        (("output_tensors", "output"), ("input_tensors", "input", "input_tensor")), _scattered, ("op", "timeout")
    ),
    calls.reduce_scatter_single: _SINGLE._replace(takes=("op", "timeout")),
    calls.reduce_scatter_single_coalesced: _SINGLES,
    calls.all_to_all: _LISTS,
    calls.all_to_all_single: Form((*_SINGLE.operands, ("output_split_sizes",), ("input_split_sizes",))),
    calls.send: _MESSAGE,
    calls.receive: _MESSAGE,
    calls.receive_any_source: Form((("tensors",), ("tag",)), takes=()),
    calls.barrier: Form(()),
}


def arguments_of(build: _Build, positional: Sequence[Any], named: dict[str, Any]) -> tuple[Any, ...]:
    """The arguments for `build`, after the place.  A function outside of `calls` has one form.  TypeError: there is no such form."""
    form = _FORMS.get(build)
    if form is None:
        return tuple(positional)
    count = len(form.operands)
    name = build.__name__
    rest = dict(named)
    operands = list(positional[:count])
    for names in form.operands[len(operands):]:
        key = next((one for one in names if one in rest), None)
        if key is None and names == ("tag",):
            rest[key := "tag"] = 0
        if key is None:
            raise TypeError(f"pccl: {name} is called without {names[0]}; pass it")
        operands.append(rest.pop(key))
    opts = _options(name, form, positional[count:], rest)
    operands = form.lists(operands)
    return (*operands, opts) if form.takes else tuple(operands)


def _options(name: str, form: Form, positional: Sequence[Any], named: dict[str, Any]) -> Any:
    said: dict[str, Any] = {}
    for value in positional:
        key = _kind_of(value)
        if key is not None:
            _say(name, said, key, value)
    for key, value in named.items():
        if value is not None:
            _say(name, said, key, value)
    wrong = [key for key in said if key not in (*form.takes, "opts")]
    if wrong or (not form.takes and said):
        takes = ", ".join((*form.takes, "opts")) if form.takes else "nothing more"
        raise TypeError(f"pccl: {name} has no parameter {', '.join(wrong or said)}; beside its operands it takes {takes}")
    opts = said.pop("opts", None)
    if opts is not None:
        if said:
            raise TypeError(f"pccl: {name} was passed both opts and {', '.join(said)}; pass one of these")
        return opts
    return CallOptions(said.get("op", dist.ReduceOp.SUM), said.get("root", 0), said.get("timeout", _UNSET))


def _say(name: str, said: dict[str, Any], key: str, value: Any) -> None:
    if key in said:
        raise TypeError(f"pccl: {name} was passed {key} twice; pass one")
    said[key] = value


def _kind_of(value: Any) -> Optional[str]:
    """Which parameter a value is that was passed by position; None: it is a default."""
    if value is None:
        return None
    if isinstance(value, timedelta):
        return "timeout"
    if hasattr(value, "timeout") and hasattr(value, "asyncOp"):
        return "opts"
    return "root" if isinstance(value, int) and not hasattr(value, "name") else "op"
