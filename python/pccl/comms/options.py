"""Options: of a communicator, of a batch, of a reconfiguration, and of each operation; timeouts and hints in all of them."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import datetime
from typing import Any, Mapping, NamedTuple, Optional, Union

from pccl.comms import environment


class Timeout(datetime.timedelta):
    """A duration; `Timeout(2.5)` is 2.5 seconds."""

    __module__ = "pccl.comms"

    def __new__(cls, seconds: Any = None, **parts: float) -> "Timeout":
        if isinstance(seconds, datetime.timedelta):
            return super().__new__(cls, seconds=seconds.total_seconds())
        return super().__new__(cls, **({} if seconds is None else {"seconds": seconds}), **parts)


TimeoutLike = Union[datetime.timedelta, float, int, None]
Hints = Mapping[str, str]

_LONGEST = 1e9  # seconds: 31 years, as a timedelta holds no thousand times more


def as_seconds(timeout: TimeoutLike, name: str = "timeout") -> Optional[float]:
    """Seconds; None where the communicator's holds, which 0 means too.  RuntimeError: negative.  TypeError: no duration."""
    if timeout is None:
        return None
    if isinstance(timeout, datetime.timedelta):
        parts = (timeout.days * 86400 + timeout.seconds) * 10**6 + timeout.microseconds  # torch.compile traces no total_seconds
        seconds = parts / 10**6
    elif isinstance(timeout, (int, float)) and not isinstance(timeout, bool):
        seconds = float(timeout)
    else:
        raise TypeError(f"{name} is a {type(timeout).__name__}; pass a timedelta or seconds")
    if not seconds >= 0:
        raise RuntimeError(f"{name} must be non-negative, and is {seconds} s")
    return min(seconds, _LONGEST) or None


def as_hints(hints: Optional[Hints]) -> dict[str, str]:
    """A dictionary of its own.  TypeError: not str to str."""
    if hints is not None and not isinstance(hints, Mapping):
        raise TypeError(f"hints are a {type(hints).__name__}; pass a dictionary, str to str")
    result = dict(hints or {})
    for key, value in result.items():
        if not isinstance(key, str) or not isinstance(value, str):
            raise TypeError(f"hints are str to str, and {key!r} is given {value!r}")
    return result


class CommOptions:
    """The options of a communicator; None: the environment decides."""

    __module__ = "pccl.comms"

    def __init__(
        self,
        abort_process_on_timeout_or_error: Optional[bool] = None,
        timeout: TimeoutLike = None,
        store: Any = None,
        enable_reconfigure: bool = False,
        hints: Optional[Hints] = None,
        name: Optional[str] = None,
        is_high_priority_stream: Optional[bool] = None,
    ) -> None:
        self.abort_process_on_timeout_or_error = abort_process_on_timeout_or_error
        self.timeout = timeout
        self.store = store
        self.enable_reconfigure = enable_reconfigure
        self.hints = as_hints(hints)
        self.name = name
        self.is_high_priority_stream = is_high_priority_stream

    def resolved(self) -> "CommOptions":
        """The same with the environment's defaults filled in.  RuntimeError: a value that cannot be."""
        aborts = self.abort_process_on_timeout_or_error
        if aborts is None:
            aborts = environment.flag("TORCHCOMM_ABORT_ON_ERROR") or False
        seconds = as_seconds(self.timeout) or environment.default_timeout()
        timeout = datetime.timedelta(seconds=seconds)
        return CommOptions(aborts, timeout, self.store, bool(self.enable_reconfigure), as_hints(self.hints), self.name)

    @property
    def seconds(self) -> float:
        """The timeout, of resolved options."""
        return as_seconds(self.timeout) or environment.DEFAULT_TIMEOUT

    def __repr__(self) -> str:
        return (
            f"CommOptions(abort_process_on_timeout_or_error={self.abort_process_on_timeout_or_error}, timeout={self.timeout!r}, "
            f"store={self.store!r}, enable_reconfigure={self.enable_reconfigure}, hints={self.hints!r}, name={self.name!r})"
        )


class ReconfigureOptions:
    """The arguments of `reconfigure`, as one object."""

    __module__ = "pccl.comms"

    def __init__(self, uuid: int = 0, init_handles: Any = (), timeout: TimeoutLike = None, hints: Optional[Hints] = None) -> None:
        self.uuid = uuid
        self.init_handles = init_handles
        self.timeout = timeout
        self.hints = as_hints(hints)


