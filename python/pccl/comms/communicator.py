"""`TorchComm`: a communicator with the operations of TorchComms, whatever back-end carries them out.

It checks arguments, puts calls in one order, keeps limits of time, calls hooks, and says what a failure means for the communicator.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import datetime
import logging
import operator
import sys
import threading
import warnings
import weakref
from typing import Any, Callable, Iterable, Optional, Sequence

from pccl.comms import arguments as check
from pccl.comms import handles, torch_switch
from pccl.comms.backend import Mask, TorchCommBackend
from pccl.comms.calls import Caller
from pccl.comms.failure import AbortInfo, Failures
from pccl.comms.hooks.registry import Hooks, OpName, RemovableHandle
from pccl.comms.memory import Memory
from pccl.comms.operations import Operations
from pccl.comms.options import CommOptions, Hints, Limits, TimeoutLike, as_hints, as_seconds, limits_of
from pccl.comms.order import Order
from pccl.comms.work import OperationError, TorchWork, WorkStatus
from pccl.engine import at_once, awaited

logger = logging.getLogger("pccl.comms")

#: They have an order of their own, by pairs, and may wait for what is issued after a collective.
_MESSAGES = (OpName.send, OpName.recv, OpName.batch_op_issue)


class TorchComm(Operations, Memory):
    """A communicator, made by `new_comm` or `split`, and ended by `finalize`.

    Every operation takes ``async_op``, ``hints``, ``timeout`` (and ``options``, which holds the last two) and returns a `TorchWork`, which
    is finished where `async_op` is false.  Ranks issue collectives in the same order.  Any thread may call; calls are put in one order.
    """

    __module__ = "pccl.comms"

    def __init__(self, backend_name: str, device: Any, name: str, options: CommOptions, backend: TorchCommBackend, mask: Mask) -> None:
        self._backend_name = backend_name
        self._device = device
        self._name = name
        self._options = options
        self._backend = backend
        self._mask = mask
        self._call = Caller(backend)
        self._lock = threading.RLock()
        self._hooks = Hooks()
        self._failures = Failures()
        self._order = Order()
        self._outputs = {}
        self._works: "weakref.WeakSet[TorchWork]" = weakref.WeakSet()
        self._children: "weakref.WeakSet[TorchComm]" = weakref.WeakSet()
        self._rank = self._size = -1
        self._finalized = False
        self._handle = handles.enter(self, name)
        self._read_membership()

    def _read_membership(self) -> None:
        self._rank, self._size = self._backend.get_rank(), self._backend.get_size()

    # -- Identity --

    def get_rank(self) -> int:
        """This process's rank; -1 before the first `reconfigure`."""
        return self._rank

    def get_size(self) -> int:
        """How many ranks there are; -1 before the first `reconfigure`."""
        return self._size

    def get_ranks(self) -> list[int]:
        """The members' ranks in the communicator that `new_comm` made, by rank here."""
        return self._backend.get_ranks()

    def get_nodes(self) -> list[int]:
        """On which host each rank is: hosts are numbered from 0 on, in the order in which ranks first name them.

        RuntimeError: the back-end does not know, or the communicator has ended.
        """
        self._ready("get_nodes")
        hosts: list[str] = self._backend.get_hosts()
        numbers = {host: number for number, host in enumerate(dict.fromkeys(hosts))}
        return [numbers[host] for host in hosts]

    def get_local_ranks(self) -> list[int]:
        """The ranks on this process's host, this one too."""
        nodes = self.get_nodes()
        return [rank for rank, node in enumerate(nodes) if node == nodes[self._rank]]

    def get_name(self) -> str:
        """The name it was made with."""
        return self._name

    def get_options(self) -> CommOptions:
        """The options that it was made with."""
        return self._options

    def get_device(self) -> Any:
        """The device it was made with."""
        return self._device

    def get_backend(self) -> str:
        """The name of the back-end as it was asked for."""
        return self._backend_name

    def get_backend_version(self) -> str:
        """The back-end's version, a text."""
        return self._backend.get_backend_version()

    def get_backend_impl(self) -> TorchCommBackend:
        """The back-end's object."""
        return self._backend

    def unsafe_get_backend(self) -> TorchCommBackend:
        """As `get_backend_impl`; deprecated."""
        warnings.warn("unsafe_get_backend is deprecated; use get_backend_impl", DeprecationWarning, stacklevel=2)
        return self._backend

    def __copy__(self) -> "TorchComm":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "TorchComm":
        memo[id(self)] = self
        return self

    def __repr__(self) -> str:
        return f"TorchComm(backend={self._backend_name!r}, name={self._name!r}, rank={self._rank}, size={self._size})"

    # -- Defaults --

    def set_timeout(self, timeout: TimeoutLike) -> None:
        """Sets the timeout of operations that are issued from now on."""
        seconds = as_seconds(timeout)
        if seconds is not None:
            self._options.timeout = datetime.timedelta(seconds=seconds)
            self._backend.set_timeout(self._options.timeout)

    def set_hints(self, hints: Hints) -> None:
        """Hints of operations that are issued from now on."""
        self._options.hints = as_hints(hints)
        self._backend.set_hints(self._options.hints)

    # -- Groups --

    def split(self, ranks: Sequence[int], name: str, hints: Optional[Hints] = None, timeout: TimeoutLike = None) -> Optional["TorchComm"]:
        """Collective of all ranks: the communicator of the listed ones, whose place in the list is their rank there.

        All of a group pass the same list; who is in none passes [], and gets None.  A mistake in any list is an error of all.
        """
        limits = self._limits(hints, timeout, None)
        if not isinstance(name, str):
            raise TypeError(f"split: name is {name!r}, a {type(name).__name__}; pass a str")
        listed = [_rank_of(rank) for rank in ranks] if hasattr(ranks, "__iter__") else [ranks]  # what is none is an error of all
        with self._lock:
            self._ready("split")
            op_id = self._hooks.before(OpName.split, {"ranks": listed, "name": name})
            options = CommOptions(
                self._options.abort_process_on_timeout_or_error, datetime.timedelta(seconds=limits.seconds), None, False, limits.hints, name
            )
            try:
                backend = self._call("split", (listed, name, options), Limits(limits.seconds, limits.hints))
            except Exception as error:
                raise self._failed_call("split", error) from error
            if backend is None:
                return None
            child = TorchComm(self._backend_name, self._device, name, options, backend, self._mask)
            self._children.add(child)
            self._hooks.after(OpName.split, op_id, child)
            return child

    # -- The end --

    def finalize(self) -> None:
        """Collective: waits for the issued operations, and until the other ranks have made this call; then the communicator has ended.

        RuntimeError: it has ended already, which is harmless where torch destroys the group that has it; or "Work timed out during
        finalize", and it has ended.
        """
        with self._lock:
            if self._finalized and torch_switch.destroys_groups(sys._getframe(1)):
                return
            if self._finalized:
                raise RuntimeError(f"communicator {self._name} is already finalized")
            if self._size < 0:
                raise RuntimeError(f"communicator {self._name} is not initialized; call reconfigure first")
            op_id = self._hooks.before(OpName.finalize, {})
            self._finalized = True
        late = self._drain()
        self._backend.finalize()
        self._hooks.after(OpName.finalize, op_id, None)
        if late:
            raise RuntimeError(f"Work timed out during finalize of {self._name}: {late}")

    def _drain(self) -> str:
        """Waits; returns what has not ended in time."""
        late = ""
        for work in [work for work in self._works if work._status is WorkStatus.INPROGRESS]:
            try:
                work.wait()
            except Exception as error:  # its own: whoever waits for it is told
                if getattr(error, "reason", "") == "timed_out":
                    late = late or str(error)
        drain = getattr(self._backend, "drain", None)
        if drain is not None and not self._failures.aborted:
            try:
                drain(self._options.seconds)
            except Exception as error:
                logger.debug("%s: others have gone before finalize: %s", self._name, error)
        return late

    def __del__(self, logger: logging.Logger = logger) -> None:  # bound here: at the end of the interpreter modules are gone
        if getattr(self, "_finalized", True) or self._size < 0:
            return
        self._finalized = True
        logger.warning("communicator %s was dropped without finalize()", self._name)
        try:
            self._backend.finalize()
        except Exception as error:
            logger.debug("%s: %s", self._name, error)

    # -- Failure and recovery --

    def is_abort_supported(self) -> bool:
        """Whether `abort` does something with this back-end."""
        return self._backend.is_abort_supported()

    def abort(self) -> None:
        """Ends the communicator for all ranks, at once: blocked operations end with an error.  From any thread, any number of times.

        RuntimeError: the back-end cannot.
        """
        if not self._backend.is_abort_supported():
            raise RuntimeError(f"[TorchCommBackend]: abort not implemented for communicator:{self._name}")
        if self._failures.note("aborted", f"abort() was called at rank {self._rank}"):
            self._hooks.abort()
        self._abort_quietly()

    def _abort_quietly(self) -> None:
        try:
            self._backend.abort()
        except Exception as error:  # it never raises
            logger.debug("%s: abort: %s", self._name, error)

    def is_aborted(self) -> bool:
        """Whether it was aborted or has failed for good, since its beginning or the last successful `reconfigure`."""
        return self._failures.aborted

    def get_abort_info(self) -> Optional[AbortInfo]:
        """Why: the first reason."""
        return self._failures.info

    def get_init_handle(self) -> str:
        """This process's text for `reconfigure`, the same until the next success."""
        if not self._mask.reconfigure:
            raise RuntimeError(f"[TorchCommBackend]: getInitHandle not implemented for communicator:{self._name}")
        return str(self._backend.get_init_handle())

    def reconfigure(
        self, uuid: Any, init_handles: Iterable[str] = (), timeout: TimeoutLike = None, hints: Optional[Hints] = None
    ) -> TorchWork:
        """Blocks until the processes of these handles are the members, and returns a finished work; after an error what was goes on.

        A list gives the ranks; of a set the library takes an order on which all agree.  `uuid` is a whole number that was not used
        before.  All of the new members call it, with equal arguments, and nobody else.  `uuid` may be a `ReconfigureOptions`.
        """
        if not self._mask.reconfigure:
            raise RuntimeError(f"[TorchCommBackend]: reconfigure not implemented for communicator:{self._name}")
        if hasattr(uuid, "init_handles"):
            uuid, init_handles, timeout, hints = uuid.uuid, uuid.init_handles, timeout or uuid.timeout, hints or uuid.hints
        limits = self._limits(hints, timeout, None)
        with self._lock:
            if self._finalized:
                raise RuntimeError(f"communicator {self._name} is not initialized: it was finalized")
            handles = init_handles if isinstance(init_handles, (set, frozenset)) else list(init_handles)
            try:
                self._backend.reconfigure(uuid, handles, limits.seconds, limits.hints)
            except Exception as error:
                raise self._translate("reconfigure", error) from error
            for child in list(self._children):
                child._failures.note("aborted", f"its parent {self._name} was reconfigured")
                child._abort_quietly()
            self._children.clear()
            self._outputs.clear()
            self._failures.clear()
            self._read_membership()
            work = TorchWork()
            work._begin(self, "reconfigure", False, False, None)
            work._issued(None)
            return work

    # -- Hooks --

    def register_pre_hook(self, callback: Callable[..., Any]) -> RemovableHandle:
        """`callback(name, op_id, args)`, or `callback(args)`, before each operation, which it prevents by raising."""
        return self._hooks.add_pre(callback)

    def register_post_hook(self, callback: Callable[..., Any]) -> RemovableHandle:
        """`callback(op_id, args)`, or `callback(args)`, when an operation was issued; exceptions of `callback` are only logged."""
        return self._hooks.add_post(callback)

    def register_abort_hook(self, callback: Callable[[], Any]) -> RemovableHandle:
        """`callback()` before the communicator is aborted, or the process is."""
        return self._hooks.add_abort(callback)

    # -- Inside --

    @property
    def _watches(self) -> bool:
        """Whether the end of each work is to be told of, also if nobody waits."""
        return bool(self._options.abort_process_on_timeout_or_error or self._options.enable_reconfigure or self._hooks.has_abort)

    def _limits(self, hints: Optional[Hints], timeout: TimeoutLike, options: Any) -> Limits:
        return limits_of(self._options.seconds, self._options.hints, hints, timeout, options)

    def _ready(self, name: str) -> None:
        """RuntimeError: no operation can begin."""
        if self._finalized or self._size < 0:
            more = "it was finalized" if self._finalized else "call reconfigure first"
            raise RuntimeError(f"{name}: communicator {self._name} is not initialized: {more}")
        if self._failures.aborted:
            info = self._failures.info
            raise OperationError(
                f"{name}: communicator {self._name} was aborted: {info.reason if info else ''}: {info.context if info else ''}", "aborted"
            )

    def _run(
        self, name: OpName, fields: dict[str, Any], arguments: tuple[Any, ...], async_op: bool, hints: Optional[Hints],
        timeout: TimeoutLike, options: Any, checked: Callable[[], None], more: Optional[dict[str, Any]] = None,
    ) -> TorchWork:
        """One operation: checked, told of, issued, and waited for unless `async_op`; `more` are keywords that its back-end alone knows."""
        limits = self._limits(hints, timeout, options)
        work = TorchWork()
        with self._lock:
            self._ready(name.name)
            checked()
            if self._backend.built_in:
                for value in arguments:
                    label = next((label for label, field in fields.items() if field is value), "ops")
                    check.on_device(self._backend.device, value, label)
            op_id = self._hooks.before(name, {**fields, "async_op": async_op})
            ordered = name not in _MESSAGES and self._backend.built_in
            extents = self._order.prepare(fields) if ordered else None
            work._begin(self, name.name, async_op, not self._backend.built_in, arguments)
            self._works.add(work)
            try:
                with at_once if async_op else awaited:
                    inner = self._call(name.name, (*arguments, async_op), limits, more)
            except Exception as error:
                raise self._failed_call(name.name, error) from error
            work._issued(inner)
            if extents is not None and inner is not None:
                self._order.enter(work, extents)
            self._hooks.after(name, op_id, work)
        if not async_op:
            work.wait()
        return work

    def _failed_call(self, name: str, error: Exception) -> Exception:
        """What a call raises that was not even issued."""
        error = self._translate(name, error)
        self._work_failed(name, error)
        return error

    def _translate(self, name: str, error: BaseException) -> Any:
        return self._failures.translate(self._name, name, error)

    def _work_failed(self, name: str, error: BaseException) -> None:
        """An operation has failed: what that means for the communicator, and for the process."""
        self._failures.work_failed(self, name, error)


def _rank_of(value: Any) -> Any:
    """A whole number of any library; what is none as it is."""
    return operator.index(value) if hasattr(value, "__index__") and not isinstance(value, list) else value
