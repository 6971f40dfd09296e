"""Batches, windows, registered memory and persistent all-gathers of a communicator."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any, Callable, Hashable, Optional, Sequence

from pccl.comms import arguments as check
from pccl.comms.backend import TorchCommBackend
from pccl.comms.batch import BatchSendRecv, P2POp, P2POpType
from pccl.comms.hooks.registry import Hooks, OpName
from pccl.comms.options import BatchP2POptions, Hints, Limits, TimeoutLike
from pccl.comms.order import Order
from pccl.comms.window import SharedMemoryAllocator, TorchCommWindow
from pccl.comms.work import TorchWork


class Memory:
    """Of `TorchComm`."""

    _name: str
    _rank: int
    _size: int
    _backend: TorchCommBackend
    _hooks: Hooks
    _lock: Any
    _mask: Any
    _order: Order
    _outputs: dict[Any, Any]  #: of persistent all-gathers, by handle
    _call: Callable[..., Any]
    _limits: Callable[..., Limits]
    _ready: Callable[[str], None]
    _run: Callable[..., TorchWork]
    _failed_call: Callable[[str, Exception], Exception]

    # -- Batches --

    def batch_op_create(self) -> BatchSendRecv:
        """An empty batch of sends and receives."""
        return BatchSendRecv(self)

    def batch_send(
        self, tensors: Sequence[Any], dst: int, async_op: bool = False, hints: Optional[Hints] = None, timeout: TimeoutLike = None
    ) -> TorchWork:
        """A batch of its own that sends all of them to `dst`."""
        check.many("tensors", tensors, "tensors")
        ops = [P2POp(P2POpType.SEND, tensor, dst) for tensor in tensors]
        return self._issue_batch(ops, async_op, BatchP2POptions(hints, timeout))

    def batch_recv(
        self, tensors: Sequence[Any], src: int, async_op: bool = False, hints: Optional[Hints] = None, timeout: TimeoutLike = None
    ) -> TorchWork:
        """A batch of its own that receives all of them from `src`."""
        check.many("tensors", tensors, "tensors")
        ops = [P2POp(P2POpType.RECV, tensor, src) for tensor in tensors]
        return self._issue_batch(ops, async_op, BatchP2POptions(hints, timeout))

    def _issue_batch(self, ops: Sequence[P2POp], async_op: bool, options: Optional[BatchP2POptions]) -> TorchWork:
        check.many("ops", ops, "P2POp")
        for op in ops:
            if not isinstance(op, P2POp):
                raise TypeError(f"ops has a {type(op).__name__}; pass P2POp, as batch.send and batch.recv add them")
        if not ops and not self._mask.empty_batch:
            raise RuntimeError("Cannot issue empty batch operation; a rank that takes no part issues none")

        def checked() -> None:
            for op in ops:
                check.rank("peer", op.peer, self._size)
                check.tensor("tensor", op.tensor)

        return self._run(OpName.batch_op_issue, {"num_ops": len(ops)}, (list(ops),), async_op, None, None, options, checked)

    # -- Windows --

    def new_window(self, tensor: Any = None) -> TorchCommWindow:
        """Collective: a window, with `tensor` registered at once if it is given."""
        with self._lock:
            self._ready("new_window")
            op_id = self._hooks.before(OpName.new_window, {})
            try:
                window = TorchCommWindow(self, self._backend.new_window())
            except Exception as error:
                raise self._failed_call("new_window", error) from error
            self._hooks.after(OpName.new_window, op_id, None)
        if tensor is not None:
            window.tensor_register(tensor)
        return window

    def get_mem_allocator(self) -> SharedMemoryAllocator:
        """Memory that windows share with processes on the same host."""
        return SharedMemoryAllocator()

    @property
    def mem_allocator(self) -> SharedMemoryAllocator:
        """The result of `get_mem_allocator`: memory for `TorchCommWindow.map_remote_tensor`."""
        return self.get_mem_allocator()

    def tensor_register(self, tensor: Any) -> None:
        """Announces memory that operations will use."""
        self._backend.tensor_register(tensor)

    def tensor_deregister(self, tensor: Any) -> None:
        """Takes that back."""
        self._backend.tensor_deregister(tensor)

    def get_device_transport(self) -> Any:
        """Of GPUs; RuntimeError on CPU."""
        return self._backend.get_device_transport()

    # -- All-gathers that are made ready once --

    def all_gather_p_init(self, output: Any, hints: Optional[Hints] = None, timeout: TimeoutLike = None) -> Any:
        """Keeps `output`, with room for each rank's input by rank, for all-gathers; returns their handle."""
        with self._lock:
            self._ready("all_gather_p_init")
            handle = self._call("all_gather_p_init", (output,), self._limits(hints, timeout, None))
            self._outputs[handle] = output
            return handle

    def all_gather_p_exec(
        self, handle: Any, input: Any, async_op: bool = False, hints: Optional[Hints] = None, timeout: TimeoutLike = None
    ) -> TorchWork:
        """Gathers `input` of each rank into the output of `handle`."""
        limits = self._limits(hints, timeout, None)
        output = self._outputs.get(handle) if isinstance(handle, Hashable) else None
        return self._issue_quietly(
            "all_gather_p_exec", lambda: self._call("all_gather_p_exec", (handle, input, async_op), limits), async_op, (input, output),
            {"input": input, "output": output},
        )

    def all_gather_p_free(self, handle: Any) -> None:
        """Lets go of the output."""
        self._backend.all_gather_p_free(handle)
        self._outputs.pop(handle, None)

    def _issue_quietly(
        self, name: str, call: Callable[[], Any], async_op: bool, keep: Any = None, collective: Optional[dict[str, Any]] = None
    ) -> TorchWork:
        """An operation that hooks are not told of; in the order of collectives, if it is one of these tensors."""
        work = TorchWork()
        with self._lock:
            self._ready(name)
            extents = self._order.prepare(collective) if collective is not None and self._backend.built_in else None
            work._begin(self, name, async_op, not self._backend.built_in, keep)  # type: ignore[arg-type]
            try:
                inner = call()
            except Exception as error:
                raise self._failed_call(name, error) from error
            work._issued(inner)
            if extents is not None and inner is not None:
                self._order.enter(work, extents)
        if not async_op:
            work.wait()
        return work
