"""Collectives of Python objects: each is written as bytes, sizes go first, and objects of different sizes work.

Objects are written by torch where the program has it, else by pickle; with TORCHCOMMS_SERIALIZATION=pickle always so.  The bytes
identify the format.  With `weights_only` (the default) only plain values, containers, arrays and tensors are read; without it what others
send can run code here.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import io
import pickle
import struct
from typing import Any, Optional

from pccl.comms import environment
from pccl.comms.arguments import communicator, many
from pccl.comms.communicator import TorchComm
from pccl.comms.options import TimeoutLike
from pccl.comms.tensors import buffer_of, loaded_torch, memory_view

_serialization = environment.text("TORCHCOMMS_SERIALIZATION")

_SAFE = {
    ("builtins", name) for name in ("set", "frozenset", "complex", "bytearray", "range", "slice")
} | {
    ("collections", "OrderedDict"), ("collections", "deque"), ("collections", "defaultdict"), ("datetime", "timedelta"),
    ("datetime", "datetime"), ("datetime", "date"), ("_codecs", "encode"), ("numpy", "ndarray"), ("numpy", "dtype"),
    ("numpy.core.multiarray", "_reconstruct"), ("numpy._core.multiarray", "_reconstruct"), ("numpy.core.multiarray", "scalar"),
    ("numpy._core.multiarray", "scalar"), ("numpy._core.numeric", "_frombuffer"), ("numpy.core.numeric", "_frombuffer"),
}


class _PlainUnpickler(pickle.Unpickler):
    """Reads what cannot run code."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _SAFE:
            raise pickle.UnpicklingError(f"{module}.{name} is not read with weights_only=True; pass False if you trust all ranks")
        return super().find_class(module, name)


def _written(obj: Any) -> bytes:
    torch = loaded_torch()
    if torch is None or _serialization == "pickle":
        return pickle.dumps(obj, protocol=4)
    stream = io.BytesIO()
    torch.save(obj, stream)
    return stream.getvalue()


def _read(data: bytes, weights_only: bool) -> Any:
    if data[:2] == b"PK":
        import torch

        return torch.load(io.BytesIO(data), weights_only=weights_only)
    return _PlainUnpickler(io.BytesIO(data)).load() if weights_only else pickle.loads(data)


def _room(nbytes: int) -> Any:
    """A tensor of bytes."""
    torch = loaded_torch()
    return bytearray(nbytes) if torch is None else torch.empty(nbytes, dtype=torch.uint8)


def _as_tensor(data: bytes) -> Any:
    torch = loaded_torch()
    return bytearray(data) if torch is None or not data else torch.frombuffer(bytearray(data), dtype=torch.uint8)


def _as_bytes(tensor: Any, count: Optional[int] = None) -> bytes:
    return bytes(memory_view(buffer_of(tensor, "tensor"))[:count])


def _size(data: bytes) -> Any:
    """Its length, as the eight bytes of an int64."""
    return _as_tensor(struct.pack("<q", len(data)))


def _of_size(tensor: Any) -> int:
    return int(struct.unpack("<q", _as_bytes(tensor))[0])


def _list(function: str, name: str, comm: TorchComm, listed: Any, for_all: bool = False) -> None:
    """A list; `for_all`: with room for all ranks.  TypeError, ValueError: it is none."""
    communicator(function, comm)
    if not (hasattr(listed, "__setitem__") and hasattr(listed, "__len__")):
        raise TypeError(f"{function}: {name} is a {type(listed).__name__}; pass a list")
    if for_all and len(listed) < comm.get_size():
        raise ValueError(f"{function}: {name} has {len(listed)} elements, and there are {comm.get_size()} ranks; pass one with room for all")


def all_gather_object(comm: TorchComm, object_list: list[Any], obj: Any, timeout: TimeoutLike = None, weights_only: bool = True) -> None:
    """Collective: `object_list[r]`, which has room for all ranks, becomes rank r's `obj`."""
    _list("all_gather_object", "object_list", comm, object_list, True)
    data = _written(obj)
    sizes = [_room(8) for _ in range(comm.get_size())]
    comm.all_gather(sizes, _size(data), False, timeout=timeout)
    counts = [_of_size(size) for size in sizes]
    pieces = [_room(max(counts)) for _ in counts]
    comm.all_gather(pieces, _as_tensor(data.ljust(max(counts), b"\0")), False, timeout=timeout)
    for rank, (piece, count) in enumerate(zip(pieces, counts)):
        object_list[rank] = _read(_as_bytes(piece, count), weights_only)


