"""Hooks of a communicator: what is called before and after operations are issued, and before it is aborted."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import inspect
import itertools
import logging
import threading
from enum import IntEnum
from typing import Any, Callable, Optional

logger = logging.getLogger("pccl.comms")

FINALIZE_ID = 2**64 - 1


class OpName(IntEnum):
    """The operation that is called."""

    send = 0
    recv = 1
    broadcast = 2
    all_reduce = 3
    reduce = 4
    all_gather = 5
    all_gather_v = 6
    all_gather_single = 7
    reduce_scatter = 8
    reduce_scatter_v = 9
    reduce_scatter_single = 10
    all_to_all_single = 11
    all_to_all_v_single = 12
    all_to_all = 13
    barrier = 14
    scatter = 15
    gather = 16
    gather_single = 17
    split = 18
    new_window = 19
    finalize = 20
    batch_op_issue = 21

    def __str__(self) -> str:
        return f"OpName.{self.name}"

    def __format__(self, form: str) -> str:
        return format(str(self), form)


class _Args:
    """Fields of one call; also `op_name` and `op_id`, and `name` where no field is called so, for hooks of one argument."""

    __module__ = "pccl.comms"
    FIELDS: tuple[str, ...] = ()

    def __init__(self, name: OpName, op_id: int, fields: dict[str, Any]) -> None:
        self.name: Any = name
        self.op_name = name
        self.op_id = op_id
        for field, value in fields.items():
            setattr(self, field, value)

    def __repr__(self) -> str:
        fields = ", ".join(f"{field}={getattr(self, field, None)!r}" for field in self.FIELDS)
        return f"{type(self).__name__}({fields})"


_PEER = ("tensor", "peer", "async_op")
_ROOT = ("tensor", "root", "async_op")
_BOTH = ("input", "output", "async_op")
_BOTH_ROOT = ("input", "output", "root", "async_op")
_FIELDS = {
    OpName.send: _PEER, OpName.recv: _PEER, OpName.broadcast: _ROOT, OpName.reduce: _ROOT, OpName.all_reduce: ("tensor", "async_op"),
    OpName.all_gather: _BOTH, OpName.all_gather_v: _BOTH, OpName.all_gather_single: _BOTH, OpName.reduce_scatter: _BOTH,
    OpName.reduce_scatter_v: _BOTH, OpName.reduce_scatter_single: _BOTH, OpName.all_to_all: _BOTH, OpName.all_to_all_single: _BOTH,
    OpName.all_to_all_v_single: (*_BOTH, "input_split_sizes", "output_split_sizes"), OpName.scatter: _BOTH_ROOT,
    OpName.gather: _BOTH_ROOT, OpName.gather_single: _BOTH_ROOT, OpName.barrier: ("async_op",),
    OpName.batch_op_issue: ("num_ops", "async_op"), OpName.split: ("ranks", "name"), OpName.new_window: (), OpName.finalize: (),
}


def _camel(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


#: The classes of pre-hook arguments, by operation: SendPreHookArgs and so on.
PRE_ARGS: dict[OpName, type[_Args]] = {
    name: type(
        f"{_camel(name.name)}PreHookArgs", (_Args,), {"FIELDS": fields, "__module__": "pccl.comms", "__doc__": f"Before {name.name}."}
    )
    for name, fields in _FIELDS.items()
}


class _PostArgs:
    """After an operation was issued: `work` is its work, or the child of a split."""

    __module__ = "pccl.comms"

    def __init__(self, name: OpName, op_id: int, work: Any) -> None:
        self.name = self.op_name = name
        self.op_id = op_id
        self.work = work


POST_CLASSES: dict[str, type[_PostArgs]] = {
    name: type(name, (_PostArgs,), {"__module__": "pccl.comms", "__doc__": _PostArgs.__doc__})
    for name in ("CollectivePostHookArgs", "SplitPostHookArgs", "NewWindowPostHookArgs", "BatchOpIssuePostHookArgs", "FinalizePostHookArgs")
}
_POST_OF = {
    OpName.split: "SplitPostHookArgs", OpName.new_window: "NewWindowPostHookArgs", OpName.batch_op_issue: "BatchOpIssuePostHookArgs",
    OpName.finalize: "FinalizePostHookArgs",
}

_op_ids = itertools.count()


class RemovableHandle:
    """Of one registered hook; it need not be kept."""

    __module__ = "pccl.comms"

    def __init__(self, remove: Callable[[], None]) -> None:
        self._remove: Optional[Callable[[], None]] = remove

    def remove(self) -> None:
        """The hook is not called any more; the second time nothing."""
        remove, self._remove = self._remove, None
        if remove is not None:
            remove()


class Hooks:
    """Of one communicator, called in the order in which they were registered."""

    def __init__(self) -> None:
        self._pre: dict[int, Callable[[OpName, int, Any], Any]] = {}
        self._post: dict[int, Callable[[int, Any], Any]] = {}
        self._abort: dict[int, Callable[[], Any]] = {}
        self._keys = itertools.count()
        self._lock = threading.Lock()

    def add_pre(self, callback: Callable[..., Any]) -> RemovableHandle:
        """Of three arguments, or one."""
        alone = _positional(callable_only(callback)) == 1
        return self._add(self._pre, (lambda name, op_id, args: callback(args)) if alone else callback)

    def add_post(self, callback: Callable[..., Any]) -> RemovableHandle:
        """Of two arguments, or one."""
        alone = _positional(callable_only(callback)) == 1
        return self._add(self._post, (lambda op_id, args: callback(args)) if alone else callback)

    def add_abort(self, callback: Callable[[], Any]) -> RemovableHandle:
        """Of none."""
        return self._add(self._abort, callable_only(callback))

    @property
    def has_abort(self) -> bool:
        """Whether there is any abort hook."""
        return bool(self._abort)

    def _add(self, table: dict[int, Any], callback: Callable[..., Any]) -> RemovableHandle:
        with self._lock:
            key = next(self._keys)
            table[key] = callback
        return RemovableHandle(lambda: table.pop(key, None) and None)

    def before(self, name: OpName, fields: dict[str, Any]) -> int:
        """Calls pre hooks, whose exceptions prevent the operation; returns its id."""
        op_id = FINALIZE_ID if name is OpName.finalize else next(_op_ids)
        if self._pre:
            args = PRE_ARGS[name](name, op_id, fields)
            for hook in list(self._pre.values()):
                hook(name, op_id, args)
        return op_id

    def after(self, name: OpName, op_id: int, work: Any) -> None:
        """Calls post hooks, whose exceptions are only logged: the operation has begun, and its caller needs the work."""
        if self._post:
            args = POST_CLASSES[_POST_OF.get(name, "CollectivePostHookArgs")](name, op_id, work)
            for hook in list(self._post.values()):
                try:
                    hook(op_id, args)
                except Exception:
                    logger.exception("a post hook of %s failed", name.name)

    def abort(self) -> None:
        """Calls abort hooks, whose exceptions are only logged."""
        for hook in list(self._abort.values()):
            try:
                hook()
            except Exception:
                logger.exception("an abort hook failed")


def callable_only(callback: Any) -> Any:
    """The same.  TypeError: it cannot be called."""
    if not callable(callback):
        raise TypeError(f"callback is {callback!r}, a {type(callback).__name__}; pass a function")
    return callback


def _positional(callback: Callable[..., Any]) -> int:
    """How many arguments a callback takes by position, if that is certain; else 0."""
    try:
        parameters = inspect.signature(callback).parameters.values()
    except (TypeError, ValueError):
        return 0
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if any(parameter.kind is inspect.Parameter.VAR_POSITIONAL for parameter in parameters):
        return 0
    return sum(parameter.kind in kinds and parameter.default is inspect.Parameter.empty for parameter in parameters)
