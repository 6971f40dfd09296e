"""What a back-end is: the operations of one communicator, by position, as a Python program may write them too.

`TorchComm` checks arguments, counts, calls hooks and makes works; a back-end moves the data.  Each operation gets its tensors, ranks and
operator by position, then `async_op`, and by keyword `hints` and `timeout` (seconds) where it takes them.  It returns None when it is done,
or an object with `wait()`, which raises; better with `is_completed()`, `wait_for(seconds) -> bool`, and `when_done(callback)` too.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any, NamedTuple, NoReturn, Optional, Sequence

from pccl.comms.options import CommOptions

#: The operations of communicators, whose hooks have fields of their own.
OPERATIONS = (
    "send", "recv", "broadcast", "all_reduce", "reduce", "all_gather", "all_gather_v", "all_gather_single", "reduce_scatter",
    "reduce_scatter_v", "reduce_scatter_single", "all_to_all", "all_to_all_single", "all_to_all_v_single", "barrier", "scatter", "gather",
    "gather_single",
)


class Mask(NamedTuple):
    """What works under a back-end's name."""

    wait_blocking: bool = True       #: on works of asynchronous operations
    reconfigure: bool = False
    empty_batch: bool = False        #: is a finished work, no error
    monitored_barrier: bool = True


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
        self._missing("init")

    def finalize(self) -> None:
        """All that was issued has ended: ends."""
        self._missing("finalize")

    def get_rank(self) -> int:
        """This process's rank; -1 before the first `reconfigure`."""
        self._missing("get_rank")

    def get_size(self) -> int:
        """How many ranks there are; -1 before the first `reconfigure`."""
        self._missing("get_size")

    def get_ranks(self) -> list[int]:
        """The members' ranks in the communicator that this one comes of in the end, by rank."""
        return list(range(self.get_size()))

    def get_backend_name(self) -> str:
        """Its name."""
        return type(self).__name__

    def get_backend_version(self) -> str:
        """Its version."""
        return "unknown"

    def get_comm_name(self) -> str:
        """The communicator's name."""
        return ""

    def split(self, ranks: Sequence[int], name: str, options: CommOptions) -> Optional["TorchCommBackend"]:
        """Collective: the child of the listed ranks, in this order; None with an empty list."""
        self._missing("split")

    # -- Operations: tensors, ranks, operator, async_op --

    def send(self, tensor: Any, dst: int, async_op: bool) -> Any:
        self._missing("send")

    def recv(self, tensor: Any, src: int, async_op: bool) -> Any:
        self._missing("recv")

    def broadcast(self, tensor: Any, root: int, async_op: bool) -> Any:
        self._missing("broadcast")

    def all_reduce(self, tensor: Any, op: Any, async_op: bool) -> Any:
        self._missing("all_reduce")

    def reduce(self, tensor: Any, root: int, op: Any, async_op: bool) -> Any:
        self._missing("reduce")

    def all_gather(self, tensor_list: Any, tensor: Any, async_op: bool) -> Any:
        self._missing("all_gather")

    def all_gather_v(self, tensor_list: Any, tensor: Any, async_op: bool) -> Any:
        self._missing("all_gather_v")

    def all_gather_single(self, output: Any, input: Any, async_op: bool) -> Any:
        self._missing("all_gather_single")

    def reduce_scatter(self, output: Any, input_list: Any, op: Any, async_op: bool) -> Any:
        self._missing("reduce_scatter")

    def reduce_scatter_v(self, output: Any, input_list: Any, op: Any, async_op: bool) -> Any:
        self._missing("reduce_scatter_v")

    def reduce_scatter_single(self, output: Any, input: Any, op: Any, async_op: bool) -> Any:
        self._missing("reduce_scatter_single")

    def all_to_all_single(self, output: Any, input: Any, async_op: bool) -> Any:
        self._missing("all_to_all_single")

    def all_to_all_v_single(self, output: Any, input: Any, output_split_sizes: Any, input_split_sizes: Any, async_op: bool) -> Any:
        self._missing("all_to_all_v_single")

    def all_to_all(self, output_tensor_list: Any, input_tensor_list: Any, async_op: bool) -> Any:
        self._missing("all_to_all")

    def barrier(self, async_op: bool) -> Any:
        self._missing("barrier")

    def scatter(self, output_tensor: Any, input_tensor_list: Any, root: int, async_op: bool) -> Any:
        self._missing("scatter")

    def gather(self, output_tensor_list: Any, input_tensor: Any, root: int, async_op: bool) -> Any:
        self._missing("gather")

    def gather_single(self, output: Any, input: Any, root: int, async_op: bool) -> Any:
        """By `gather` where a back-end has only that: its list are the chunks of `output`."""
        chunks = list(output.chunk(self.get_size())) if self.get_rank() == root else []
        return self.gather(chunks, input, root, async_op)

    def batch_op_issue(self, ops: Sequence[Any], async_op: bool) -> Any:
        """All of a batch's sends and receives at once; `ops` have `type`, `tensor`, `peer`."""
        self._optional("batch_op_issue")

    # -- More than operations --

    def new_window(self) -> Any:
        """A window without memory; see `pccl.comms.window`."""
        self._optional("new_window")

    def all_gather_p_init(self, output: Any) -> Any:
        self._optional("all_gather_p_init")

    def all_gather_p_exec(self, handle: Any, input: Any, async_op: bool) -> Any:
        self._optional("all_gather_p_exec")

    def all_gather_p_free(self, handle: Any) -> None:
        self._optional("all_gather_p_free")

    def tensor_register(self, tensor: Any) -> None:
        self._optional("tensor_register")

    def tensor_deregister(self, tensor: Any) -> None:
        self._optional("tensor_deregister")

    def get_device_transport(self) -> Any:
        self._optional("get_device_transport")

    def set_timeout(self, timeout: Any) -> None:
        """The communicator's default has changed; each operation is told its timeout anyway."""

    def set_hints(self, hints: Any) -> None:
        """As `set_timeout`."""

    def is_abort_supported(self) -> bool:
        """Whether `abort` does something."""
        return False

    def abort(self) -> None:
        """Ends the communicator at once, for all of its members: from any thread, any number of times, and never raises."""
        self._optional("abort")

    def get_init_handle(self) -> str:
        self._optional("getInitHandle")

    def reconfigure(self, uuid: int, init_handles: Any, timeout: float, hints: Any) -> None:
        """Blocks until the members of `init_handles` are this communicator's, or nothing has changed."""
        self._optional("reconfigure")

    # -- What is missing --

    def _missing(self, name: str) -> NoReturn:
        if self.built_in:
            self._optional(name)
        raise RuntimeError(f'Tried to call pure virtual function "TorchCommBackend::{name}"')

    def _optional(self, name: str) -> NoReturn:
        raise RuntimeError(f"[TorchCommBackend]: {name} not implemented for communicator:{self.get_comm_name()}")