def gather_object(
    comm: TorchComm, obj: Any, root: int, object_gather_list: Optional[list[Any]] = None, timeout: TimeoutLike = None,
    weights_only: bool = True,
) -> None:
    """Collective: the root's `object_gather_list[r]`, which has room for all ranks, becomes rank r's `obj`; others pass None."""
    communicator("gather_object", comm)
    at_root = comm.get_rank() == root
    if at_root:
        assert object_gather_list is not None, "gather_object: object_gather_list is needed at the root"
        _list("gather_object", "object_gather_list", comm, object_gather_list, True)
    data = _written(obj)
    sizes = [_room(8) for _ in range(comm.get_size())]
    comm.all_gather(sizes, _size(data), False, timeout=timeout)
    counts = [_of_size(size) for size in sizes]
    pieces = [_room(max(counts)) for _ in counts] if at_root else []
    comm.gather(pieces, _as_tensor(data.ljust(max(counts), b"\0")), root, False, timeout=timeout)
    if at_root and object_gather_list is not None:
        for rank, (piece, count) in enumerate(zip(pieces, counts)):
            object_gather_list[rank] = _read(_as_bytes(piece, count), weights_only)


def send_object_list(comm: TorchComm, object_list: list[Any], dst: int, timeout: TimeoutLike = None) -> None:
    """Sends each of the list to rank `dst`, one after the other; returns when it has them all."""
    communicator("send_object_list", comm)
    many("object_list", object_list, "objects")
    for obj in object_list:
        data = _written(obj)
        comm.send(_size(data), dst, False, timeout=timeout)
        comm.send(_as_tensor(data), dst, False, timeout=timeout)


def recv_object_list(comm: TorchComm, object_list: list[Any], src: int, timeout: TimeoutLike = None, weights_only: bool = True) -> None:
    """Receives as many objects of rank `src` as the list is long, into it."""
    _list("recv_object_list", "object_list", comm, object_list)
    for index in range(len(object_list)):
        size = _room(8)
        comm.recv(size, src, False, timeout=timeout)
        data = _room(_of_size(size))
        comm.recv(data, src, False, timeout=timeout)
        object_list[index] = _read(_as_bytes(data), weights_only)


def broadcast_object_list(
    comm: TorchComm, object_list: list[Any], root: int, timeout: TimeoutLike = None, weights_only: bool = True
) -> None:
    """Collective: everybody's `object_list` gets the root's objects; lists are equally long."""
    _list("broadcast_object_list", "object_list", comm, object_list)
    at_root = comm.get_rank() == root
    for index in range(len(object_list)):
        data = _written(object_list[index]) if at_root else b""
        size = _size(data)
        comm.broadcast(size, root, False, timeout=timeout)
        tensor = _as_tensor(data) if at_root else _room(_of_size(size))
        comm.broadcast(tensor, root, False, timeout=timeout)
        if not at_root:
            object_list[index] = _read(_as_bytes(tensor), weights_only)


def scatter_object_list(
    comm: TorchComm, root: int, scatter_object_output_list: list[Any], scatter_object_input_list: Optional[list[Any]] = None,
    timeout: TimeoutLike = None, weights_only: bool = True,
) -> None:
    """Collective: element 0 of `scatter_object_output_list` becomes the root's `scatter_object_input_list[r]` at rank r; others pass None.

    ValueError: no list to put it in.
    """
    communicator("scatter_object_list", comm)
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("scatter_object_list: scatter_object_output_list must be a list that is not empty")
    at_root = comm.get_rank() == root
    if at_root and (scatter_object_input_list is None or len(scatter_object_input_list) != comm.get_size()):
        raise ValueError("scatter_object_list: scatter_object_input_list must have an object for each rank at the root")
    written = [_written(obj) for obj in scatter_object_input_list or []] if at_root else []
    size = _room(8)
    comm.scatter(size, [_size(data) for data in written], root, False, timeout=timeout)
    most = _size(b"\0" * max(map(len, written), default=0))
    comm.broadcast(most, root, False, timeout=timeout)
    piece = _room(_of_size(most))
    comm.scatter(piece, [_as_tensor(data.ljust(_of_size(most), b"\0")) for data in written], root, False, timeout=timeout)
    scatter_object_output_list[0] = _read(_as_bytes(piece, _of_size(size)), weights_only)
