"""torch's reduce operators as the engine's, for each type of element.

Integers: AVG truncates towards zero.  Bool is a logical type, as Gloo treats it: SUM and MAX are "or", PRODUCT and MIN "and", BXOR "exactly an
odd number"; results are 0 and 1.  Complex numbers are reduced as pairs of real ones, of which only sums make sense.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any, Callable, NamedTuple, Optional

import torch

from pccl.engine import Operation, World
from pccl.types import DataType, ReduceOp

_BY_NAME = {
    "SUM": ReduceOp.SUM, "AVG": ReduceOp.AVG, "PRODUCT": ReduceOp.PROD, "MIN": ReduceOp.MIN, "MAX": ReduceOp.MAX,
    "BAND": ReduceOp.BIT_AND, "BOR": ReduceOp.BIT_OR, "BXOR": ReduceOp.BIT_XOR,
}
_BOOLEANS = {**_BY_NAME, "PRODUCT": ReduceOp.MIN}
_OF_PAIRS = ("SUM", "AVG", "PREMUL_SUM")
_BITS = (ReduceOp.BIT_AND, ReduceOp.BIT_OR, ReduceOp.BIT_XOR)


class Reduction(NamedTuple):
    """How to reduce: by an operator, or as a sum of inputs times `factor`; elements seen as those of `view`, if that is not None."""

    op: ReduceOp
    factor: Optional[float] = None
    view: Optional[torch.dtype] = None

    def seen(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor with the elements that are reduced."""
        return tensor if self.view is None else tensor.view(self.view)

    def launch(self, world: World, dtype: torch.dtype, launch: Callable[[Any], Operation]) -> Operation:
        """Calls `launch` with the engine's operator."""
        if self.factor is None:
            return launch(self.op)
        with world.premul_sum(self.factor, DataType.from_torch_dtype(dtype)) as op:
            return launch(op)


_PLAIN = {op: Reduction(op) for op in ReduceOp}
_COMPUTED = {datatype.to_torch_dtype() for datatype in DataType}


def reduction(op: Any, dtype: torch.dtype) -> Reduction:
    """The meaning of `op`, of torch's options or an operator itself, for elements of `dtype`.  ValueError: it has none."""
    name = getattr(getattr(op, "op", op), "name", "")
    if dtype not in _COMPUTED and not (dtype.is_complex and name in _OF_PAIRS):
        raise ValueError(f"pccl: ReduceOp.{name} is not for {dtype}; convert the tensor")
    if name == "PREMUL_SUM":
        factor = op.factor
        if isinstance(factor, torch.Tensor) and factor.numel() != 1:
            raise ValueError(f"pccl: the factor of PREMUL_SUM has {factor.numel()} elements; pass one number")
        return Reduction(ReduceOp.SUM, float(factor))
    if dtype is torch.bool:
        if name == "AVG":
            raise ValueError("pccl: ReduceOp.AVG of bool is no bool; convert the tensor")
        if name == "BXOR":
            return Reduction(ReduceOp.BIT_XOR, view=torch.uint8)
        return _PLAIN[_named(op, name, _BOOLEANS)]
    found = _named(op, name, _BY_NAME)
    if found in _BITS and dtype.is_floating_point:
        raise ValueError(f"pccl: ReduceOp.{name} is for integers, not for {dtype}; convert the tensor")
    return _PLAIN[found]


def _named(op: Any, name: str, operators: dict[str, ReduceOp]) -> ReduceOp:
    try:
        return operators[name]
    except KeyError:
        raise ValueError(f"pccl: {op!r} is none of {', '.join(_BY_NAME)}, PREMUL_SUM; pass a torch.distributed.ReduceOp") from None
