"""torch's switch `use_torchcomms`: with it `torch.distributed` makes its groups of the communicators of a package `torchcomms`.

torch looks for that package once, while it imports `torch.distributed`.  Where the alias came later, the names that torch would have
found are entered then.  Names of back-ends that torch does not know become known to it, on CPU.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import importlib
import importlib.util
import sys
from types import FrameType
from typing import Any, Iterable

from pccl.comms import environment

VARIABLE = "TORCH_DISTRIBUTED_USE_TORCHCOMMS"


def bind(names: Iterable[str]) -> None:
    """Has `torch.distributed` know this package and these back-ends.  Nothing before it is imported, unless the variable asks for it."""
    if environment.flag(VARIABLE) and importlib.util.find_spec("torch") is not None:
        importlib.import_module("torch.distributed")
    c10d: Any = sys.modules.get("torch.distributed.distributed_c10d")
    if not hasattr(c10d, "init_process_group"):  # it is not there, or finds the package by itself
        return
    from pccl.comms import factory
    from pccl.comms.hooks.fr import FlightRecorderHook

    newer = hasattr(c10d, "_torchcomms_is_backend_built")  # there FlightRecorderHook is a class of torch's own
    c10d._BackendWrapper = importlib.import_module("pccl.comms.process_group").BackendWrapper
    c10d.new_comm = factory.new_comm
    setattr(c10d, "_TorchCommsFlightRecorderHook" if newer else "FlightRecorderHook", FlightRecorderHook)
    if newer:
        c10d._torchcomms_is_backend_built = factory.is_backend_built
        c10d._torchcomms_is_backend_registered = factory._is_backend_registered
    c10d._TORCHCOMM_AVAILABLE = True
    for name in names:
        if name not in c10d.Backend.backend_list:
            c10d.Backend.register_backend(name, _creator(name), devices=["cpu"])


def _creator(name: str) -> Any:
    """Makes a group of that name without the switch, too."""

    def create(store: Any, rank: int, size: int, timeout: Any) -> Any:
        from pccl.comms import factory
        from pccl.comms.process_group import BackendWrapper

        with environment.as_rank(rank, size):
            return BackendWrapper(factory.new_comm(name, "cpu", "group", store=store, timeout=timeout))

    return create


def destroys_groups(caller: FrameType) -> bool:
    """Whether it is torch's `destroy_process_group` that calls: it finalizes communicators first, those too that the program has finalized,
    and an error there would leave its groups behind for good."""
    return caller.f_code.co_name == "destroy_process_group" and caller.f_globals.get("__name__") == "torch.distributed.distributed_c10d"


def records_itself(backend: str) -> None:
    """Keeps torch from a recorder of its own, in C++, for groups of that back-end: `FlightRecorderHook` is registered with their
    communicators, and torch's cannot be for a group in Python."""
    c10d: Any = sys.modules.get("torch.distributed.distributed_c10d")
    recording = getattr(c10d, "_FR_SELF_RECORDING_BACKENDS", None)
    if recording is not None and backend not in recording:
        c10d._FR_SELF_RECORDING_BACKENDS = type(recording)((*recording, backend))
