"""Windows: a tensor of each rank that the others write with `put`, and read where they share its memory; and signals about it."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import json
from enum import IntEnum
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from pccl.buffers import Buffer
from pccl.comms import arguments as check
from pccl.comms import handles
from pccl.comms.options import Hints, OperationOptions, TimeoutLike
from pccl.comms.shared_memory import Segment, SharedMemoryAllocator, clone, mapped, of_torch, segment_of, tensor_over
from pccl.comms.tensors import buffer_of, device_of, is_contiguous, shape_of
from pccl.comms.work import TorchWork
from pccl.types import DataType

if TYPE_CHECKING:
    from pccl.comms.memory import Memory

__all__ = ["SharedMemoryAllocator", "TorchCommWinAccessType", "TorchCommWindow", "TorchCommWindowAttr"]


class TorchCommWinAccessType(IntEnum):
    """How a rank's part of a window is reached from here."""

    WIN_ACCESS_TYPE_UNIFIED = 0   #: mapped: `map_remote_tensor` is its memory
    WIN_ACCESS_TYPE_SEPARATE = 1  #: by messages: `put` writes it


class TorchCommWindowAttr:
    """Of one rank's part."""

    __module__ = "pccl.comms"

    def __init__(self, access_type: TorchCommWinAccessType) -> None:
        self.access_type = access_type


class _Part(NamedTuple):
    """One rank's tensor, as it has told."""

    shape: list[int]
    datatype: DataType
    memory: Any    #: mapped here; None where it is not
    offset: int

    @property
    def nbytes(self) -> int:
        count = self.datatype.itemsize
        for length in self.shape:
            count *= length
        return count


