"""`new_comm`, and which back-ends there are: built in, of entry points, registered in the process, or libraries."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import importlib
import itertools
import os
from importlib import metadata
from typing import Any, Callable, Optional

from pccl.comms import environment
from pccl.comms.backend import Mask, TorchCommBackend
from pccl.comms.backends import c10d
from pccl.comms.backends.fake import FakeBackend
from pccl.comms.backends.library import library_backend
from pccl.comms.backends.native import NativeBackend
from pccl.comms.communicator import TorchComm
from pccl.comms.failure import Failures
from pccl.comms.options import CommOptions, Hints, TimeoutLike, as_hints
from pccl.errors import PCCLError

NATIVE = "pccl"

BackendClass = Callable[[], TorchCommBackend]

_built_in: dict[str, BackendClass] = {
    NATIVE: NativeBackend, "fake": FakeBackend, "gloo": c10d.GlooBackend, "mpi": c10d.MpiBackend, "nccl": c10d.NcclBackend,
    "rccl": c10d.RcclBackend,
}
#: Names whose communicators are those of an installed torchcomms.
DELEGATED = ("ncclx", "rcclx")
_registered: dict[str, BackendClass] = {}
_loaded: dict[str, BackendClass] = {}
_masks: dict[str, Mask] = {}  # of names that are another back-end's
_unnamed = itertools.count()


def register_backend(name: str, backend_class: BackendClass) -> None:
    """Makes a `TorchCommBackend` subclass reachable by `name`, in this process."""
    if not isinstance(name, str):
        raise TypeError(f"name is {name!r}, a {type(name).__name__}; pass a str")
    if not callable(backend_class):
        raise TypeError(f"backend_class of {name!r} is a {type(backend_class).__name__}; pass a TorchCommBackend subclass")
    _registered[name] = backend_class


def load_backend(name: str, path: str) -> None:
    """Opens a library with the interface of ``pccl_backend.h``, as TORCHCOMMS_BACKEND_LIB_PATH_<NAME> does; it stays open.

    RuntimeError: it cannot be loaded, has another version, or lacks functions.
    """
    if not isinstance(name, str) or not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"load_backend: name is {name!r} and path {path!r}; pass a str, and the path of a library")
    _loaded[name] = library_backend(name, os.fspath(path))


def _is_backend_registered(name: str) -> bool:
    """Whether `register_backend` was called for it."""
    return name in _registered


def name_as(name: str, backend_class: BackendClass, mask: Mask) -> None:
    """Enters another name of a built-in back-end, with what works under it."""
    _built_in[name] = backend_class
    _masks[name] = mask


def mask_of(name: str) -> Mask:
    """The features that work under a name."""
    mask = _masks.get(name)
    return mask if mask is not None else _load_backend(name)().mask


def built_backends() -> list[str]:
    """Names of this package's own that can be used here."""
    return sorted(filter(is_backend_built, _built_in))


def is_backend_built(name: str) -> bool:
    """Whether it is one of those: adapters are where torch has their process group."""
    backend_class: Any = _built_in.get(name)
    return backend_class is not None and getattr(backend_class, "is_built", lambda: True)()


def _load_backend(name: str) -> BackendClass:
    """The class of that name.  ModuleNotFoundError: there is none.  TypeError: it is no name."""
    if not isinstance(name, str):
        raise TypeError(f"backend is {name!r}, a {type(name).__name__}; pass the name of a back-end, such as 'pccl'")
    for table in (_loaded, _registered, _built_in):
        if name in table:
            return table[name]
    for entry in metadata.entry_points(group="torchcomms.backends"):
        if entry.name == name:
            _loaded[name] = entry.load()
            return _loaded[name]
    if name in DELEGATED:
        raise ModuleNotFoundError(
            f"failed to find backend {name!r}: it is of the package torchcomms, which is not installed; pip install torchcomms where there "
            "is a GPU, or use the back-end pccl"
        )
    path = environment.text(f"TORCHCOMMS_BACKEND_LIB_PATH_{name.upper()}")
    if path is not None:
        _loaded[name] = library_backend(name, path)
        return _loaded[name]
    raise ModuleNotFoundError(
        f"failed to find backend {name!r}; there are {', '.join(sorted({*_built_in, *_registered}))}; "
        f"or set TORCHCOMMS_BACKEND_LIB_PATH_{name.upper()} to a library, or call register_backend"
    )


