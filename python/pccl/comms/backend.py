"""The interface of a back-end: the operations of one communicator, by position, as a Python program may write them too.

`TorchComm` checks arguments, counts, calls hooks and makes works; a back-end moves the data.  Each operation gets its tensors, ranks and
operator by position, then `async_op`, and by keyword `hints` and `timeout` (seconds) where it takes them.  It returns None when it is done,
or an object with `wait()`, which raises; better with `is_completed()`, `wait_for(seconds) -> bool`, and `when_done(callback)` too.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any, Callable, NamedTuple, NoReturn, Optional, Sequence

from pccl.comms.options import CommOptions

#: The operations of communicators, whose hooks have fields of their own.
OPERATIONS = (
    "send", "recv", "broadcast", "all_reduce", "reduce", "all_gather", "all_gather_v", "all_gather_single", "reduce_scatter",
    "reduce_scatter_v", "reduce_scatter_single", "all_to_all", "all_to_all_single", "all_to_all_v_single", "barrier", "scatter", "gather",
    "gather_single",
)


class Mask(NamedTuple):
    """The features that work under a back-end's name."""

    wait_blocking: bool = True       #: on works of asynchronous operations
    reconfigure: bool = False
    empty_batch: bool = False        #: is a finished work, no error
    finite_waits: bool = False       #: of c10d's works


Operation = Callable[..., Any]


def _missing(backend: "TorchCommBackend", name: str) -> NoReturn:
    if backend.built_in:
        raise RuntimeError(f"[TorchCommBackend]: {name} not implemented for communicator:{backend.get_comm_name()}")
    raise RuntimeError(f'Tried to call pure virtual function "TorchCommBackend::{name}"')


def _absent(name: str, takes: str) -> Operation:
    """What a back-end has to have."""

    def absent(self: "TorchCommBackend", *arguments: Any, **limits: Any) -> NoReturn:
        _missing(self, name)

    absent.__doc__ = f"A back-end has to have it.  Takes: {takes}."
    return absent


def _optional(name: str, takes: str) -> Operation:
    """What it may have."""

    def absent(self: "TorchCommBackend", *arguments: Any, **limits: Any) -> NoReturn:
        raise RuntimeError(f"[TorchCommBackend]: {name} not implemented for communicator:{self.get_comm_name()}")

    absent.__doc__ = f"A back-end may have it.  Takes: {takes}."
    return absent


def _by_gather(self: "TorchCommBackend", output: Any, input: Any, root: int, async_op: bool) -> Any:
    """Takes: output, input, root, async_op.  Where a back-end has only `gather`: its list are the chunks of `output`."""
    chunks = list(output.chunk(self.get_size())) if self.get_rank() == root else []
    return self.gather(chunks, input, root, async_op)


