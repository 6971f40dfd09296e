"""Factors of `World.premul_sum`, as memory of their type."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import struct
from typing import Any

from pccl._native import ffi
from pccl.arguments import mistake
from pccl.types import DataType


def factor_of(value: float, datatype: DataType) -> Any:
    """A number of that type in memory.  InvalidArgument: it is greater than all of the type."""
    formats = {DataType.FLOAT16: "=e", DataType.BFLOAT16: "=f", DataType.FLOAT: "=f", DataType.DOUBLE: "=d"}
    if datatype not in formats:
        raise mistake("premul_sum", f"a factor of type {datatype.name} is none of FLOAT16, BFLOAT16, FLOAT, DOUBLE")
    if not isinstance(value, (int, float)) and not hasattr(value, "__float__"):
        raise TypeError(f"pccl: premul_sum: factor is {value!r}, a {type(value).__name__}; pass a number")
    try:
        packed = struct.pack(formats[datatype], float(value))
        if datatype is DataType.BFLOAT16:
            packed = _rounded(packed)
    except OverflowError:
        raise mistake("premul_sum", f"factor is {value}, more than {datatype.name} holds; pass a smaller one, or tensors of another type") from None
    return ffi.new("char[]", packed)


def _rounded(packed: bytes) -> bytes:
    """A float as a bfloat16, to the nearest.  OverflowError: that is none."""
    number = struct.unpack("=f", packed)[0]
    bits = struct.unpack("=I", packed)[0]
    if number != number:
        return struct.pack("=H", bits >> 16 | 0x40)
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    if rounded & 0x7FFF == 0x7F80 and abs(number) != float("inf"):
        raise OverflowError
    return struct.pack("=H", rounded)