def new_comm(
    backend: str,
    device: Any = None,
    name: Optional[str] = None,
    abort_process_on_timeout_or_error: Optional[bool] = None,
    timeout: TimeoutLike = None,
    is_high_priority_stream: Optional[bool] = None,
    store: Any = None,
    enable_reconfigure: Optional[bool] = None,
    hints: Optional[Hints] = None,
    *,
    options: Optional[CommOptions] = None,
) -> Any:
    """Collective: a communicator (`TorchComm`) of all ranks that the environment tells of.  None: as `options`, then the environment, say.

    `backend` is a name: "pccl", "fake", "gloo", "mpi", "nccl", "rccl", or one of a program's own.  `device` is "cpu" or None.  Without a
    `name` the n-th communicator of a process meets the n-th of the others.  `store` is where ranks find each other: a c10d store, a path,
    "host:port", or callbacks (set, get, wait).  The default is one that rank 0 serves at MASTER_ADDR:MASTER_PORT until all have met.
    RuntimeError: rank and size are unknown, it was not made in time, the device is no CPU.  ModuleNotFoundError: no such back-end.
    """
    given = CommOptions() if options is None else options
    if not isinstance(given, CommOptions):
        raise TypeError(f"options is a {type(options).__name__}; pass a CommOptions")
    if name is not None and not isinstance(name, str):
        raise TypeError(f"name is {name!r}, a {type(name).__name__}; pass a str")
    merged = CommOptions(
        given.abort_process_on_timeout_or_error if abort_process_on_timeout_or_error is None else abort_process_on_timeout_or_error,
        given.timeout if timeout is None else timeout,
        given.store if store is None else store,
        given.enable_reconfigure if enable_reconfigure is None else enable_reconfigure,
        {**given.hints, **as_hints(hints)},
        name or given.name or f"comm_{next(_unnamed)}",
    ).resolved()
    if backend in DELEGATED and backend not in _built_in:
        theirs = _installed_torchcomms()
        if theirs is not None:
            return _delegated(theirs, backend, device, merged)
    made = _load_backend(backend)()
    mask = _masks.get(backend, made.mask)
    if merged.enable_reconfigure and not mask.reconfigure:
        raise RuntimeError(f"enable_reconfigure=true is not supported by backend {backend}")
    if made.built_in:
        device = _device(backend, device, made.device)
    assert merged.name is not None
    try:
        made.init(device, merged.name, merged)
    except (TimeoutError, PCCLError) as error:
        raise Failures().translate(merged.name, "new_comm", error) from error
    return TorchComm(backend, device, merged.name, merged, made, mask)


def _installed_torchcomms() -> Any:
    """The package of that name, if it is not this one."""
    from pccl.comms.alias import NAME, real_torchcomms

    return None if real_torchcomms() is None else importlib.import_module(NAME)


def _delegated(theirs: Any, backend: str, device: Any, options: CommOptions) -> Any:
    """A communicator of an installed torchcomms."""
    return theirs.new_comm(
        backend, device, options.name, abort_process_on_timeout_or_error=options.abort_process_on_timeout_or_error,
        timeout=options.timeout, store=options.store, enable_reconfigure=options.enable_reconfigure, hints=options.hints,
    )


def _device(backend: str, device: Any, needed: str) -> Any:
    """RuntimeError: not one of that back-end's."""
    kind = needed if device is None else str(getattr(device, "type", device)).partition(":")[0]
    if kind != needed and needed == "cpu":
        raise RuntimeError(
            f"device is {device}: only CPU is supported by back-end {backend}; pass 'cpu', and tensors in host memory.  What needs a GPU, "
            "as CUDA graphs do, needs the back-end nccl and a torch with CUDA"
        )
    if kind != needed:
        raise RuntimeError(f"device is {device}: back-end {backend} is for {needed}; pass that, or use the back-end pccl")
    return needed if device is None else device


def get_mem_allocator(backend: str) -> Any:
    """The allocator of tensors whose windows are shared on a host.  RuntimeError: that back-end has none."""
    entry: Any = _built_in.get(backend)
    target = getattr(entry, "target", entry)  # of a name that is mapped to another one
    if not (isinstance(target, type) and issubclass(target, NativeBackend)):
        raise RuntimeError(f"No allocator factory registered for backend {backend}")
    from pccl.comms.shared_memory import SharedMemoryAllocator

    return SharedMemoryAllocator()
