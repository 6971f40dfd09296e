"""Whether the library takes memory of CUDA devices."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from pccl._native import ffi, lib
from pccl.errors import check


def is_available() -> bool:
    """Whether ``pcclGetBuildInfo`` reports CUDA support."""
    info = ffi.new("pcclBuildInfo_t *")
    check(lib.pcclGetBuildInfo(info), "pcclGetBuildInfo")
    return bool(info.has_cuda_support)
