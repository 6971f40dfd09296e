"""The flight recorder: the last operations of communicators, with where each stands, in the form that PyTorch's analyser reads."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import collections
import json
import os
import pickle
import threading
import time
from typing import Any, Optional

from pccl.comms import environment
from pccl.comms.arguments import communicator, whole_number
from pccl.comms.communicator import TorchComm
from pccl.comms.hooks import control_plane
from pccl.comms.hooks.registry import OpName, RemovableHandle
from pccl.comms.hooks.shapes import long_names, sizes_of, tensors_of
from pccl.comms.membership import library_version
from pccl.comms.work import TorchWork, WorkStatus

VERSION = "2.10"

#: Back-ends that PyTorch's analyser knows; others are written into files for it under the name of the one on CPU.
_ANALYSED = {"nccl", "ncclx", "xccl", "gloo", "rccl", "rcclx", "mccl", "hccl"}
_ANALYSED_AS = {"gather_single": "gather"}
#: It takes entries of one number, one behind the other, for one coalesced operation, also where one counts messages, the other collectives.
_APART = 1 << 40


class _Ring:
    """Entries of one recorder, or of all of a process."""

    def __init__(self, most: int) -> None:
        self.entries: collections.deque[dict[str, Any]] = collections.deque(maxlen=most)
        self.lock = threading.Lock()
        self.records = 0
        self.groups: dict[str, dict[str, str]] = {}
        self.status: dict[str, dict[str, int]] = {}
        self.group_ids: dict[str, int] = {}

    def reset(self) -> None:
        with self.lock:
            self.entries.clear()
            self.records = 0


_shared: Optional[_Ring] = None
_unhealthy = False
_first_prefix: Optional[str] = None  # of dumps


def is_healthy() -> bool:
    """Whether no recorded communicator of this process was aborted."""
    return not _unhealthy


class FlightRecorderHook:
    """Records operations of communicators and of those that they are split into.

    Not `isolated`: into the one ring of the process, of TORCHCOMM_FR_BUFFER_SIZE entries; else into one of `max_entries`, whose op ids
    begin at 0.
    """

    __module__ = "pccl.comms.hooks"

    def __init__(self, max_entries: int = 2048, isolated: bool = False) -> None:
        global _shared
        self._isolated = isolated
        if isolated:
            if whole_number("max_entries", max_entries) not in range(2**31):
                raise RuntimeError(f"max_entries is {max_entries}; pass a number from 0 to {2**31 - 1}")
            self._ring = _Ring(max_entries)
        else:
            if _shared is None:
                _shared = _Ring(int(environment.number("TORCHCOMM_FR_BUFFER_SIZE", 2000)))
            self._ring = _shared
        self._handles: list[RemovableHandle] = []

    # -- Which communicators --

    def register_with_comm(self, comm: TorchComm) -> None:
        """Records that communicator's operations from now on."""
        communicator("register_with_comm", comm)
        name = comm.get_name()
        control_plane.serve()
        with self._ring.lock:
            ranks = json.dumps(comm.get_ranks(), separators=(",", ":"))
            self._ring.groups[name] = {"name": name, "desc": comm.get_backend(), "ranks": ranks}
            self._ring.group_ids.setdefault(name, len(self._ring.group_ids))
            self._ring.status.setdefault(name, {
                "last_enqueued_collective": -1, "last_started_collective": -1, "last_completed_collective": -1,
            })
        counts = {"collective": 0, "p2p": 0}
        pending: dict[int, dict[str, Any]] = {}

        def before(operation: OpName, op_id: int, args: Any) -> None:
            if operation is not OpName.finalize and self._ring.entries.maxlen:
                pending[op_id] = self._enter(comm, operation, op_id, args, counts)

        def after(op_id: int, args: Any) -> None:
            entry = pending.pop(op_id, None)
            outcome = getattr(args, "work", None)
            if isinstance(outcome, TorchComm):
                self.register_with_comm(outcome)
            if entry is None:
                return
            if isinstance(outcome, TorchWork):
                outcome.register_callback("start", lambda _: self._started(name, entry))
                outcome.register_callback("end", lambda work: self._ended(name, entry, work))
            else:
                self._started(name, entry)
                self._completed(name, entry)

        def aborting() -> None:
            global _unhealthy
            _unhealthy = True
            if comm.get_options().abort_process_on_timeout_or_error:
                time.sleep(environment.number("TORCHCOMM_HEALTH_CHECK_WAIT_MS", 15000) / 1000)

        self._handles += [comm.register_pre_hook(before), comm.register_post_hook(after), comm.register_abort_hook(aborting)]

    def unregister(self) -> None:
        """Records nothing any more; what is there stays."""
        while self._handles:
            self._handles.pop().remove()

    # -- What is there --

    def is_enabled(self) -> bool:
        """Whether it is registered with a communicator and has room for entries."""
        return bool(self._handles and self._ring.entries.maxlen)

    def size(self) -> int:
        """How many entries there are."""
        return len(self._ring.entries)

    def __len__(self) -> int:
        return self.size()

    def __bool__(self) -> bool:
        return True

    def reset(self) -> None:
        """Forgets all entries."""
        self._ring.reset()

    def dump_json(self, include_completed: bool = True) -> str:
        """All of it as a text."""
        return json.dumps(self._dump(include_completed))

    def dump_file(self, rank: int, include_completed: bool = True) -> str:
        """Writes it as a file for PyTorch's analyser (`torchfrtrace`), and returns its path: TORCHCOMM_FR_DUMP_TEMP_FILE and the rank.

        The first dump of a process reads the variable; each dump reads it where TORCHCOMM_FR_DUMP_DYNAMIC_FILE_NAME is true.  Batches,
        of which the analyser would want each message, are left out.
        """
        path = f"{_prefix()}{whole_number('rank', rank)}"
        with open(path, "wb") as file:
            pickle.dump(self.dump_for_analyser(include_completed), file)
        return path

    def dump_for_analyser(self, include_completed: bool = True) -> dict[str, Any]:
        """The content that `dump_file` writes."""
        dump = self._dump(include_completed)
        known = [entry for entry in dump.get("entries", []) if not entry["profiling_name"].endswith(":batch_op_issue")]
        dump["entries"] = [_for_analyser(entry) for entry in known]
        return dump

    def _dump(self, include_completed: bool) -> dict[str, Any]:
        with self._ring.lock:
            entries = [dict(entry) for entry in self._ring.entries if include_completed or not entry["retired"]]
            dump: dict[str, Any] = {
                "version": VERSION,
                "comm_lib_version": library_version(),
                "pg_config": {name: dict(group) for name, group in self._ring.groups.items()},
                "pg_status": {str(self._ring.group_ids[name]): dict(status) for name, status in self._ring.status.items()},
            }
        if entries:
            dump["entries"] = entries
        return dump

    # -- Entries --

    def _enter(self, comm: TorchComm, operation: OpName, op_id: int, args: Any, counts: dict[str, int]) -> dict[str, Any]:
        is_p2p = operation in (OpName.send, OpName.recv, OpName.batch_op_issue)
        inputs, outputs = tensors_of(args)
        name, thread = operation.name, threading.current_thread()
        if operation is OpName.send:
            name = f"send {comm.get_rank()}->{args.peer}"
        elif operation is OpName.recv:
            name = f"recv {comm.get_rank()}<-{args.peer}"
        with self._ring.lock:
            counts["p2p" if is_p2p else "collective"] += 1
            self._ring.records += 1
            entry: dict[str, Any] = {
                "record_id": self._ring.records - 1, "pg_id": self._ring.group_ids[comm.get_name()],
                "process_group": [comm.get_name(), comm.get_backend()], "collective_seq_id": counts["collective"],
                "p2p_seq_id": counts["p2p"], "op_id": self._ring.records - 1 if self._isolated else op_id,
                "profiling_name": f"{comm.get_backend()}:{name}",
                "time_created_ns": time.time_ns(), "timeout_ms": int(comm.get_options().seconds * 1000),
                "thread_id": str(threading.get_native_id()), "thread_name": thread.name,
                "input_sizes": sizes_of(inputs), "output_sizes": sizes_of(outputs),
                "input_dtypes": long_names(inputs), "output_dtypes": long_names(outputs),
                "state": "scheduled", "time_discovered_started_ns": 0, "time_discovered_completed_ns": 0,
                "retired": False, "is_p2p": is_p2p,
            }
            self._ring.entries.append(entry)
            self._ring.status[comm.get_name()]["last_enqueued_collective"] = counts["collective"]
        return entry

    def _started(self, group: str, entry: dict[str, Any]) -> None:
        with self._ring.lock:
            entry["state"] = "started"
            entry["time_discovered_started_ns"] = time.time_ns()
            self._ring.status[group]["last_started_collective"] = entry["collective_seq_id"]

    def _ended(self, group: str, entry: dict[str, Any], work: TorchWork) -> None:
        if work._status is WorkStatus.COMPLETED:
            self._completed(group, entry)

    def _completed(self, group: str, entry: dict[str, Any]) -> None:
        with self._ring.lock:
            now = time.time_ns()
            entry.update(state="completed", retired=True, time_discovered_completed_ns=now)
            entry["duration_ms"] = (now - entry["time_discovered_started_ns"]) / 1e6
            self._ring.status[group]["last_completed_collective"] = entry["collective_seq_id"]


def _prefix() -> str:
    """The path of dumps without the rank."""
    global _first_prefix
    prefix = _first_prefix
    if prefix is None or environment.flag("TORCHCOMM_FR_DUMP_DYNAMIC_FILE_NAME"):
        prefix = environment.text("TORCHCOMM_FR_DUMP_TEMP_FILE")
        if prefix is None:
            cache = os.path.join(os.environ.get("XDG_CACHE_HOME", os.path.expanduser("~/.cache")), "torch")
            os.makedirs(cache, exist_ok=True)
            prefix = os.path.join(cache, "comm_lib_trace_rank_")
        if _first_prefix is None:
            _first_prefix = prefix
    return prefix


def _for_analyser(entry: dict[str, Any]) -> dict[str, Any]:
    """With names that it knows."""
    backend, _, operation = entry["profiling_name"].partition(":")
    operation = _ANALYSED_AS.get(operation, operation)
    apart = entry["p2p_seq_id"] + _APART
    return {**entry, "profiling_name": f"{backend if backend in _ANALYSED else 'gloo'}:{operation}", "p2p_seq_id": apart, "frames": []}
