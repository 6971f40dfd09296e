"""Elements of plain buffers are taken for what Python's struct module says that they are."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import struct

import numpy as np
import pytest

from pccl.types import DataType


@pytest.mark.parametrize("code", "bBhHiIlLqQefd?")
def test_each_format_is_the_type_of_its_size_and_sign(code: str) -> None:
    """A type of the same size and the other sign would be summed as well, and compared wrong."""
    datatype = DataType.from_format(code)
    assert datatype.itemsize == struct.calcsize(code)
    assert datatype.to_numpy_dtype() == np.dtype(code)
