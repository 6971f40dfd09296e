"""Functional forms of a communicator's operations, and its methods inside of `torch.compile`.

They are operators of the library `torchcomms` (`pccl.comms.functional.registry`).  With TORCHCOMMS_PATCH_FOR_COMPILE=1 the methods of
communicators, windows and batches are these operators where torch traces them, so that a program compiles as one graph.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any, Optional

import torch

from pccl.comms import environment
from pccl.comms.functional import collectives
from pccl.comms.functional.async_tensor import TorchCommsAsyncTensor
from pccl.comms.functional.collectives import (
    all_gather_single, all_reduce, all_to_all, all_to_all_single, broadcast, reduce, reduce_scatter_single, wait_tensors,
)
from pccl.comms.functional.dynamo import patch

__all__ = [
    "TorchCommsAsyncTensor", "all_gather_single", "all_reduce", "all_to_all", "all_to_all_single", "broadcast", "collectives",
    "is_torch_compile_supported", "is_torch_compile_supported_and_enabled", "reduce", "reduce_scatter_single", "wait_tensors",
]


def is_torch_compile_supported(min_version: str = "2.12.0.dev0", _current_version: Optional[str] = None) -> bool:
    """Whether torch is that new, or TORCHCOMMS_COMPILE_IGNORE_PYTORCH_VERSION_REQUIREMENT says that it is of no account."""
    if environment.flag("TORCHCOMMS_COMPILE_IGNORE_PYTORCH_VERSION_REQUIREMENT"):
        return True
    version: Any = torch.torch_version.TorchVersion
    return bool(version(_current_version or torch.__version__) >= version(min_version))


def is_torch_compile_supported_and_enabled(min_version: str = "2.12.0.dev0", _current_version: Optional[str] = None) -> bool:
    """The same, and TORCHCOMMS_PATCH_FOR_COMPILE asks for it."""
    return bool(environment.flag("TORCHCOMMS_PATCH_FOR_COMPILE")) and is_torch_compile_supported(min_version, _current_version)


if is_torch_compile_supported_and_enabled():
    patch()
