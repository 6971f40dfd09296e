"""`pccl.comms`: communicators in the shape of TorchComms, on torch tensors, numpy arrays and buffers."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from types import ModuleType
from typing import Mapping, Optional

from pccl.comms import objcol
from pccl.comms.backend import Mask, TorchCommBackend
from pccl.comms.batch import BatchSendRecv, P2POp, P2POpType
from pccl.comms.communicator import TorchComm
from pccl.comms.factory import (
    built_backends, get_mem_allocator, is_backend_built, load_backend, new_comm,
    register_backend,
)
from pccl.comms.factory import _is_backend_registered as _is_backend_registered
from pccl.comms.failure import AbortInfo
from pccl.comms.hooks.registry import POST_CLASSES, PRE_ARGS, OpName, RemovableHandle
from pccl.comms.options import (
    AllGatherOptions, AllGatherPOptions, AllGatherSingleOptions, AllReduceOptions, AllToAllOptions, AllToAllSingleOptions,
    AllToAllvSingleOptions, BarrierOptions, BatchP2POptions, BroadcastOptions, CommOptions, GatherOptions,
    GatherSingleOptions, PutOptions, ReconfigureOptions, RecvOptions, ReduceOptions, ReduceScatterOptions,
    ReduceScatterSingleOptions, ScatterOptions, SendOptions, SignalOptions, Timeout, WaitSignalOptions,
)
from pccl.comms.reduce_op import RedOpType, ReduceOp
from pccl.comms.shared_memory import SharedMemoryAllocator
from pccl.comms.window import TorchCommWinAccessType, TorchCommWindow, TorchCommWindowAttr
from pccl.comms.work import OperationError, TorchWork, WorkStatus

__all__ = [
    "AbortInfo", "AllGatherOptions", "AllGatherPOptions", "AllGatherSingleOptions", "AllReduceOptions", "AllToAllOptions",
    "AllToAllSingleOptions", "AllToAllvSingleOptions", "BarrierOptions", "BatchP2POptions", "BatchSendRecv", "BroadcastOptions",
    "CommOptions", "GatherOptions", "GatherSingleOptions", "Mask", "OpName", "OperationError", "P2POp", "P2POpType", "PutOptions",
    "ReconfigureOptions", "RecvOptions", "RedOpType", "ReduceOp", "ReduceOptions", "ReduceScatterOptions", "ReduceScatterSingleOptions",
    "RemovableHandle", "ScatterOptions", "SendOptions", "SharedMemoryAllocator", "SignalOptions", "Timeout", "TorchComm",
    "TorchCommBackend", "TorchCommWinAccessType", "TorchCommWindow", "TorchCommWindowAttr", "TorchWork", "WaitSignalOptions",
    "WorkStatus", "built_backends", "get_mem_allocator", "install_as_torchcomms", "is_backend_built", "load_backend", "new_comm",
    "objcol", "register_backend",
]


def install_as_torchcomms(names: Optional[Mapping[str, str]] = None) -> ModuleType:
    """Makes `import torchcomms` mean this package, in this process; returns that module.

    `names` maps more names of back-ends to ones that there are, as ``{"ncclx": "pccl"}``.  Call it before or after torch is imported; the
    second time it only adds `names`.  RuntimeError: a real torchcomms is installed.
    """
    from pccl.comms.alias import install_as_torchcomms as install

    return install(names)


globals().update({arguments.__name__: arguments for arguments in PRE_ARGS.values()})
globals().update(POST_CLASSES)
