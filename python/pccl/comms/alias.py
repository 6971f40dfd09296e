"""The name `torchcomms` for `pccl.comms`: programs that were written for that package run on this one, on CPU.

Under the alias the names `gloo`, `xccl` and `mccl` are the native back-end, with what programs expect to be missing under each.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import importlib
import importlib.util
import sys
import types
import warnings
from typing import Any, Mapping, Optional

import pccl.comms as comms
from pccl.comms import environment, factory, hooks, objcol, torch_switch
from pccl.comms.backend import Mask, TorchCommBackend
from pccl.comms.backends.native import NativeBackend
from pccl.comms.hooks import call_log, fr, nan_check

NAME = "torchcomms"

_PUBLIC = (
    "new_comm", "TorchComm", "ReduceOp", "TorchWork", "Timeout", "BatchP2POptions", "BatchSendRecv", "P2POp", "CommOptions",
    "TorchCommWindow", "register_backend", "TorchCommBackend",
)
_FROM_COMMS = (
    "RedOpType", "OpName", "WorkStatus", "P2POpType", "RemovableHandle", "ReconfigureOptions", "TorchCommWinAccessType",
    "TorchCommWindowAttr", "get_mem_allocator", "_is_backend_registered", "OperationError", "AbortInfo",
)

#: Modules that are loaded when something of them is asked for; most need torch.
_LATER = {
    "device_mesh": "device_mesh", "_store_manager": "store_manager", "_transport": "rdma_transport", "distwrap": "distwrap",
    "functional": "functional", **{f"functional.{name}": f"functional.{name}" for name in (
        "async_tensor", "collectives", "dynamo", "inductor_lowering", "param_parsing", "registry",
    )},
    **{f"distwrap.{name}": f"distwrap.{name}" for name in (
        "collectives", "collectives_extension", "fallback", "new_comm", "pginfo", "utils",
    )},
}

#: What works under a name that stands for the native back-end.
MASKS = {
    "gloo": Mask(wait_blocking=False, reconfigure=True),
    "xccl": Mask(wait_blocking=False),
    "mccl": Mask(reconfigure=True),
}


class TorchCommGloo(NativeBackend):
    """The native back-end under the name `gloo`."""

    __module__ = "torchcomms._comms_gloo"


_installed = False
_warned: set[str] = set()


def install_as_torchcomms(names: Optional[Mapping[str, str]] = None) -> types.ModuleType:
    """Enters this package in `sys.modules` as `torchcomms`, with its sub-modules; the second time it only adds `names`.

    `names` maps more back-end names to ones that there are, as ``{"ncclx": "pccl"}``; a warning says so at the first use of each.
    Call it before or after torch is imported.  RuntimeError: a real torchcomms is installed.
    """
    global _installed
    if names is not None and not (isinstance(names, Mapping) and all(isinstance(text, str) for pair in names.items() for text in pair)):
        raise TypeError(f"names is {names!r}; pass a dictionary of names of back-ends, as {{'ncclx': 'pccl'}}")
    if not _installed:
        _refuse_a_real_one()
        _enter_modules()
        for name, mask in MASKS.items():
            factory.name_as(name, TorchCommGloo if name == "gloo" else NativeBackend, mask)
        _installed = True
    for name, target in (names or {}).items():
        factory.name_as(name, _warning(name, target), factory.mask_of(target))
    torch_switch.bind([*MASKS, *(names or {})])
    if environment.flag("TORCHCOMMS_PATCH_FOR_COMPILE") and importlib.util.find_spec("torch") is not None:
        importlib.import_module("pccl.comms.functional")
    return sys.modules[NAME]


def _refuse_a_real_one() -> None:
    where = real_torchcomms()
    if where is not None:
        raise RuntimeError(f"a real {NAME} is installed at {where}; uninstall it, or import pccl.comms under its own name")


def real_torchcomms() -> Optional[str]:
    """Where a package of that name is installed; None: there is at most a folder whose modules come below the alias."""
    loaded = sys.modules.get(NAME)
    if loaded is not None:
        return getattr(loaded, "__file__", None)
    spec = importlib.util.find_spec(NAME)
    return None if spec is None else spec.origin


def _warning(name: str, target: str) -> Any:
    """The back-end `target` by another name, which says so once."""

    def make() -> TorchCommBackend:
        if name not in _warned:
            _warned.add(name)
            warnings.warn(f"back-end {name} is mapped to {target}, on CPU, by install_as_torchcomms", RuntimeWarning, stacklevel=3)
        return factory._load_backend(target)()

    make.target = factory._built_in.get(target)  # type: ignore[attr-defined]
    return make


def _enter_modules() -> None:
    root = _module(NAME, comms, _PUBLIC + _FROM_COMMS)
    spec = importlib.util.find_spec(NAME)  # a folder of that name: its modules are found below
    root.__path__ = list(spec.submodule_search_locations or []) if spec is not None else []
    root.__all__ = list(_PUBLIC)  # type: ignore[attr-defined]
    inner = _module(f"{NAME}._comms", comms, _PUBLIC + _FROM_COMMS)
    for name in dir(comms):
        if name.endswith(("PreHookArgs", "PostHookArgs", "Options")):
            setattr(root, name, getattr(comms, name))
            setattr(inner, name, getattr(comms, name))
    for name in ("_load_backend", "is_backend_built", "built_backends"):
        setattr(root, name, getattr(factory, name))
    for name in _PUBLIC:
        public = getattr(comms, name)
        public.__module__ = NAME
    for module in (root, inner):
        module.__getattr__ = _of_torch  # type: ignore[method-assign]
    gloo = types.ModuleType(f"{NAME}._comms_gloo", TorchCommGloo.__doc__)
    gloo.TorchCommGloo = TorchCommGloo  # type: ignore[attr-defined]
    hook_module = _module(f"{NAME}.hooks", hooks, ("FlightRecorderHook", "NanCheckHook", "clog", "OpName", "RemovableHandle"))
    modules = {
        NAME: root, f"{NAME}._comms": inner, f"{NAME}._comms_gloo": gloo, f"{NAME}.objcol": objcol, f"{NAME}.hooks": hook_module,
        f"{NAME}.hooks.fr": fr, f"{NAME}.hooks.clog": call_log, f"{NAME}.hooks.nan_check": nan_check,
        f"{NAME}._comms.hooks": hook_module, f"{NAME}._comms.hooks.fr": fr, f"{NAME}._comms.hooks.clog": call_log,
        **{f"{NAME}.{name}": _later(f"{NAME}.{name}", f"pccl.comms.{source}") for name, source in _LATER.items()},
    }
    for name, module in modules.items():
        sys.modules[name] = module
        parent, _, own = name.rpartition(".")
        if parent and name != f"{NAME}.hooks.clog" and name != f"{NAME}._comms.hooks.clog":  # there the name is the class
            setattr(sys.modules[parent], own, module)


def _of_torch(name: str) -> Any:
    """Classes over torch.distributed, which asks for them while it is being imported."""
    if name not in ("_BackendWrapper", "_BackendWrapperOptions", "WorkWrapper"):
        raise AttributeError(f"module {NAME!r} has no attribute {name!r}")
    bridge = importlib.import_module("pccl.comms.process_group")
    return getattr(bridge, name.lstrip("_"))


def _later(name: str, source: str) -> types.ModuleType:
    """A module, loaded when something of it is asked for."""
    module = types.ModuleType(name)
    if any(other.startswith(f"{name.partition('.')[2]}.") for other in _LATER):
        module.__path__ = []

    def of_source(own: str) -> Any:
        if own.startswith("__") and own != "__all__":
            raise AttributeError(f"module {name!r} has no attribute {own!r}")
        return getattr(importlib.import_module(source), own)

    module.__getattr__ = of_source  # type: ignore[method-assign]
    return module


def _module(name: str, source: types.ModuleType, names: tuple[str, ...]) -> types.ModuleType:
    module = types.ModuleType(name, source.__doc__)
    for own in names:
        setattr(module, own, getattr(source, own))
    module.__path__ = []
    return module
