"""A log of what communicators do, one line for each thing, short enough to be kept for all of a run."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import itertools
import threading
import time
import weakref
from typing import Any, Sequence

from pccl.buffers import as_buffer
from pccl.comms.arguments import communicator
from pccl.comms.communicator import TorchComm
from pccl.comms.hooks.registry import OpName
from pccl.comms.hooks.shapes import SHORT, count_of, datatype_of, tensors_of
from pccl.comms.reduce_op import RedOpType
from pccl.comms.work import TorchWork

_REDUCTIONS = {RedOpType.PRODUCT: "prod"}


class clog:  # noqa: N801 - the interface's name
    """Writes to the file `output`: `events` "ALL" or "LIFECYCLE" add starts, ends and waits to what was called; `verbose` "buffers" adds
    addresses."""

    __module__ = "pccl.comms.hooks"

    def __init__(self, output: str, events: Any = "ALL", verbose: Sequence[str] = ()) -> None:
        if isinstance(output, int):  # open would take it for a descriptor
            raise TypeError(f"clog: output is {output!r}, a {type(output).__name__}; pass the path of a file")
        for name, given in (("events", events), ("verbose", verbose)):
            if not hasattr(given, "__iter__"):
                raise TypeError(f"clog: {name} is {given!r}, a {type(given).__name__}; pass a text, or a list of them")
        asked = {events} if isinstance(events, str) else set(events)
        unknown = asked - {"ALL", "LIFECYCLE"} - {""}
        if unknown:
            raise ValueError(f"clog: events {sorted(unknown)} are none of ALL, LIFECYCLE")
        self._lifecycle = bool(asked & {"ALL", "LIFECYCLE"})
        self._buffers = "buffers" in verbose
        self._file = open(output, "w", encoding="utf-8")
        self._lock = threading.Lock()
        self._base = time.time()
        self._comms: "weakref.WeakSet[TorchComm]" = weakref.WeakSet()
        self._signatures: dict[str, int] = {}
        self._works = itertools.count()
        self._open: dict[str, int] = {}
        self._line(f"V|1|base_timestamp={self._base:.3f}")

    def register_with_comm(self, comm: TorchComm) -> None:
        """Writes down what that communicator and those split off it do."""
        communicator("register_with_comm", comm)
        if comm in self._comms:
            raise RuntimeError(f"clog: communicator {comm.get_name()} is already registered")
        self._line(f"new_comm|comm={comm.get_name()}|rank={comm.get_rank()}|world_size={comm.get_size()}")
        self._begin(comm)

    def _begin(self, comm: TorchComm) -> None:
        self._comms.add(comm)
        self._open[comm.get_name()] = 0
        calls: dict[int, str] = {}
        ranks: dict[int, list[int]] = {}

        def before(name: OpName, op_id: int, args: Any) -> None:
            if name is OpName.split:
                ranks[op_id] = args.ranks
            elif name not in (OpName.finalize, OpName.new_window):
                calls[op_id] = self._signature(comm, name, args)
            elif name is OpName.finalize and self._open[comm.get_name()]:
                self._line(f"WARN|leaked_work|comm={comm.get_name()}|count={self._open[comm.get_name()]}")

        def after(op_id: int, args: Any) -> None:
            outcome = getattr(args, "work", None)
            if isinstance(outcome, TorchComm):
                listed = ",".join(map(str, ranks.pop(op_id, [])))
                self._line(f"split|parent={comm.get_name()}|child={outcome.get_name()}|ranks={listed}")
                self._begin(outcome)
            elif isinstance(outcome, TorchWork) and op_id in calls:
                self._issued(comm.get_name(), calls.pop(op_id), outcome)

        comm.register_pre_hook(before)
        comm.register_post_hook(after)

    def _issued(self, comm: str, call: str, work: TorchWork) -> None:
        number = next(self._works)
        self._line(f"{call}|Q|work_id={number}|{self._since()}")
        if not self._lifecycle:
            return
        with self._lock:
            self._open[comm] += 1
        work.register_callback("start", lambda _: self._line(f"{call}|S|{self._since()}"))
        work.register_callback("end", lambda _: self._ended(comm, call))
        if work._async:
            work.register_callback("before_wait", lambda _: self._line(f"{call}|W|{self._since()}"))

    def _ended(self, comm: str, call: str) -> None:
        with self._lock:
            self._open[comm] -= 1
        self._line(f"{call}|E|{self._since()}")

    def _signature(self, comm: TorchComm, name: OpName, args: Any) -> str:
        fields = [f"sig|{name.name}"]
        inputs, outputs = tensors_of(args)
        for label, field, tensors in (("in", "input", inputs), ("out", "output", outputs)):
            if tensors:
                several = isinstance(getattr(args, field, None), (list, tuple))
                fields.append(f"{label}_count{'s' if several else ''}=" + ",".join(str(count_of(tensor)) for tensor in tensors))
        if inputs or outputs:
            fields.append(f"dtype={SHORT.get(datatype_of((inputs or outputs)[0]), 'other')}")
        op = getattr(args, "op", None)
        if op is not None:
            fields.append(f"red_op={_REDUCTIONS.get(op.type, op.type.name.lower())}")
        for label, field in (("in_splits", "input_split_sizes"), ("out_splits", "output_split_sizes")):
            if hasattr(args, field):
                fields.append(f"{label}=" + ",".join(map(str, getattr(args, field))))
        fields += [f"{label}={getattr(args, label)}" for label in ("root", "peer", "num_ops") if hasattr(args, label)]
        if self._buffers:
            fields += [
                f"{label}=" + ",".join(hex(as_buffer(tensor, any_device=True).address) for tensor in tensors)
                for label, tensors in (("in_ptrs", inputs), ("out_ptrs", outputs)) if tensors
            ]
        fields += [f"async_op={'t' if args.async_op else 'f'}", f"comm={comm.get_name()}"]
        text = "|".join(fields)
        with self._lock:
            known = self._signatures.get(text)
            number = self._signatures.setdefault(text, len(self._signatures))
        if known is None:
            self._line(f"C{number}|{text}")
        return f"C{number}"

    def _since(self) -> str:
        return f"+{time.time() - self._base:.3f}"

    def _line(self, text: str) -> None:
        with self._lock:
            if not self._file.closed:
                self._file.write(text + "\n")
                self._file.flush()

    def close(self) -> None:
        """Closes the file; what comes later is not written."""
        with self._lock:
            self._file.close()
