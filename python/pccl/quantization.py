"""How floats are compressed on their way between members."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any

from pccl._native import ffi
from pccl.arguments import member
from pccl.types import DataType, QuantizationAlgorithm


class QuantizationOptions:
    """How values of float32 and float64 are compressed on the wire: to which type, and how.

    MIN_MAX compresses to unsigned integers, by a range for each block of 256 elements.  ZERO_POINT_SCALE compresses to signed and unsigned
    integers.  NONE sends values unchanged; so do integers that are no narrower than the values.  Another pair is refused at the launch.
    """

    def __init__(
        self,
        quantized_datatype: DataType = DataType.UINT8,
        algorithm: QuantizationAlgorithm = QuantizationAlgorithm.MIN_MAX,
    ) -> None:
        self.quantized_datatype = quantized_datatype
        self.algorithm = algorithm

    def to_c(self) -> Any:
        """A new pcclQuantizationOptions_t."""
        made = ffi.new("pcclQuantizationOptions_t *")
        self._fill(made)
        return made

    def _fill(self, c_desc: Any) -> None:
        c_desc.quantized_datatype = member("quantized_datatype", self.quantized_datatype, DataType)
        c_desc.algorithm = member("algorithm", self.algorithm, QuantizationAlgorithm)
