"""Lowerings of the operators for Inductor: it runs them in the order of the program.

Inductor's own lowering of operators with effects records their order under names of buffers, and its scheduler reads it under names of
operations (torch 2.13).  A wait could therefore come before a later call, and ranks would wait for each other for ever.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import importlib
import sys
from typing import Any, Callable

import torch
from torch.utils import _pytree as pytree

_operators: list[Any] = []
_lowered = 0


def enter(operator: Any) -> None:
    """Has `register` know an operator with effects."""
    _operators.append(operator)


def register() -> None:
    """Registers the lowerings that are missing, where a program has loaded Inductor.  It is called while torch traces an operator, because
    a program that compiles nothing need not load Inductor."""
    global _lowered
    if _lowered == len(_operators) or "torch._inductor" not in sys.modules:
        return
    fake: Any = importlib.import_module("torch._subclasses.fake_tensor")
    with fake.unset_fake_temporarily():
        lowering: Any = importlib.import_module("torch._inductor.lowering")
    for operator in _operators[_lowered:]:
        lowering.register_lowering(operator, type_promotion_kind=None)(_in_order(operator))
    _lowered = len(_operators)


def _in_order(operator: Any) -> Callable[..., Any]:
    """A call of the operator itself, behind the last operator with effects."""
    ir: Any = importlib.import_module("torch._inductor.ir")
    virtualized: Any = importlib.import_module("torch._inductor.virtualized")
    effects: Any = importlib.import_module("torch._higher_order_ops.effects")

    def lowered(*arguments: Any) -> Any:
        graph = virtualized.V.graph
        before = len(graph.operations)
        result = ir.FallbackKernel.create(operator, *arguments)
        last = graph.effectful_ops.get(effects._EffectType.ORDERED)
        if last is not None:
            for operation in graph.operations[before:]:
                graph.additional_star_deps[operation.get_operation_name()].add(last.get_name())
        return pytree.tree_map(lambda value: value.wrap_for_lowering() if isinstance(value, ir.IRNode) else value, result)

    return lowered
