"""The structures of `pccl_backend.h`, as Python has them, and how a library's table is found and checked."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import ctypes
from typing import Any, Optional, Sequence

from pccl.buffers import Buffer
from pccl.comms.store import Store
from pccl.types import DataType, ReduceOp

MAGIC = 0x50434342
VERSION = 1


class Result:
    """Of functions."""

    SUCCESS = 0
    TIMED_OUT = 1
    FAILED = 2


class Part(ctypes.Structure):
    """``pcclBackendPart_t``"""

    _fields_ = [("data", ctypes.c_void_p), ("count", ctypes.c_size_t)]

    @staticmethod
    def list(buffers: Sequence[Buffer]) -> Any:
        """An array of them."""
        return (Part * len(buffers))(*[Part(buffer.address if buffer.count else None, buffer.count) for buffer in buffers])


class Call(ctypes.Structure):
    """``pcclBackendCall_t``"""

    _fields_ = [
        ("size", ctypes.c_size_t), ("operation", ctypes.c_uint32), ("peer", ctypes.c_uint32), ("datatype", ctypes.c_uint32),
        ("op", ctypes.c_uint32), ("factor", ctypes.c_double), ("timeout_ms", ctypes.c_int64), ("input_count", ctypes.c_size_t),
        ("output_count", ctypes.c_size_t), ("inputs", ctypes.POINTER(Part)), ("outputs", ctypes.POINTER(Part)),
    ]

    @classmethod
    def of(
        cls, operation: int, peer: int, datatype: DataType, op: ReduceOp, factor: Optional[float], seconds: float, inputs: Any, outputs: Any
    ) -> "Call":
        """One of these parts."""
        return cls(
            ctypes.sizeof(cls), operation, peer, datatype.value, op.value, 1.0 if factor is None else factor, max(1, round(seconds * 1000)),
            len(inputs), len(outputs), inputs, outputs,
        )


_SET = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
_GET = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_char), ctypes.c_size_t, ctypes.c_int64)


class StoreTable(ctypes.Structure):
    """``pcclBackendStore_t``"""

    _fields_ = [("size", ctypes.c_size_t), ("user", ctypes.c_void_p), ("set", _SET), ("get", _GET)]

    place: Store
    prefix: str
    seconds: float

    @classmethod
    def of(cls, place: Store, prefix: str, seconds: float) -> "StoreTable":
        """A store's functions, for keys behind that prefix."""

        def set_(_: Any, key: bytes, value: bytes) -> int:
            try:
                place.set(prefix + key.decode(), value.decode())
            except Exception:  # none may go through C
                return Result.FAILED
            return Result.SUCCESS

        def get(_: Any, key: bytes, value: Any, capacity: int, timeout_ms: int) -> int:
            try:
                found = place.get(prefix + key.decode(), timeout_ms / 1000).encode()
            except Exception:
                return Result.TIMED_OUT
            if len(found) >= capacity:
                return Result.FAILED
            ctypes.memmove(value, found + b"\0", len(found) + 1)
            return Result.SUCCESS

        table = cls(ctypes.sizeof(cls), None, _SET(set_), _GET(get))
        table.place, table.prefix, table.seconds = place, prefix, seconds
        return table

    def meet(self, rank: int, size: int) -> None:
        """Rank 0 keeps the store until nobody needs it."""
        if rank != 0:
            self.place.set(f"{self.prefix}done {rank}", "1")
            return
        for other in range(1, size):
            self.place.get(f"{self.prefix}done {other}", self.seconds)


class Params(ctypes.Structure):
    """``pcclBackendParams_t``"""

    _fields_ = [
        ("size", ctypes.c_size_t), ("name", ctypes.c_char_p), ("rank", ctypes.c_uint32), ("ranks", ctypes.c_uint32),
        ("timeout_ms", ctypes.c_int64), ("store", ctypes.POINTER(StoreTable)),
    ]

    @classmethod
    def of(cls, name: str, rank: int, ranks: int, seconds: float, store: Optional[StoreTable]) -> "Params":
        """Of one communicator."""
        pointer = None if store is None else ctypes.pointer(store)
        return cls(ctypes.sizeof(cls), name.encode(), rank, ranks, max(1, round(seconds * 1000)), pointer)


_REQUIRED = ("create", "destroy", "issue", "test", "wait", "release", "last_error")
_VOID_P = ctypes.c_void_p


class Table(ctypes.Structure):
    """``pcclBackend_t``"""

    _fields_ = [
        ("size", ctypes.c_size_t), ("magic", ctypes.c_uint32), ("version", ctypes.c_uint32), ("library_version", ctypes.c_char_p),
        ("create", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(Params), ctypes.POINTER(_VOID_P))),
        ("destroy", ctypes.CFUNCTYPE(None, _VOID_P)),
        ("issue", ctypes.CFUNCTYPE(ctypes.c_int, _VOID_P, ctypes.POINTER(Call), ctypes.POINTER(_VOID_P))),
        ("test", ctypes.CFUNCTYPE(ctypes.c_int, _VOID_P, ctypes.POINTER(ctypes.c_bool))),
        ("wait", ctypes.CFUNCTYPE(ctypes.c_int, _VOID_P)),
        ("release", ctypes.CFUNCTYPE(None, _VOID_P)),
        ("last_error", ctypes.CFUNCTYPE(ctypes.c_char_p)),
        (
            "split",
            ctypes.CFUNCTYPE(ctypes.c_int, _VOID_P, ctypes.POINTER(Params), ctypes.POINTER(ctypes.c_uint32), ctypes.POINTER(_VOID_P)),
        ),
        ("abort", ctypes.CFUNCTYPE(None, _VOID_P)),
    ]


class _Head(ctypes.Structure):
    """What tables of all versions begin with."""

    _fields_ = [("size", ctypes.c_size_t), ("magic", ctypes.c_uint32), ("version", ctypes.c_uint32)]


def table_of(name: str, path: str) -> tuple[Any, Table]:
    """The library, which stays loaded, and its table.  RuntimeError: what is wrong with it."""
    try:
        library = ctypes.CDLL(path)
        loader = getattr(library, f"create_dynamic_loader_{name}")
    except (OSError, AttributeError) as error:
        raise RuntimeError(f"Failed to load backend library {path} for {name}: {error}") from None
    loader.restype = ctypes.c_void_p
    loader.argtypes = []
    address = loader()
    if not address:
        raise RuntimeError(f"Failed to load backend library {path} for {name}: create_dynamic_loader_{name} returned null")
    head = _Head.from_address(address)
    if head.magic != MAGIC or head.version != VERSION:
        raise RuntimeError(
            f"ABI version mismatch: {path} has magic {head.magic:#x}, version {head.version}, and this package {MAGIC:#x}, {VERSION}; "
            "build it with this release's pccl_backend.h"
        )
    table = Table()
    ctypes.memmove(ctypes.addressof(table), address, min(head.size, ctypes.sizeof(Table)))  # what it does not have is null
    missing = [function for function in _REQUIRED if not getattr(table, function)]
    if missing:
        raise RuntimeError(f"{path} has missing required function pointers: {', '.join(missing)}")
    return library, table
