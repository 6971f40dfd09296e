"""Checks of the arguments of operations; each mistake is a RuntimeError, or TypeError, that names argument, value and remedy."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import operator
from typing import Any, Optional, Sequence

from pccl.buffers import Buffer
from pccl.comms.reduce_op import RedOpType, ReduceOp
from pccl.comms.tensors import FLOATING, NOT_COMPUTED, buffer_of, rows_of
from pccl.types import DataType

_BITS = (RedOpType.BAND, RedOpType.BOR, RedOpType.BXOR)


def described(value: Any, name: str) -> Buffer:
    """A tensor on whichever device: the back-ends say which they use."""
    return buffer_of(value, name, any_device=True)


def on_device(needed: str, value: Any, name: str) -> None:
    """A tensor on a device of that kind, or a list or batch of such; nothing of what is no tensor."""
    if isinstance(value, (list, tuple)):
        for index, one in enumerate(value):
            on_device(needed, getattr(one, "tensor", one), f"{name}[{index}]")
        return
    device = getattr(value, "device", None)
    if device is not None and getattr(device, "type", device) != needed:
        remedy = "tensor.cpu()" if needed == "cpu" else f"tensor.to({needed!r})"
        raise RuntimeError(f"Invalid tensor: {name} is on device {device}; pass {remedy}")


def rank(name: str, value: int, size: int) -> None:
    """A rank of the communicator."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} is a {type(value).__name__}; pass a rank")
    if not 0 <= value < size:
        raise RuntimeError(f"{name} must be in range [0, {size}), and is {value}")


def tensor(name: str, value: Any) -> Buffer:
    """Contiguous memory of a type that there is."""
    return described(value, name)


def reduced(name: str, value: Any, op: ReduceOp) -> None:
    """A tensor that the operator can be used on."""
    datatype = described(value, name).datatype
    if op.type in _BITS and datatype in FLOATING:
        raise RuntimeError(f"Cannot use ReduceOp.{op.type.name} with non-integral dtype: {name} is of {datatype.name}")
    if op.type is RedOpType.PREMUL_SUM and datatype not in FLOATING:
        raise RuntimeError(f"PREMUL_SUM is for half, bfloat16, float and double: {name} is of {datatype.name}")
    if datatype in NOT_COMPUTED or (datatype is DataType.BOOL and op.type is RedOpType.AVG):
        raise RuntimeError(f"Invalid scalar type: ReduceOp.{op.type.name} is none of {datatype.name}, the type of {name}")


def communicator(function: str, value: Any) -> None:
    """A communicator, of whatever package."""
    if not (hasattr(value, "get_rank") and hasattr(value, "get_size")):
        raise TypeError(f"{function}: comm is {value!r}, a {type(value).__name__}; pass a communicator of new_comm or split")


def many(name: str, values: Any, what: str) -> None:
    """A list, or something like one."""
    if isinstance(values, (str, bytes, dict)) or not hasattr(values, "__len__") or not hasattr(values, "__getitem__"):
        raise TypeError(f"{name} is a {type(values).__name__}; pass a list of {what}")


def whole_number(name: str, value: Any) -> int:
    """A number without a fraction."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}, a {type(value).__name__}; pass a whole number") from None


def whole_numbers(name: str, values: Any) -> list[int]:
    """A list of them."""
    many(name, values, "whole numbers")
    return [whole_number(f"{name}[{index}]", value) for index, value in enumerate(values)]


def length(name: str, values: Sequence[Any], size: int) -> None:
    """A list with one element for each rank."""
    many(name, values, "tensors")
    if len(values) != size:
        raise RuntimeError(f"{name} size must equal comm_size: it has {len(values)} tensors, and there are {size} ranks")


def listed(name: str, values: Sequence[Any], like: Any, size: int, equal: bool) -> None:
    """A list of tensors of the type of `like`, one for each rank; `equal`: as large as it, too."""
    length(name, values, size)
    model = described(like, "tensor")
    for index, value in enumerate(values):
        buffer = described(value, f"{name}[{index}]")
        _same_type(f"{name}[{index}]", buffer, model)
        if equal and buffer.count != model.count:
            raise RuntimeError(f"all tensors must have same size: {name}[{index}] has {buffer.count} elements, the other {model.count}")


def alike(name: str, index: Optional[int], value: Any, like: Any) -> None:
    """A tensor as large as another."""
    label = name if index is None else f"{name}[{index}]"
    buffer, model = described(value, label), described(like, "tensor")
    _same_type(label, buffer, model)
    if buffer.count != model.count:
        raise RuntimeError(f"tensors must have same size: {label} has {buffer.count} elements, the other {model.count}")


def times(name: str, whole: Any, part_name: str, part: Any, size: int) -> None:
    """A tensor with room for `size` others."""
    large, small = described(whole, name), described(part, part_name)
    _same_type(name, large, small)
    if large.count != small.count * size:
        raise RuntimeError(
            f"{name} size must equal comm_size * {part_name} size: it has {large.count} elements, and {size} * {small.count} are needed"
        )


def divisible(name: str, value: Any, size: int) -> None:
    """A tensor that all ranks can share evenly."""
    count = described(value, name).count
    if count % size:
        raise RuntimeError(f"{name} size must be divisible by comm_size: it has {count} elements, and there are {size} ranks")


def row_counts(name: str, counts: Sequence[int], tensor_name: str, value: Any, size: int) -> None:
    """Rows of dimension 0, for each rank."""
    if len(counts) != size:
        raise RuntimeError(f"{name} length must equal comm_size: it has {len(counts)} numbers, and there are {size} ranks")
    if any(count < 0 for count in counts):
        raise RuntimeError(f"{name} is {list(counts)}; numbers of rows must be non-negative")
    rows, _ = rows_of(value, described(value, tensor_name))
    if sum(counts) > rows:
        raise RuntimeError(f"sum of {name}, {sum(counts)}, exceeds dimension 0 of {tensor_name}, which is {rows}")


def same_type(name: str, value: Any, like: Any) -> None:
    """Two tensors of one type."""
    _same_type(name, described(value, name), described(like, "tensor"))


def _same_type(name: str, value: Buffer, like: Buffer) -> None:
    if value.datatype is not like.datatype:
        raise RuntimeError(f"Invalid scalar type: {name} is of {value.datatype.name}, the other of {like.datatype.name}; convert one")
