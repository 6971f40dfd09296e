"""The enumerations of ``pccl.h``, and which of its data types those of numpy, torch and Python's buffers are."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import sys
from enum import Enum, IntEnum, IntFlag
from typing import Any, Optional

from pccl._native import lib

__all__ = [
    "Attribute", "Cause", "DataType", "DeviceType", "DistributionHint", "ErrorClass", "LossRule", "QuantizationAlgorithm", "ReduceOp",
    "Result", "SharedStateSyncStrategy", "TransportKind", "WindowRights",
]


class Result(Enum):
    """The result of a call."""

    SUCCESS = lib.pcclSuccess
    NOT_INITIALIZED = lib.pcclNotInitialized
    INTERNAL_ERROR = lib.pcclInternalError
    INVALID_ARGUMENT = lib.pcclInvalidArgument
    INVALID_USAGE = lib.pcclInvalidUsage
    TOO_FEW_PEERS = lib.pcclTooFewPeers
    MASTER_CONNECTION_FAILED = lib.pcclMasterConnectionFailed
    RANK_CONNECTION_FAILED = lib.pcclRankConnectionFailed
    RANK_CONNECTION_LOST = lib.pcclRankConnectionLost
    NO_SHARED_STATE_AVAILABLE = lib.pcclNoSharedStateAvailable
    PENDING_ASYNC_OPS = lib.pcclPendingAsyncOps
    UPDATE_TOPOLOGY_FAILED = lib.pcclUpdateTopologyFailed
    TOPOLOGY_OPTIMIZATION_FAILED = lib.pcclTopologyOptimizationFailed


class ErrorClass(Enum):
    """The action to take after an error."""

    NONE = lib.pcclClassNone
    FIX = lib.pcclClassFix        #: the call is wrong: mend it; nothing has happened
    RETRY = lib.pcclClassRetry    #: still a member, inputs intact: call again
    REJOIN = lib.pcclClassRejoin  #: no longer a member: connect again
    STOP = lib.pcclClassStop      #: stop and report


class Cause(Enum):
    """Why a call failed."""

    NONE = lib.pcclCauseNone
    USAGE = lib.pcclCauseUsage                           #: wrong argument, phase or order
    PEER_LOST = lib.pcclCausePeerLost                    #: a peer died; or one is gone that the call still counted on, in whichever way
    PEER_LEFT = lib.pcclCausePeerLeft                    #: a peer left by itself
    PEER_SILENT = lib.pcclCausePeerSilent                #: a peer stopped answering
    LINK_LOST = lib.pcclCauseLinkLost                    #: a link between two living peers broke
    NO_PROGRESS = lib.pcclCauseNoProgress                #: no bytes moved for the stall time
    DEADLINE = lib.pcclCauseDeadline                     #: the deadline that the program has set passed
    CANCELLED = lib.pcclCauseCancelled                   #: a member gave the operation up
    MISMATCH = lib.pcclCauseMismatch                     #: members disagree in the parameters of an operation
    DIGEST = lib.pcclCauseDigest                         #: members computed different results
    NO_MEMORY = lib.pcclCauseNoMemory                    #: memory was lacking
    EXCLUDED = lib.pcclCauseExcluded                     #: this peer was removed from the run
    KICKED = lib.pcclCauseKicked                         #: the master refused or removed this peer for what it did
    MASTER_LOST = lib.pcclCauseMasterLost                #: the connection to the master is gone
    MASTER_UNREACHABLE = lib.pcclCauseMasterUnreachable  #: no master was reached
    ALONE = lib.pcclCauseAlone                           #: there is no other peer
    CONFLICT = lib.pcclCauseConflict                     #: peers wait for each other in different votes
    NO_CANDIDATE = lib.pcclCauseNoCandidate              #: nobody can provide the shared state
    INTERNAL = lib.pcclCauseInternal                     #: a fault of the library's own
    LEFT = lib.pcclCauseLeft                             #: the communicator was destroyed or left meanwhile
    REVISION = lib.pcclCauseRevision                     #: nobody offers the expected revision of the shared state
    REVOKED = lib.pcclCauseRevoked                       #: a member ended the world for all
    NAME_USED = lib.pcclCauseNameUsed                    #: the name was for one world only, which has been created
    NO_WORLD = lib.pcclCauseNoWorld                      #: no world of that name has begun, or nobody is left in it


class ReduceOp(Enum):
    """How values are reduced."""

    SUM = lib.pcclSum
    AVG = lib.pcclAvg
    PROD = lib.pcclProd
    MAX = lib.pcclMax
    MIN = lib.pcclMin
    BIT_AND = lib.pcclBitAnd
    BIT_OR = lib.pcclBitOr
    BIT_XOR = lib.pcclBitXor


class Attribute(Enum):
    """A number that `Communicator.get_attribute` tells.

    GLOBAL_WORLD_SIZE: peers of all groups; LOCAL_WORLD_SIZE: peers of this one's group; NUM_DISTINCT_PEER_GROUPS: groups that have peers;
    LARGEST_PEER_GROUP_WORLD_SIZE: peers of the largest.
    """

    GLOBAL_WORLD_SIZE = lib.PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE
    LOCAL_WORLD_SIZE = lib.PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE
    NUM_DISTINCT_PEER_GROUPS = lib.PCCL_ATTRIBUTE_NUM_DISTINCT_PEER_GROUPS
    LARGEST_PEER_GROUP_WORLD_SIZE = lib.PCCL_ATTRIBUTE_LARGEST_PEER_GROUP_WORLD_SIZE


class SharedStateSyncStrategy(Enum):
    """The data that a peer offers and takes in a synchronisation.

    ENFORCE_POPULAR: the most frequent content wins, it sends or receives; RECEIVE_ONLY: its content is never elected; SEND_ONLY: its
    content has to win.
    """

    ENFORCE_POPULAR = lib.PCCL_SHARED_STATE_SYNC_STRATEGY_ENFORCE_POPULAR
    RECEIVE_ONLY = lib.PCCL_SHARED_STATE_SYNC_STRATEGY_RECEIVE_ONLY
    SEND_ONLY = lib.PCCL_SHARED_STATE_SYNC_STRATEGY_SEND_ONLY


class DistributionHint(Enum):
    """How values are distributed; the library takes it and makes no use of it."""

    NONE = lib.pcclDistributionNone
    NORMAL = lib.pcclDistributionNormal
    UNIFORM = lib.pcclDistributionUniform


class QuantizationAlgorithm(Enum):
    """How values are compressed on the wire."""

    NONE = lib.pcclQuantNone
    MIN_MAX = lib.pcclQuantMinMax
    ZERO_POINT_SCALE = lib.pcclQuantZeroPointScale


class LossRule(IntEnum):
    """The effect of a lost member on a world of a given size."""

    END = lib.PCCL_LOSS_END        #: it is over
    SHRINK = lib.PCCL_LOSS_SHRINK  #: it goes on with those who are left


class TransportKind(Enum):
    """The transport that carries the bytes of a connection."""

    TCP = lib.pcclTransportTcp
    SHARED_MEMORY = lib.pcclTransportSharedMemory
    FABRIC = lib.pcclTransportFabric


class WindowRights(IntFlag):
    """The rights of other members on a window."""

    READ = lib.pcclWindowRead    #: get
    WRITE = lib.pcclWindowWrite  #: put
    COUNT = lib.pcclWindowCount  #: add and swap
    ALL = lib.pcclWindowAll


class DeviceType(Enum):
    """Where memory is."""

    CPU = lib.pcclDeviceCpu
    CUDA = lib.pcclDeviceCuda

    @classmethod
    def from_torch_device_type(cls, device_type: str) -> Optional["DeviceType"]:
        """The device type of that name, or None."""
        return {"cpu": cls.CPU, "cuda": cls.CUDA}.get(device_type)


class DataType(Enum):
    """The type of an element."""

    UINT8 = lib.pcclUint8
    INT8 = lib.pcclInt8
    INT16 = lib.pcclInt16
    UINT16 = lib.pcclUint16
    UINT32 = lib.pcclUint32
    INT32 = lib.pcclInt32
    UINT64 = lib.pcclUint64
    INT64 = lib.pcclInt64
    FLOAT16 = lib.pcclFloat16
    BFLOAT16 = lib.pcclBFloat16
    FLOAT = lib.pcclFloat
    DOUBLE = lib.pcclDouble
    BOOL = lib.pcclBool
    FLOAT8_E4M3 = lib.pcclFloat8E4M3
    FLOAT8_E5M2 = lib.pcclFloat8E5M2

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return _SIZES[self]

    def to_torch_dtype(self) -> Any:
        """torch's dtype.  RuntimeError: torch is not installed."""
        return getattr(imported("torch"), _TORCH_NAMES[self])

    def to_numpy_dtype(self) -> Any:
        """numpy's dtype; bfloat16 and float8 are those of ml_dtypes.  RuntimeError: not installed."""
        name = _NUMPY_NAMES[self]
        numpy = imported("numpy")
        if self in _ML_DTYPES:
            return numpy.dtype(getattr(imported("ml_dtypes"), name))
        return numpy.dtype(name)

    @classmethod
    def from_torch_dtype(cls, dtype: Any) -> "DataType":
        """The type of a torch tensor's elements.  ValueError: PCCL has no such type."""
        try:
            return _FROM_TORCH[str(dtype).removeprefix("torch.")]
        except KeyError:
            raise ValueError(f"pccl: dtype {dtype} is none of {', '.join(sorted(_FROM_TORCH))}; convert the tensor") from None

    @classmethod
    def from_numpy_dtype(cls, dtype: Any) -> "DataType":
        """The type of a numpy array's elements.  AssertionError: PCCL has no such type, or not in this order of bytes."""
        numpy = imported("numpy")
        dtype = numpy.dtype(dtype)
        found = _FROM_NUMPY.get(dtype.name)
        if found is None or not dtype.isnative:
            raise AssertionError(f"pccl: dtype {dtype.str} is none of {', '.join(sorted(_FROM_NUMPY))}; convert the array")
        return found

    @classmethod
    def from_format(cls, text: str) -> "DataType":
        """The type of a buffer's elements, as `memoryview.format` tells.  ValueError: PCCL has no such type."""
        plain = text.lstrip("@=<" if sys.byteorder == "little" else "@=>")
        try:
            return _FROM_FORMAT[plain]
        except KeyError:
            raise ValueError(f"pccl: elements of format {text!r} are none of {', '.join(_FROM_FORMAT)}; convert the buffer") from None