class TorchCommWindow:
    """Made by `TorchComm.new_window`.  Offsets count elements of the destination's tensor.

    Data of a `put` is there when a later `signal` of the same rank was waited for; n signals satisfy n waits.
    """

    __module__ = "pccl.comms"

    def __init__(self, comm: "Memory", window: Any) -> None:
        self._comm = comm
        self._window = window
        self._tensor: Any = None
        self._buffer: Optional[Buffer] = None
        self._owning = True
        self._parts: list[_Part] = []
        self._device = ""
        self._handle = handles.enter(self, "window")

    # -- Its memory --

    def tensor_register(self, tensor: Any, owning: bool = True) -> None:
        """Collective: this rank's part is `tensor`, which is kept unless `owning` is false; sizes may differ from rank to rank."""
        if tensor is None:
            raise RuntimeError("tensor_register: a valid tensor is required, and it is None")
        if self._buffer is not None:
            raise RuntimeError("Double registration: the window has a tensor; call tensor_deregister first")
        if not is_contiguous(tensor):
            raise RuntimeError("tensor_register: contiguous tensor required; pass a contiguous copy")
        buffer = buffer_of(tensor, "tensor", True)
        segment = segment_of(buffer)
        said = json.dumps([list(shape_of(tensor)), buffer.datatype.name, segment and list(segment)]).encode()
        self._comm._ready("tensor_register")
        try:
            heard = self._window.register(buffer, said)
        except Exception as error:
            raise self._comm._failed_call("tensor_register", error) from error
        self._buffer, self._owning, self._device = buffer, owning, device_of(tensor)
        self._tensor = tensor
        self._parts = [self._part(rank, json.loads(text)) for rank, text in enumerate(heard)]

    def _part(self, rank: int, told: Any) -> _Part:
        shape, name, where = told
        part = _Part(shape, DataType[name], None, 0)
        if where is None or rank == self._comm._rank:
            return part
        segment = Segment(*where)
        return part._replace(memory=mapped(segment, part.nbytes), offset=segment.offset)

    def tensor_deregister(self) -> None:
        """Collective: nobody reaches the tensor any more."""
        if self._buffer is None:
            raise RuntimeError("Double deregistration: the window has no tensor")
        try:
            self._window.deregister()
        except Exception as error:
            raise self._comm._failed_call("tensor_deregister", error) from error
        finally:
            self._tensor = self._buffer = None
            self._parts = []

    def get_size(self) -> int:
        """Bytes of this rank's tensor; 0 if there is none."""
        return 0 if self._buffer is None else self._buffer.nbytes

    def get_tensor(self) -> Any:
        """This rank's tensor; None if there is none, or it is not owned."""
        return self._tensor if self._owning else None

    @property
    def dtype(self) -> Any:
        """Of this rank's tensor."""
        return None if self._tensor is None else getattr(self._tensor, "dtype", self._buffer and self._buffer.datatype)

    @property
    def shape(self) -> Any:
        """Of this rank's tensor."""
        return None if self._tensor is None else getattr(self._tensor, "shape", shape_of(self._tensor))

    @property
    def device(self) -> Any:
        """Of this rank's tensor."""
        return None if self._tensor is None else getattr(self._tensor, "device", self._device)

    # -- One rank's own calls --

    def put(
        self, tensor: Any, dst_rank: int, target_offset_nelems: int, async_op: bool = False, hints: Optional[Hints] = None,
        timeout: TimeoutLike = None, *, options: Optional[OperationOptions] = None,
    ) -> TorchWork:
        """Writes `tensor` into the part of `dst_rank`, from that element on; its end means that it is there."""
        part = self._of("put", "dst_rank", dst_rank)
        if tensor is None:
            raise RuntimeError("put: a valid tensor is required, and it is None")
        if not is_contiguous(tensor):
            raise RuntimeError("put: contiguous tensor required; pass a contiguous copy")
        if device_of(tensor) != self._device:
            raise RuntimeError(f"put: Device mismatch: tensor is on {device_of(tensor)}, the window on {self._device}")
        source = buffer_of(tensor, "tensor")
        first = self._within("put", part, dst_rank, target_offset_nelems, source.nbytes)
        limits = self._comm._limits(hints, timeout, options)
        return self._comm._issue_quietly(
            "put", lambda: self._window.put(source, dst_rank, first, async_op, limits.seconds), async_op, (self, tensor)
        )

    def get(
        self, tensor: Any, src_rank: int, source_offset_nelems: int, async_op: bool = False, hints: Optional[Hints] = None,
        timeout: TimeoutLike = None, *, options: Optional[OperationOptions] = None,
    ) -> TorchWork:
        """Reads from the part of `src_rank`, from that element on, as many bytes as `tensor` has, into it."""
        part = self._of("get", "src_rank", src_rank)
        check.tensor("tensor", tensor)
        target = buffer_of(tensor, "tensor", True)
        first = self._within("get", part, src_rank, source_offset_nelems, target.nbytes)
        limits = self._comm._limits(hints, timeout, options)
        return self._comm._issue_quietly(
            "get", lambda: self._window.get(target, src_rank, first, async_op, limits.seconds), async_op, (self, tensor)
        )

    def fetch_add(self, addend: int, dst_rank: int, target_offset_nelems: int) -> int:
        """Adds to an element of the part of `dst_rank`, which no other `fetch_add` comes between; blocks, and returns what was there before.

        RuntimeError: its tensor is not of int32 or int64, or does not begin at a multiple of 8 bytes.
        """
        part = self._of("fetch_add", "dst_rank", dst_rank)
        if part.datatype not in (DataType.INT32, DataType.INT64):
            raise RuntimeError(f"fetch_add: Invalid scalar type: the part of rank {dst_rank} is of {part.datatype.name}; use int32 or int64")
        first = self._within("fetch_add", part, dst_rank, target_offset_nelems, part.datatype.itemsize)
        self._comm._ready("fetch_add")
        try:
            return int(self._window.fetch_add(addend, dst_rank, first, part.datatype))
        except Exception as error:
            raise self._comm._failed_call("fetch_add", error) from error

    def _within(self, function: str, part: _Part, rank: int, offset: int, nbytes: int) -> int:
        """The byte at which an element begins.  RuntimeError: what follows is not all in the part."""
        first = check.whole_number("offset", offset) * part.datatype.itemsize
        if offset < 0 or first + nbytes > part.nbytes:
            raise RuntimeError(
                f"{function}: {nbytes} bytes at element {offset} exceeds the window size of rank {rank}, {part.nbytes} bytes"
            )
        return first

    def signal(
        self, peer_rank: Optional[int] = None, async_op: bool = False, hints: Optional[Hints] = None, timeout: TimeoutLike = None, *,
        dst_rank: Optional[int] = None, options: Optional[OperationOptions] = None,
    ) -> TorchWork:
        """Tells `peer_rank` that all that was put there before is done."""
        peer = dst_rank if peer_rank is None else peer_rank
        if peer is None:
            raise TypeError("signal: pass peer_rank")
        self._of("signal", "peer_rank", peer)
        limits = self._comm._limits(hints, timeout, options)
        return self._comm._issue_quietly("signal", lambda: self._window.signal(peer, async_op, limits.seconds), async_op, self)

    def wait_signal(
        self, peer_rank: int, async_op: bool = False, hints: Optional[Hints] = None, timeout: TimeoutLike = None, *,
        options: Optional[OperationOptions] = None,
    ) -> TorchWork:
        """Ends with a signal of `peer_rank` that no other wait has taken."""
        self._of("wait_signal", "peer_rank", peer_rank)
        limits = self._comm._limits(hints, timeout, options)
        return self._comm._issue_quietly(
            "wait_signal", lambda: self._window.wait_signal(peer_rank, async_op, limits.seconds), async_op, self
        )

    def get_attr(self, peer_rank: int) -> TorchCommWindowAttr:
        """How that rank's part is reached."""
        part = self._of("get_attr", "peer_rank", peer_rank)
        unified = part.memory is not None or peer_rank == self._comm._rank
        return TorchCommWindowAttr(
            TorchCommWinAccessType.WIN_ACCESS_TYPE_UNIFIED if unified else TorchCommWinAccessType.WIN_ACCESS_TYPE_SEPARATE
        )

    def map_remote_tensor(self, rank: int) -> Any:
        """The tensor of `rank`, in its own memory: this rank's always, others' where the access is unified; until deregistration."""
        part = self._of("map_remote_tensor", "rank", rank)
        if rank == self._comm._rank:
            return self._tensor
        if part.memory is None:
            raise RuntimeError(
                f"map_remote_tensor: the part of rank {rank} is WIN_ACCESS_TYPE_SEPARATE: on another host, or not of "
                "comm.get_mem_allocator()"
            )
        return tensor_over(part.memory, part.offset, part.shape, part.datatype, of_torch(self._tensor))

    def _of(self, function: str, name: str, rank: int) -> _Part:
        if self._buffer is None:
            raise RuntimeError(f"{function}: a valid tensor is required; call tensor_register first")
        check.rank(name, rank, len(self._parts))
        return self._parts[rank]

    # -- Of GPUs --

    def get_device_window(self, signal_count: int = -1, counter_count: int = -1, barrier_count: int = 1) -> int:
        """RuntimeError: of GPUs."""
        raise RuntimeError("get_device_window is not yet supported by this backend")

    def register_local_buffer(self, tensor: Any) -> int:
        """RuntimeError: of GPUs."""
        raise RuntimeError("register_local_buffer is not yet supported by this backend")

    def deregister_local_buffer(self, handle: int) -> None:
        """RuntimeError: of GPUs."""
        raise RuntimeError("deregister_local_buffer is not yet supported by this backend")

    # -- Copies --

    def __copy__(self) -> "TorchCommWindow":
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "TorchCommWindow":
        """Collective: a window of its own, with a copy of the tensor."""
        window = self._comm.new_window()
        memo[id(self)] = window
        if self._tensor is not None:
            memo[id(self._tensor)] = clone(self._tensor)
            window.tensor_register(memo[id(self._tensor)], self._owning)
        return window
