"""The effects of a failed operation: for its error's text, for the communicator, and for the process where it is to be aborted."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from pccl.comms.work import OperationError
from pccl.errors import OperationTimeout, PCCLError
from pccl.types import Cause, Result

if TYPE_CHECKING:
    from pccl.comms.communicator import TorchComm

REASONS = ("aborted", "timed_out", "network", "internal")

#: Causes of an operation that the others go on after.
_HARMLESS = {Cause.USAGE, Cause.MISMATCH, Cause.CANCELLED, Cause.NO_MEMORY}


class AbortInfo(NamedTuple):
    """Why a communicator is of no use any more."""

    reason: str   #: one of `REASONS`
    context: str


class Failures:
    """The first failure for good of a communicator, if there was one."""

    def __init__(self) -> None:
        self.info: Optional[AbortInfo] = None
        self._lock = threading.Lock()

    @property
    def aborted(self) -> bool:
        """Whether there was one."""
        return self.info is not None

    def note(self, reason: str, context: str) -> bool:
        """The first counts; whether this was it."""
        with self._lock:
            if self.info is not None:
                return False
            self.info = AbortInfo(reason, context)
            return True

    def clear(self) -> None:
        """The communicator is a new one."""
        self.info = None

    def translate(self, comm: str, name: str, error: BaseException) -> BaseException:
        """The error that programs get: mistakes as they are, else an `OperationError`."""
        if isinstance(error, OperationError):
            return error
        if isinstance(error, (OperationTimeout, TimeoutError)):
            translated = OperationError(f"{name} on communicator {comm}: operation timed out: {error}", "timed_out")
        elif isinstance(error, PCCLError):
            reason = self.info.reason if self.info is not None else _reason_of(error)
            translated = OperationError(f"{name} on communicator {comm}: {error}", reason)
        elif isinstance(error, RuntimeError) and "timed out" in str(error).lower():  # of torch's process groups
            translated = OperationError(f"{name} on communicator {comm}: operation timed out: {error}", "timed_out")
        else:
            return error
        translated.__cause__ = error
        return translated

    def work_failed(self, comm: "TorchComm", name: str, error: BaseException) -> None:
        """Called once for each failed operation, by the first thread that sees its end."""
        if not isinstance(error, OperationError):
            return
        fatal = _is_fatal(error) or (error.reason == "timed_out" and comm._options.enable_reconfigure)
        aborts = bool(comm._options.abort_process_on_timeout_or_error) and not comm._options.enable_reconfigure
        if self.aborted or not (fatal or (aborts and error.reason in ("timed_out", "network"))):
            return
        if not self.note(error.reason, str(error)):
            return
        comm._hooks.abort()
        if aborts:
            _abort_process(comm.get_name(), name, error)
        if comm._options.enable_reconfigure:
            comm._abort_quietly()


def _reason_of(error: PCCLError) -> str:
    if error.cause in (Cause.REVOKED, Cause.LEFT):
        return "aborted"
    if error.result in (Result.RANK_CONNECTION_LOST, Result.MASTER_CONNECTION_FAILED):
        return "network"
    return "internal"


def _is_fatal(error: OperationError) -> bool:
    """Whether no later operation can succeed: the world is over, or this process is no member of it."""
    cause: Any = error.__cause__
    if isinstance(cause, PCCLError):
        lost = cause.result in (Result.RANK_CONNECTION_LOST, Result.MASTER_CONNECTION_FAILED)
        return lost and not isinstance(cause, OperationTimeout) and cause.cause not in _HARMLESS
    return error.reason == "network"


def _abort_process(comm: str, name: str, error: OperationError) -> None:
    """Ends the process with SIGABRT; a message of what it was stands on standard error."""
    what = "timed out" if error.reason == "timed_out" else "failed"
    os.write(2, f"pccl.comms: {name} on communicator {comm} {what}; the process is aborted: {error}\n".encode())
    os.abort()