class OperationOptions:
    """Timeout and hints of one operation; each operation has a class of this shape under a name of its own."""

    __module__ = "pccl.comms"

    def __init__(self, hints: Optional[Hints] = None, timeout: TimeoutLike = None) -> None:
        self.hints = as_hints(hints)
        self.timeout = timeout

    def __repr__(self) -> str:
        return f"{type(self).__name__}(hints={self.hints!r}, timeout={self.timeout!r})"


class BatchP2POptions(OperationOptions):
    """Hints and timeout of `BatchSendRecv.issue`."""

    __module__ = "pccl.comms"


class SendOptions(OperationOptions):
    """Hints and timeout of `TorchComm.send`."""

    __module__ = "pccl.comms"


class RecvOptions(OperationOptions):
    """Hints and timeout of `TorchComm.recv`."""

    __module__ = "pccl.comms"


class BroadcastOptions(OperationOptions):
    """Hints and timeout of `TorchComm.broadcast`."""

    __module__ = "pccl.comms"


class AllReduceOptions(OperationOptions):
    """Hints and timeout of `TorchComm.all_reduce`."""

    __module__ = "pccl.comms"


class ReduceOptions(OperationOptions):
    """Hints and timeout of `TorchComm.reduce`."""

    __module__ = "pccl.comms"


class AllGatherOptions(OperationOptions):
    """Hints and timeout of `TorchComm.all_gather`."""

    __module__ = "pccl.comms"


class AllGatherSingleOptions(OperationOptions):
    """Hints and timeout of `TorchComm.all_gather_single`."""

    __module__ = "pccl.comms"


class ReduceScatterOptions(OperationOptions):
    """Hints and timeout of `TorchComm.reduce_scatter`."""

    __module__ = "pccl.comms"


class ReduceScatterSingleOptions(OperationOptions):
    """Hints and timeout of `TorchComm.reduce_scatter_single`."""

    __module__ = "pccl.comms"


class AllToAllOptions(OperationOptions):
    """Hints and timeout of `TorchComm.all_to_all`."""

    __module__ = "pccl.comms"


class AllToAllSingleOptions(OperationOptions):
    """Hints and timeout of `TorchComm.all_to_all_single`."""

    __module__ = "pccl.comms"


class AllToAllvSingleOptions(OperationOptions):
    """Hints and timeout of `TorchComm.all_to_all_v_single`."""

    __module__ = "pccl.comms"


class BarrierOptions(OperationOptions):
    """Hints and timeout of `TorchComm.barrier`."""

    __module__ = "pccl.comms"


class ScatterOptions(OperationOptions):
    """Hints and timeout of `TorchComm.scatter`."""

    __module__ = "pccl.comms"


class GatherOptions(OperationOptions):
    """Hints and timeout of `TorchComm.gather`."""

    __module__ = "pccl.comms"


class GatherSingleOptions(OperationOptions):
    """Hints and timeout of `TorchComm.gather_single`."""

    __module__ = "pccl.comms"


class AllGatherPOptions(OperationOptions):
    """Hints and timeout of `TorchComm.all_gather_p_exec`."""

    __module__ = "pccl.comms"


class PutOptions(OperationOptions):
    """Hints and timeout of `TorchCommWindow.put`."""

    __module__ = "pccl.comms"


class SignalOptions(OperationOptions):
    """Hints and timeout of `TorchCommWindow.signal`."""

    __module__ = "pccl.comms"


class WaitSignalOptions(OperationOptions):
    """Hints and timeout of `TorchCommWindow.wait_signal`."""

    __module__ = "pccl.comms"


class Limits(NamedTuple):
    """The limits that apply to one operation."""

    seconds: float
    hints: dict[str, str]


def limits_of(
    default_seconds: float, default_hints: Mapping[str, str], hints: Optional[Hints], timeout: TimeoutLike,
    options: Optional[OperationOptions],
) -> Limits:
    """Keywords win over `options`, these over the communicator's."""
    if options is not None and not (hasattr(options, "timeout") and hasattr(options, "hints")):
        raise TypeError(f"options is a {type(options).__name__}; pass the options of the operation, with hints and timeout")
    if timeout is None and options is not None:
        timeout = options.timeout
    if hints is None and options is not None:
        hints = options.hints
    return Limits(as_seconds(timeout) or default_seconds, {**default_hints, **as_hints(hints)})
