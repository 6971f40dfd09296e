"""Memory of each member that the others write, read and count in without its program."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import threading
from typing import Any, NamedTuple, Optional

from pccl._native import ffi, lib
from pccl.arguments import call, mistake, whole
from pccl.buffers import as_buffer
from pccl.engine.operation import Operation
from pccl.engine.process import interruptible
from pccl.engine.views import held, mapped_again
from pccl.engine.world import World, milliseconds
from pccl.errors import check, make_error
from pccl.types import DataType, Result, WindowRights


class WindowPart(NamedTuple):
    """A member's part of a window."""

    peer: int       #: id
    rank: int       #: as ranks were when the window was made
    nbytes: int     #: how large it is
    rights: WindowRights  #: what others may do with it
    lost: bool      #: whether its member was lost
    address: int    #: where this process reaches it by itself; 0: nowhere


class Window:
    """``pcclCreateWindow``: made by all members, each with its own `memory`, or `nbytes` of zeros that members on the same host map.

    Ranks are those at this time, for as long as it lives.  Offsets are in bytes.  `memory` is borrowed until `destroy` has returned; what
    its member does with it beside the others' operations is the program's to order, by signals.  `rights`: what others may do.
    """

    def __init__(self, world: World, memory: Any = None, nbytes: int = 0, rights: WindowRights = WindowRights.ALL) -> None:
        self.world = world
        self.handle: Any = None
        self._lock = threading.Lock()
        params = ffi.new("pcclWindowParams_t *")
        params.size = ffi.sizeof("pcclWindowParams_t")
        params.rights = whole("create_window", "rights", rights, "unsigned")
        self._memory = None if memory is None else as_buffer(memory, "memory", True)
        if self._memory is None:
            params.bytes = whole("create_window", "nbytes", nbytes, "size_t")
        else:
            params.memory, params.bytes = self._memory.pointer, self._memory.nbytes
        made = ffi.new("pcclWindow_t **")
        interruptible("create_window", lib.pcclCreateWindow, params, world._own("create_window"), made)
        self.handle = made[0]
        info = ffi.new("pcclWindowInfo_t *")
        check(lib.pcclGetWindowInfo(self.handle, 0, info), "create_window")
        self.rank, self.size = info.rank, info.world  #: this member's, and how many there are

    def destroy(self) -> None:
        """``pcclDestroyWindow``: all members that are left call it; the second time nothing.  Views go on, see `view`."""
        with self._lock:
            handle, self.handle = self.handle, None
        if handle is not None:
            interruptible("destroy_window", lib.pcclDestroyWindow, handle)
            self._memory = None

    def part(self, rank: int) -> WindowPart:
        """``pcclGetWindowInfo``: what that member has given to the window, and whether it is lost."""
        info = ffi.new("pcclWindowInfo_t *")
        check(call("part", lib.pcclGetWindowInfo, (self._own("part"), rank, info), {"rank": rank}), "part")
        address = int(ffi.cast("uintptr_t", info.address))
        return WindowPart(info.peer, rank, info.bytes, WindowRights(info.rights), info.lost, address)

    def view(self, rank: int) -> Optional[memoryview]:
        """The member's memory if this process can access it directly; otherwise None.

        The memory lives as long as the view, or an array made of it.  After `destroy`, other members may not see writes to it.
        """
        with self._lock:  # it stays until it is held
            part = self.part(rank)
            if part.address == 0:
                return None
            own = self._memory if rank == self.rank else None
            view = held(part.address, part.nbytes, own.owner) if own is not None else mapped_again(part.address, part.nbytes)
        writable = rank == self.rank or part.rights & (WindowRights.WRITE | WindowRights.COUNT)
        return view if writable else view.toreadonly()

    def put(self, source: Any, rank: int, offset: int = 0, *, deadline: Optional[float] = None) -> Operation:
        """``pcclPut``: writes all of `source` into that member's memory, from byte `offset` on."""
        s = as_buffer(source, "source")
        return self._launch("put", lib.pcclPut, (s.pointer, s.nbytes, rank, offset), s, deadline, rank=rank, offset=offset)

    def get(self, target: Any, rank: int, offset: int = 0, *, deadline: Optional[float] = None) -> Operation:
        """``pcclGet``: fills `target` from that member's memory, from byte `offset` on; after an error it is unspecified."""
        t = as_buffer(target, "target", True)
        return self._launch("get", lib.pcclGet, (t.pointer, t.nbytes, rank, offset), t, deadline, rank=rank, offset=offset)

    def fetch_add(self, addend: int, rank: int, offset: int = 0, datatype: DataType = DataType.INT64) -> tuple[Operation, Any]:
        """``pcclFetchAdd``: adds `addend` to the number at byte `offset`, a multiple of its size; atomic; sums wrap.

        Returns the operation, and a cffi array of one number: what was there before, once the operation has succeeded.
        """
        number, previous = _numbers("fetch_add", datatype, addend=addend, previous=0)
        arguments = (previous, number, datatype.value, rank, offset)
        return self._launch("fetch_add", lib.pcclFetchAdd, arguments, (number, previous), rank=rank, offset=offset), previous

    def compare_swap(
        self, expected: int, desired: int, rank: int, offset: int = 0, datatype: DataType = DataType.INT64
    ) -> tuple[Operation, Any]:
        """``pcclCompareSwap``: stores `desired` at byte `offset` if `expected` is there; returns as `fetch_add` does."""
        old, new, previous = _numbers("compare_swap", datatype, expected=expected, desired=desired, previous=0)
        arguments = (previous, old, new, datatype.value, rank, offset)
        return self._launch("compare_swap", lib.pcclCompareSwap, arguments, (old, new, previous), rank=rank, offset=offset), previous

    def signal(self, rank: int) -> Operation:
        """``pcclSignal``: tells that member that all that was called before for it is done there; it waits by `wait_signal`."""
        return self._launch("signal", lib.pcclSignal, (rank,), None, rank=rank)

    def wait_signal(self, rank: int, timeout: Optional[float] = None) -> Operation:
        """``pcclWaitSignal``: the operation ends with that member's next signal; OperationTimeout after `timeout` seconds (None: never)."""
        limit = -1 if timeout is None else milliseconds(timeout)
        number = whole("wait_signal", "rank", rank, "uint32_t")
        return self.world._launch("wait_signal", lambda window, handle: lib.pcclWaitSignal(number, window, limit, handle), (), self, at=self._own("wait_signal"))

    def _own(self, name: str) -> Any:
        self.world._own(name)
        if self.handle is None:
            raise make_error(Result.INVALID_USAGE, name, "the window was destroyed: make a new one")
        return self.handle

    def _launch(
        self, name: str, function: Any, arguments: tuple[Any, ...], keep: Any, deadline: Optional[float] = None, **numbers: Any
    ) -> Operation:
        return self.world._launch(name, function, arguments, (self, keep), deadline, at=self._own(name), **numbers)


def _numbers(name: str, datatype: DataType, **values: int) -> list[Any]:
    """Arrays of C of one number each."""
    kinds = {DataType.INT32: "int32_t", DataType.UINT32: "uint32_t", DataType.INT64: "int64_t", DataType.UINT64: "uint64_t"}
    if datatype not in kinds:
        raise mistake(name, f"{getattr(datatype, 'name', datatype)} is none of INT32, UINT32, INT64, UINT64")
    return [ffi.new(f"{kinds[datatype]} *", whole(name, what, value, kinds[datatype])) for what, value in values.items()]
