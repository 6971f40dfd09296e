"""A window of the native back-end: one of `pccl.engine` for each tensor that is registered."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any, Optional

from pccl.buffers import Buffer
from pccl.comms.backends.native_work import NativeWork
from pccl.engine import Window, World
from pccl.types import DataType, WindowRights

_TOLD_BYTES = 512


class NativeWindow:
    """Without memory until `register`."""

    def __init__(self, world: World, seconds: float) -> None:
        self._world = world
        self._seconds = seconds
        self._window: Optional[Window] = None

    def register(self, buffer: Buffer, said: bytes) -> list[bytes]:
        """Collective: this rank's memory; returns what each rank has said, by rank."""
        if len(said) > _TOLD_BYTES:
            raise RuntimeError("tensor_register: the tensor has too many dimensions; pass a view of fewer")
        heard = bytearray(_TOLD_BYTES * self._world.size)
        self._world.all_gather(said.ljust(_TOLD_BYTES), heard, deadline=self._seconds).wait()
        counts = buffer.datatype in (DataType.INT32, DataType.INT64) and buffer.address % 8 == 0  # as the engine has it
        rights = WindowRights.ALL if counts else WindowRights.READ | WindowRights.WRITE
        self._window = Window(self._world, buffer, rights=rights)
        return [bytes(heard[at:at + _TOLD_BYTES]).rstrip(b" ") for at in range(0, len(heard), _TOLD_BYTES)]

    def deregister(self) -> None:
        """Collective."""
        window, self._window = self._window, None
        if window is not None:
            window.destroy()

    def put(self, source: Buffer, rank: int, first: int, async_op: bool, seconds: float) -> NativeWork:
        """Of bytes, at a byte."""
        return NativeWork(self._open().put(source, rank, first, deadline=seconds), None, None, async_op)

    def get(self, target: Buffer, rank: int, first: int, async_op: bool, seconds: float) -> NativeWork:
        """Of bytes, from a byte on."""
        return NativeWork(self._open().get(target, rank, first, deadline=seconds), None, None, async_op)

    def fetch_add(self, addend: int, rank: int, first: int, datatype: DataType) -> int:
        """Adds to the number at a byte; returns what it was."""
        operation, previous = self._open().fetch_add(addend, rank, first, datatype)
        operation.wait()
        return int(previous[0])

    def signal(self, rank: int, async_op: bool, seconds: float) -> NativeWork:
        """Has no limit of its own: it ends with the connection at the latest."""
        return NativeWork(self._open().signal(rank), None, None, async_op)

    def wait_signal(self, rank: int, async_op: bool, seconds: float) -> NativeWork:
        """OperationTimeout after `seconds`."""
        return NativeWork(self._open().wait_signal(rank, seconds), None, None, async_op)

    def _open(self) -> Any:
        if self._window is None:
            raise RuntimeError("a valid tensor is required; call tensor_register first")
        return self._window
