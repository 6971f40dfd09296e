"""How values are reduced: the eight operators, and sums of inputs times a factor."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from enum import IntEnum
from typing import Any, ClassVar, Optional


class RedOpType(IntEnum):
    """The kind of an operator."""

    SUM = 0
    PRODUCT = 1
    MIN = 2
    MAX = 3
    BAND = 4
    BOR = 5
    BXOR = 6
    PREMUL_SUM = 7
    AVG = 8


class ReduceOp:
    """An operator: one of the static ones, or `PREMUL_SUM` of a factor.  Immutable; equal by type and factor.

    AVG is the sum divided by the size; integers truncate toward zero.
    """

    __slots__ = ("_type", "_factor")
    __module__ = "pccl.comms"

    SUM: ClassVar["ReduceOp"]
    PRODUCT: ClassVar["ReduceOp"]
    MIN: ClassVar["ReduceOp"]
    MAX: ClassVar["ReduceOp"]
    BAND: ClassVar["ReduceOp"]
    BOR: ClassVar["ReduceOp"]
    BXOR: ClassVar["ReduceOp"]
    AVG: ClassVar["ReduceOp"]

    _type: RedOpType
    _factor: Optional[float]

    def __init__(self, opType: RedOpType) -> None:  # noqa: N803 - the interface's name
        kind = RedOpType(opType)
        if kind is RedOpType.PREMUL_SUM:
            raise RuntimeError("ReduceOp(RedOpType.PREMUL_SUM) has no factor; use ReduceOp.PREMUL_SUM(factor)")
        object.__setattr__(self, "_type", kind)
        object.__setattr__(self, "_factor", None)

    @staticmethod
    def PREMUL_SUM(factor: Any) -> "ReduceOp":  # noqa: N802 - the interface's name
        """Multiplies each input by this rank's `factor`, a number or a tensor of one element, then sums; floating types only."""
        try:
            number = (factor.item() if hasattr(factor, "item") else factor).__float__()
        except (AttributeError, ValueError, RuntimeError):
            raise TypeError(f"PREMUL_SUM: factor is {factor!r}, a {type(factor).__name__}; pass a number, or a tensor of one element") from None
        except OverflowError:
            raise RuntimeError("PREMUL_SUM: factor is an integer that no float holds; pass a smaller one") from None
        op = ReduceOp.__new__(ReduceOp)
        object.__setattr__(op, "_type", RedOpType.PREMUL_SUM)
        object.__setattr__(op, "_factor", number)
        return op

    @property
    def type(self) -> RedOpType:
        """The kind of operator."""
        return self._type

    @property
    def factor(self) -> Optional[float]:
        """Of PREMUL_SUM; else None."""
        return self._factor

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"ReduceOp is immutable: {name} cannot be set")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ReduceOp):
            return NotImplemented
        return self._type is other._type and self._factor == other._factor

    def __hash__(self) -> int:
        return hash((self._type, self._factor))

    def __copy__(self) -> "ReduceOp":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "ReduceOp":
        found = memo.get(id(self))
        if found is None:
            found = memo[id(self)] = self
        return found

    def __reduce__(self) -> tuple[Any, ...]:
        return (ReduceOp.PREMUL_SUM, (self._factor,)) if self._type is RedOpType.PREMUL_SUM else (ReduceOp, (self._type,))

    def __repr__(self) -> str:
        return f"ReduceOp.{self._type.name}" + ("" if self._factor is None else f"({self._factor})")


for _kind in RedOpType:
    if _kind is not RedOpType.PREMUL_SUM:
        setattr(ReduceOp, _kind.name, ReduceOp(_kind))


def as_reduce_op(op: Any) -> ReduceOp:
    """`op`, or the operator of a `RedOpType`.  TypeError: neither."""
    if isinstance(op, ReduceOp):
        return op
    if isinstance(op, RedOpType):
        return ReduceOp(op)
    raise TypeError(f"op is a {type(op).__name__}; pass a ReduceOp, such as ReduceOp.SUM")
