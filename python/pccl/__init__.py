"""Fault-tolerant collective communication between processes that may join, crash and leave at any time.

The interface of the original library: `Communicator`, `MasterNode`, `SharedState` and what they take; and `run`, the loop around
them, for programs that want to write their step only.
"""
# SPDX-License-Identifier: MIT
from pccl import cuda, namesake as _namesake
from pccl._native import ffi as _ffi, lib as _lib
from pccl.buffers import OperandError
from pccl.communicator import Communicator
from pccl.engine import Member
from pccl.errors import (
    InternalError, InvalidArgument, InvalidUsage, MasterConnectionFailed, NoSharedStateAvailable, NotInitialized, OperationTimeout,
    PCCLError, PendingAsyncOps, RankConnectionFailed, RankConnectionLost, TooFewPeers, TopologyOptimizationFailed, UpdateTopologyFailed,
)
from pccl.master import MasterNode
from pccl.quantization import QuantizationOptions
from pccl.reduce import (
    AsyncReduceHandle, ReduceDescriptor, ReduceInfo, ReduceOpDescriptor, ReduceOperandDescriptor,
)
from pccl.run import Step, run
from pccl.shared_state import SharedState, SharedStateSyncInfo, TensorInfo
from pccl.types import (
    Attribute, Cause, DataType, DeviceType, DistributionHint, ErrorClass, QuantizationAlgorithm, ReduceOp, Result, SharedStateSyncStrategy,
)

__all__ = [
    "AsyncReduceHandle", "Attribute", "Cause", "Communicator", "DataType", "DeviceType", "DistributionHint", "ErrorClass", "InternalError",
    "InvalidArgument", "InvalidUsage", "MasterConnectionFailed", "MasterNode", "Member", "NoSharedStateAvailable", "NotInitialized",
    "OperandError", "OperationTimeout", "PCCLError", "PendingAsyncOps", "QuantizationAlgorithm", "QuantizationOptions",
    "RankConnectionFailed", "RankConnectionLost", "ReduceDescriptor", "ReduceInfo", "ReduceOp", "ReduceOpDescriptor",
    "ReduceOperandDescriptor", "Result", "SharedState", "SharedStateSyncInfo", "SharedStateSyncStrategy", "Step", "TensorInfo",
    "TooFewPeers", "TopologyOptimizationFailed", "UpdateTopologyFailed", "cuda", "run",
]


def _version() -> str:
    number = _ffi.new("int *")
    _lib.pcclGetVersion(number)
    return f"{number[0] // 10000}.{number[0] // 100 % 100}.{number[0] % 100}"


__version__ = _version()
_namesake.warn(__version__, __path__[0])
