"""Views of memory that keep it alive: the memory lives as long as a view of it, or an array made of the view."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import ctypes
import mmap
import os
from typing import Any

from pccl._native import ffi

_libc = ctypes.CDLL(None, use_errno=True)
_libc.mremap.restype = ctypes.c_void_p
_libc.mremap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int]
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_MAYMOVE = 1  # MREMAP_MAYMOVE
_NOWHERE = ctypes.c_void_p(-1).value


def held(address: int, nbytes: int, owner: Any) -> memoryview:
    """A view of memory that is there as long as its owner."""
    return _view(address, nbytes, lambda _: owner)


def mapped_again(address: int, nbytes: int) -> memoryview:
    """A view of a mapping of its own of the same memory, which others map too; it goes with the view.  OSError: there is no room for it."""
    if nbytes == 0:
        return memoryview(bytearray())
    first = address - address % mmap.PAGESIZE
    length = address - first + nbytes
    at = _libc.mremap(first, 0, length, _MAYMOVE)  # of 0 bytes: the old one stays
    if at is None or at == _NOWHERE:
        number = ctypes.get_errno()
        raise OSError(number, f"pccl: view: the window's memory cannot be mapped once more: {os.strerror(number)}")
    return _view(at + (address - first), nbytes, lambda _, unmap=_libc.munmap: unmap(at, length))  # also where the module has gone


def _view(address: int, nbytes: int, gone: Any) -> memoryview:
    """`gone` is kept, and called when nobody refers to the memory any more."""
    return memoryview(ffi.buffer(ffi.gc(ffi.cast("char *", address), gone), nbytes))
