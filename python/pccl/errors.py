"""Errors as exceptions that carry the fields of ``pcclErrorInfo_t``.

Each result has a class below `PCCLError`, so that a program may catch the errors that it can handle.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any

from pccl._native import ffi, lib
from pccl.types import Cause, ErrorClass, Result
from pccl.wording import in_python, without_phase


class PCCLError(RuntimeError):
    """A call of the library failed.

    Attributes:

    * `result`, and `function`, the call
    * `error_class`: what to do about it
    * `cause`
    * `peer`: the id of the peer concerned, 0 if none
    * `rank`: the rank of that peer among the members before the loss; None if there is no such member, or it is not known
    * `address`: where that peer accepts connections, as "10.0.0.3:48150"; "" if not known
    * `tag`: of the operation concerned, 0 if none
    * `phase`: "connect", "reduce", ...
    * `age`: seconds that the condition had lasted, 0.0 if unknown
    * `text`: all of it in a sentence; `reason`: the same without a phase that is the call's name
    """

    def __init__(self, result: Result, func_name: str, text: str = "") -> None:
        super().__init__(result, func_name, text)
        self.result = result
        self.function = func_name
        self.text = text
        self.error_class = ErrorClass.NONE
        self.cause = Cause.NONE
        self.peer = 0
        self.rank: int | None = None
        self.address = ""
        self.tag = 0
        self.phase = ""
        self.age = 0.0
        self._of_library = False  # else the library was not asked

    @property
    def reason(self) -> str:
        """`text` without the phase, if that is the call's name."""
        return without_phase(self.text, self.phase, self.function)

    def __str__(self) -> str:
        return f"{self.function}: {self.result.name}" + (f": {self.reason}" if self.text else "")

    @staticmethod
    def check(result: int, func_name: str) -> None:
        """Raises the error of this thread's last call unless `result` is that of success."""
        if result != lib.pcclSuccess:
            raise last_error(result, func_name)


class NotInitialized(PCCLError):
    """The library was not initialised in this process."""


class InternalError(PCCLError):
    """Stop and report: a failed invariant, a digest that differs, no memory."""


class InvalidArgument(PCCLError, ValueError):
    """An argument is wrong, or peers disagree in one; nothing happened."""


class InvalidUsage(PCCLError):
    """The call is not allowed now; nothing happened."""


class TooFewPeers(PCCLError):
    """This peer is alone in its group, and what it called takes two: update until somebody joins."""


class MasterConnectionFailed(PCCLError):
    """This peer is no member, or not any more, as `cause` says: connect again, then synchronise."""


class RankConnectionFailed(PCCLError):
    """A code of the original interface that is never returned."""


class RankConnectionLost(PCCLError):
    """A peer or a link was lost, or the operation was aborted; `cause` and `peer` say which."""


class OperationTimeout(RankConnectionLost):
    """The operation was aborted on all of its members, because its deadline passed (`cause` DEADLINE)."""

    def __str__(self) -> str:
        return f"{self.function}: Timed out ({self.result.name}): {self.reason}"


class NoSharedStateAvailable(PCCLError):
    """Nobody holds the shared state any more: go on from a checkpoint; or, `cause` REVISION, nobody has raised it: raise it, call again."""


class PendingAsyncOps(PCCLError):
    """This peer has operations in flight: wait for them, then call again."""


class UpdateTopologyFailed(PCCLError):
    """The update has changed nothing: call it again at once."""


class TopologyOptimizationFailed(PCCLError):
    """The ring is as it was: call it again at once."""


_CLASSES = {
    Result.NOT_INITIALIZED: NotInitialized,
    Result.INTERNAL_ERROR: InternalError,
    Result.INVALID_ARGUMENT: InvalidArgument,
    Result.INVALID_USAGE: InvalidUsage,
    Result.TOO_FEW_PEERS: TooFewPeers,
    Result.MASTER_CONNECTION_FAILED: MasterConnectionFailed,
    Result.RANK_CONNECTION_FAILED: RankConnectionFailed,
    Result.RANK_CONNECTION_LOST: RankConnectionLost,
    Result.NO_SHARED_STATE_AVAILABLE: NoSharedStateAvailable,
    Result.PENDING_ASYNC_OPS: PendingAsyncOps,
    Result.UPDATE_TOPOLOGY_FAILED: UpdateTopologyFailed,
    Result.TOPOLOGY_OPTIMIZATION_FAILED: TopologyOptimizationFailed,
}


def make_error(result: Result, func_name: str, text: str, cause: Cause = Cause.USAGE) -> PCCLError:
    """An error of the package's own, in the form of the library's."""
    kind = _CLASSES[result]
    if kind is RankConnectionLost and cause is Cause.DEADLINE:
        kind = OperationTimeout
    error = kind(result, func_name, text)
    error.cause = cause
    if result in (Result.INVALID_ARGUMENT, Result.INVALID_USAGE):
        error.error_class = ErrorClass.FIX
    return error


def error_of(info: Any, result: int, func_name: str) -> PCCLError:
    """The error that a pcclErrorInfo_t tells of."""
    text = in_python(ffi.string(info.text).decode("utf-8", "replace"))
    error = make_error(Result(result), func_name, text, Cause(info.cause))
    error.error_class = ErrorClass(info.error_class)
    error.peer = info.peer
    error.rank = None if info.rank == lib.PCCL_NO_RANK else info.rank
    error.address = ffi.string(info.address).decode("ascii", "replace")
    error.tag = info.tag
    error.phase = ffi.string(info.phase).decode("utf-8", "replace")
    error.age = info.age_ns / 1e9
    error._of_library = True
    return error


def last_error(result: int, func_name: str) -> PCCLError:
    """The error of the last call of this thread, which returned `result`."""
    info = ffi.new("pcclErrorInfo_t *")
    if lib.pcclGetLastErrorInfo(info) != lib.pcclSuccess or info.result != result:
        return make_error(Result(result), func_name, "")
    return error_of(info, result, func_name)


#: The same, as a function of this module.
check = PCCLError.check