class TorchCommBackend:
    """The base of back-ends, one object for each communicator; all of it may be overridden.

    `register_backend(name, class)` makes a class of a program's own reachable by name.
    """

    __module__ = "pccl.comms"
    #: What works under its name.
    mask: Mask = Mask()
    #: Where tensors of a built-in one lie.
    device = "cpu"
    #: Texts of what is missing are those of a class that a program wrote.
    built_in = False

    # -- Life --

    def init(self, device: Any, name: str, options: CommOptions) -> None:
        """Collective: begins; returns when all ranks have."""
        _missing(self, "init")

    def finalize(self) -> None:
        """All that was issued has ended: ends."""
        _missing(self, "finalize")

    def get_rank(self) -> int:
        """This process's rank; -1 before the first `reconfigure`."""
        _missing(self, "get_rank")

    def get_size(self) -> int:
        """How many ranks there are; -1 before the first `reconfigure`."""
        _missing(self, "get_size")

    def get_ranks(self) -> list[int]:
        """The members' ranks in the communicator that this one comes of in the end, by rank."""
        return list(range(self.get_size()))

    def get_backend_name(self) -> str:
        """The back-end's name, as `TorchComm.get_backend` tells it."""
        return type(self).__name__

    def get_backend_version(self) -> str:
        """The back-end's version, a text."""
        return "unknown"

    def get_comm_name(self) -> str:
        """The communicator's name."""
        return ""

    def split(self, ranks: Sequence[int], name: str, options: CommOptions) -> Optional["TorchCommBackend"]:
        """Collective: the child of the listed ranks, in this order; None with an empty list."""
        _missing(self, "split")

    # -- Operations, by position; by keyword `timeout` and `hints`, where one takes them --

    send: Operation = _absent("send", "tensor, dst, async_op")
    recv: Operation = _absent("recv", "tensor, src, async_op")
    broadcast: Operation = _absent("broadcast", "tensor, root, async_op")
    all_reduce: Operation = _absent("all_reduce", "tensor, op, async_op")
    reduce: Operation = _absent("reduce", "tensor, root, op, async_op")
    all_gather: Operation = _absent("all_gather", "tensor_list, tensor, async_op")
    all_gather_v: Operation = _absent("all_gather_v", "tensor_list, tensor, async_op")
    all_gather_single: Operation = _absent("all_gather_single", "output, input, async_op")
    reduce_scatter: Operation = _absent("reduce_scatter", "output, input_list, op, async_op")
    reduce_scatter_v: Operation = _absent("reduce_scatter_v", "output, input_list, op, async_op")
    reduce_scatter_single: Operation = _absent("reduce_scatter_single", "output, input, op, async_op")
    all_to_all: Operation = _absent("all_to_all", "output_tensor_list, input_tensor_list, async_op")
    all_to_all_single: Operation = _absent("all_to_all_single", "output, input, async_op")
    all_to_all_v_single: Operation = _absent("all_to_all_v_single", "output, input, output_split_sizes, input_split_sizes, async_op")
    barrier: Operation = _absent("barrier", "async_op")
    scatter: Operation = _absent("scatter", "output_tensor, input_tensor_list, root, async_op")
    gather: Operation = _absent("gather", "output_tensor_list, input_tensor, root, async_op")
    gather_single: Operation = _by_gather
    batch_op_issue: Operation = _optional(
        "batch_op_issue", "ops, async_op: all of a batch's sends and receives at once; each has `type`, `tensor`, `peer`"
    )

    # -- More than operations --

    new_window: Operation = _optional("new_window", "Nothing: returns a window without memory; see `TorchCommWindow`")
    all_gather_p_init: Operation = _optional("all_gather_p_init", "output: returns a handle")
    all_gather_p_exec: Operation = _optional("all_gather_p_exec", "handle, input, async_op")
    all_gather_p_free: Operation = _optional("all_gather_p_free", "handle")
    tensor_register: Operation = _optional("tensor_register", "tensor")
    tensor_deregister: Operation = _optional("tensor_deregister", "tensor")
    get_device_transport: Operation = _optional("get_device_transport", "Nothing: returns that of a GPU")
    get_init_handle: Operation = _optional(
        "getInitHandle", "Nothing: returns a text that names this process's communicator in `reconfigure`"
    )
    reconfigure: Operation = _optional(
        "reconfigure", "uuid, init_handles, seconds, hints: blocks until their processes are the members, or nothing has changed"
    )
    abort: Operation = _optional(
        "abort", "Nothing: ends the communicator at once, for all of its members: from any thread, any number of times, and never raises"
    )
    get_hosts: Operation = _optional("get_hosts", "Nothing: returns where each member is, by rank; equal texts are one host")

    def set_timeout(self, timeout: Any) -> None:
        """The communicator's default has changed; each operation gets its timeout anyway."""

    def set_hints(self, hints: Any) -> None:
        """The communicator's hints have changed; each operation gets its own anyway."""

    def is_abort_supported(self) -> bool:
        """Whether `abort` does something."""
        return False
