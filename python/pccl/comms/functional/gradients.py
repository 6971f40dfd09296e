"""Gradients of the operators: a collective's is the one that sends each gradient back to where its value came from."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any, Callable, Mapping

import torch

from pccl.comms.reduce_op import RedOpType

SUM, AVG = int(RedOpType.SUM), int(RedOpType.AVG)


def _operator(name: str) -> Any:
    return getattr(torch.ops.torchcomms, f"torchcomm_{name}")


def _linear(name: str, op: int) -> None:
    if op not in (SUM, AVG):
        raise RuntimeError(f"{name}: there is no gradient for {RedOpType(op).name}; SUM and AVG have one")


def _all_reduce(ctx: Any, grad: Any) -> dict[str, Any]:
    _linear("all_reduce", ctx.given["op"])
    given = ctx.given
    return {"tensor": _operator("all_reduce")(grad.contiguous(), given["op"], given["factor"], given["comm"], False, given["timeout"], given["hints"])}


def _all_gather_single(ctx: Any, grad: Any) -> dict[str, Any]:
    given, shape = ctx.given, ctx.shapes["input"]
    back = _operator("reduce_scatter_single")(
        grad.new_empty(shape), grad.contiguous(), SUM, 1.0, given["comm"], False, given["timeout"], given["hints"]
    )
    return {"input": back}


def _reduce_scatter_single(ctx: Any, grad: Any) -> dict[str, Any]:
    _linear("reduce_scatter_single", ctx.given["op"])
    given, shape = ctx.given, ctx.shapes["input"]
    back = _operator("all_gather_single")(grad.new_empty(shape), grad.contiguous(), given["comm"], False, given["timeout"], given["hints"])
    if given["op"] == AVG:
        back = back * (grad.numel() / max(back.numel(), 1))
    return {"input": back}


def _all_to_all_single(ctx: Any, grad: Any) -> dict[str, Any]:
    given = ctx.given
    shape = ctx.shapes["input"]
    back = _operator("all_to_all_single")(grad.new_empty(shape), grad.contiguous(), given["comm"], False, given["timeout"], given["hints"])
    return {"input": back}


def _all_to_all_v_single(ctx: Any, grad: Any) -> dict[str, Any]:
    given, shape = ctx.given, ctx.shapes["input"]
    back = _operator("all_to_all_v_single")(
        grad.new_zeros(shape), grad.contiguous(), given["input_split_sizes"], given["output_split_sizes"], given["comm"], False,
        given["timeout"], given["hints"],
    )
    return {"input": back}


def _filled(grads: Any, shapes: Any) -> list[torch.Tensor]:
    """Gradients of a list; zeros for what was not used."""
    known = next(grad for grad in grads if grad is not None)
    return [known.new_zeros(shape) if grad is None else grad.contiguous() for grad, shape in zip(grads, shapes)]


def _all_to_all(ctx: Any, grads: Any) -> dict[str, Any]:
    given, shapes = ctx.given, ctx.shapes["input_tensor_list"]
    taken = _filled(grads, ctx.shapes["output_tensor_list"])
    outputs = [taken[0].new_empty(shape) for shape in shapes]
    back = _operator("all_to_all")(outputs, taken, given["comm"], False, given["timeout"], given["hints"])
    return {"input_tensor_list": back}


def _all_gather(ctx: Any, grads: Any) -> dict[str, Any]:
    given = ctx.given
    taken = _filled(grads, ctx.shapes["tensor_list"])
    output = taken[0].new_empty(ctx.shapes["tensor"])
    return {"tensor": _operator("reduce_scatter_v")(output, taken, SUM, 1.0, given["comm"], False, given["timeout"], given["hints"])}


def _reduce_scatter(ctx: Any, grad: Any) -> dict[str, Any]:
    _linear("reduce_scatter", ctx.given["op"])
    given, shapes = ctx.given, ctx.shapes["input_list"]
    outputs = [grad.new_empty(shape) for shape in shapes]
    back = _operator("all_gather_v")(outputs, grad.contiguous(), given["comm"], False, given["timeout"], given["hints"])
    return {"input_list": [one / len(shapes) for one in back] if given["op"] == AVG else back}


_BACKWARD: dict[str, Callable[..., dict[str, Any]]] = {
    "all_reduce": _all_reduce, "all_gather": _all_gather, "all_gather_v": _all_gather, "reduce_scatter": _reduce_scatter,
    "reduce_scatter_v": _reduce_scatter, "all_gather_single": _all_gather_single, "reduce_scatter_single": _reduce_scatter_single,
    "all_to_all_single": _all_to_all_single, "all_to_all_v_single": _all_to_all_v_single, "all_to_all": _all_to_all,
}


def register(library: Any, namespace: str, method: str, parameters: Mapping[str, str]) -> None:
    """The gradient of a method's operator; one that has none says so when it is asked for."""
    names: list[str] = []
    for name, kind in parameters.items():
        names += ["op", "factor"] if kind == "o" else [name]
    names += ["comm", "async_op", "timeout", "hints"]

    def setup(ctx: Any, inputs: Any, output: Any) -> None:
        given = dict(zip(names, inputs))
        tensors = {name for name, kind in parameters.items() if kind in "TXLtl"}
        ctx.given = {name: value for name, value in given.items() if name not in tensors}
        ctx.shapes = {
            name: [one.shape for one in given[name]] if isinstance(given[name], (list, tuple)) else given[name].shape for name in tensors
        }

    def backward(ctx: Any, *grads: Any) -> Any:
        if method not in _BACKWARD:
            raise RuntimeError(f"{method} has no gradient; {', '.join(_BACKWARD)} have one")
        found = _BACKWARD[method](ctx, grads[0])
        nothing: dict[str, Any] = {}
        if any(kind in "Ll" for kind in parameters.values()):  # torch wants then what is built like the arguments
            lists = {**ctx.shapes, "hints": ctx.given["hints"]}
            nothing = {name: [None] * len(value) for name, value in lists.items() if isinstance(value, (list, tuple))}
            nothing = {name: value for name, value in nothing.items() if parameters.get(name, "L") in "Ll"}
        return tuple(found.get(name, nothing.get(name)) for name in names)

    torch.library.register_autograd(f"{namespace}::torchcomm_{method}", backward, setup_context=setup, lib=library)


def register_wait(library: Any, namespace: str) -> None:
    """Of waiting: the gradient itself."""
    torch.library.register_autograd(
        f"{namespace}::torchcomm_wait_tensors", lambda ctx, grads: (list(grads),), setup_context=lambda ctx, inputs, output: None, lib=library
    )
