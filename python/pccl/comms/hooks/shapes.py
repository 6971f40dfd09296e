"""Descriptions of the tensors of a hook's arguments, for hooks that record them."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any

from pccl.buffers import as_buffer
from pccl.comms.hooks.registry import OpName
from pccl.comms.tensors import shape_of
from pccl.types import DataType

SHORT = {
    DataType.FLOAT16: "f16", DataType.BFLOAT16: "bf16", DataType.FLOAT: "f32", DataType.DOUBLE: "f64", DataType.INT8: "i8",
    DataType.UINT8: "u8", DataType.INT16: "i16", DataType.INT32: "i32", DataType.INT64: "i64", DataType.BOOL: "bool",
}
LONG = {
    DataType.FLOAT16: "Half", DataType.BFLOAT16: "BFloat16", DataType.FLOAT: "Float", DataType.DOUBLE: "Double", DataType.INT8: "Char",
    DataType.UINT8: "Byte", DataType.INT16: "Short", DataType.INT32: "Int", DataType.INT64: "Long", DataType.BOOL: "Bool",
}


def tensors_of(args: Any) -> tuple[list[Any], list[Any]]:
    """Inputs and outputs of an operation."""
    if args.op_name is OpName.send:
        return [args.tensor], []
    if args.op_name is OpName.recv:
        return [], [args.tensor]
    if hasattr(args, "tensor"):
        return [args.tensor], [args.tensor]
    return _list(getattr(args, "input", None)), _list(getattr(args, "output", None))


def _list(value: Any) -> list[Any]:
    return [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]


def sizes_of(tensors: list[Any]) -> list[list[int]]:
    """Their shapes."""
    return [list(shape_of(tensor)) for tensor in tensors]


def datatype_of(tensor: Any) -> Any:
    """Of its elements; None where there is no such one."""
    try:
        return as_buffer(tensor, any_device=True).datatype
    except (TypeError, ValueError):
        return None


def long_names(tensors: list[Any]) -> list[str]:
    """As the flight recorder's files have them."""
    return [LONG.get(datatype_of(tensor), "Undefined") for tensor in tensors]


def count_of(tensor: Any) -> int:
    """How many elements it has."""
    count = 1
    for length in shape_of(tensor):
        count *= length
    return count
