"""Shared state: tensors that are the same on all peers of a group, and that a newcomer gets from the others."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any, Optional

from pccl._native import ffi
from pccl.arguments import instance, member, text, whole
from pccl.buffers import Buffer, OperandError, as_buffer, library_of
from pccl.types import DataType, DeviceType


class TensorInfo:
    """An entry of a shared state: `numel` elements at `data_ptr`, under a `name` that is its key at all peers.

    With `allow_content_inequality` it is not compared, but newcomers and outdated peers receive it.  ValueError: `data_ptr` is 0.
    """

    def __init__(
        self,
        name: str,
        data_ptr: int,
        *,
        numel: int,
        dtype: DataType,
        device_type: DeviceType,
        allow_content_inequality: bool,
    ) -> None:
        if data_ptr == 0:
            raise ValueError(f"pccl: the memory of {name!r} is at address 0; pass a tensor that has elements")
        self.name = name
        self.data_ptr = data_ptr
        self.numel = numel
        self.dtype = dtype
        self.device_type = device_type
        self.allow_content_inequality = allow_content_inequality
        self._keep: Optional[Buffer] = None

    @classmethod
    def from_torch(cls, tensor: Any, name: str, *, allow_content_inequality: bool = False) -> "TensorInfo":
        """Of a torch tensor, which is kept alive, and written where it lies."""
        return cls._of_memory("torch", tensor, name, allow_content_inequality)

    @classmethod
    def from_numpy(cls, tensor: Any, name: str, *, allow_content_inequality: bool = False) -> "TensorInfo":
        """Of a numpy array, which is kept alive, and written where it lies."""
        return cls._of_memory("numpy", tensor, name, allow_content_inequality)

    @classmethod
    def from_buffer(cls, memory: Any, name: str, *, allow_content_inequality: bool = False) -> "TensorInfo":
        """Of an object with Python's buffer protocol (``array``, ``bytearray``), or of a tensor or array."""
        return cls._of_memory(None, memory, name, allow_content_inequality)

    @classmethod
    def _of_memory(cls, library: Any, memory: Any, name: str, allow_content_inequality: bool) -> "TensorInfo":
        if library is not None and library_of(memory) != library:
            raise OperandError(f"pccl: {name!r} is a {type(memory).__name__}, where one of {library} is needed")
        buffer: Buffer = as_buffer(memory, repr(name), True)
        info = cls(
            name,
            buffer.address,
            numel=buffer.count,
            dtype=buffer.datatype,
            device_type=DeviceType.CPU,
            allow_content_inequality=allow_content_inequality,
        )
        info._keep = buffer
        return info


class SharedState:
    """Entries in an order that is the same at all peers, and a revision: raised by one before each synchronisation after the first.

    A synchronisation sets the revision to that of the content which was elected.  AssertionError: no entries.
    """

    def __init__(self, tensor_infos: list[TensorInfo]) -> None:
        if not hasattr(tensor_infos, "__iter__"):
            raise TypeError(f"pccl: tensor_infos is {tensor_infos!r}; pass a list of TensorInfo")
        self._tensor_infos = list(tensor_infos)
        if not self._tensor_infos:
            raise OperandError("pccl: a shared state without entries; pass at least one TensorInfo")
        for info in self._tensor_infos:
            instance("an entry of tensor_infos", info, TensorInfo)
        self._names = [ffi.new("char[]", text("shared state", "name", info.name)) for info in self._tensor_infos]
        self._infos = ffi.new("pcclTensorInfo_t[]", len(self._tensor_infos))
        for entry, info, name in zip(self._infos, self._tensor_infos, self._names):
            entry.name = name
            entry.data = ffi.cast("void *", info.data_ptr)
            entry.count = whole("shared state", f"numel of {info.name!r}", info.numel, "size_t")
            entry.datatype = member("dtype", info.dtype, DataType)
            entry.device_type = member("device_type", info.device_type, DeviceType)
            entry.allow_content_inequality = info.allow_content_inequality
        self._state = ffi.new("pcclSharedState_t *")
        self._state.count = len(self._tensor_infos)
        self._state.infos = self._infos

    @property
    def revision(self) -> int:
        """How many synchronisations the content has behind it; may be set, as to that of a checkpoint."""
        return int(self._state.revision)

    @revision.setter
    def revision(self, value: int) -> None:
        self._state.revision = whole("shared state", "revision", value, "uint64_t")

    def push_revision(self) -> None:
        """Raises the revision by one: once before each synchronisation but the first, at all peers."""
        self._state.revision += 1

    def to_c(self) -> Any:
        """The pcclSharedState_t itself, alive as long as this.  OperandError: an entry's tensor has got other memory meanwhile."""
        for info in self._tensor_infos:
            if info._keep is not None and info._keep.moved:
                raise OperandError(
                    f"pccl: the memory of {info.name!r} is another one than when its TensorInfo was made; update tensors in place "
                    "(parameter.data.copy_(other)), or make the SharedState anew"
                )
        return self._state


class SharedStateSyncInfo:
    """The traffic of a synchronisation in payload bytes; `rx_bytes` 0 says that nothing here has changed."""

    def __init__(self, tx_bytes: int, rx_bytes: int) -> None:
        self.tx_bytes = tx_bytes
        self.rx_bytes = rx_bytes

    def __repr__(self) -> str:
        return f"SharedStateSyncInfo(tx_bytes={self.tx_bytes}, rx_bytes={self.rx_bytes})"