def imported(name: str) -> Any:
    """The module of that name, which is optional.  RuntimeError: it is not installed."""
    try:
        return __import__(name)
    except ImportError:
        raise RuntimeError(f"pccl: this needs the package {name}, which is not installed; pip install {name}") from None


_TORCH_NAMES = {
    DataType.UINT8: "uint8", DataType.INT8: "int8", DataType.INT16: "int16", DataType.UINT16: "uint16", DataType.UINT32: "uint32",
    DataType.INT32: "int32", DataType.UINT64: "uint64", DataType.INT64: "int64", DataType.FLOAT16: "float16",
    DataType.BFLOAT16: "bfloat16", DataType.FLOAT: "float32", DataType.DOUBLE: "float64", DataType.BOOL: "bool",
    DataType.FLOAT8_E4M3: "float8_e4m3fn", DataType.FLOAT8_E5M2: "float8_e5m2",
}
_NUMPY_NAMES = _TORCH_NAMES
_ML_DTYPES = {DataType.BFLOAT16, DataType.FLOAT8_E4M3, DataType.FLOAT8_E5M2}
_FROM_TORCH = {name: datatype for datatype, name in _TORCH_NAMES.items()}
_FROM_NUMPY = {name: datatype for datatype, name in _NUMPY_NAMES.items()}
_SIZES = {
    datatype: 8 if "64" in name else 4 if "32" in name else 2 if "16" in name else 1 for datatype, name in _TORCH_NAMES.items()
}
_FROM_FORMAT = {
    "B": DataType.UINT8, "b": DataType.INT8, "h": DataType.INT16, "H": DataType.UINT16, "i": DataType.INT32, "I": DataType.UINT32,
    "l": DataType.INT64, "L": DataType.UINT64, "q": DataType.INT64, "Q": DataType.UINT64, "e": DataType.FLOAT16, "f": DataType.FLOAT,
    "d": DataType.DOUBLE, "?": DataType.BOOL, "c": DataType.UINT8,
}
