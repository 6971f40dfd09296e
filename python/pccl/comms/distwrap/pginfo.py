"""Which groups of torch have communicators, and which: one for each device of the back-end's text."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any, Iterable, NamedTuple, Optional

import torch
import torch.distributed as dist

from pccl.comms.communicator import TorchComm
from pccl.comms.process_group import BackendWrapper


class GroupInfo(NamedTuple):
    """Of one group: by kind of device the communicator, wrapped as a group of torch that carries its calls."""

    carriers: dict[str, BackendWrapper]

    def of(self, device: Optional[str]) -> BackendWrapper:
        """The one for that kind of device; None: the first.  RuntimeError: there is none."""
        if device is None:
            return next(iter(self.carriers.values()))
        if device not in self.carriers:
            raise RuntimeError(f"the group has no communicator for {device}, only for {', '.join(self.carriers)}; name one at its creation")
        return self.carriers[device]


_infos: dict[Any, GroupInfo] = {}


def enter(group: Any, info: GroupInfo) -> None:
    """From now on that group's calls are its communicators'."""
    _infos[group] = info


def leave(group: Any) -> Optional[GroupInfo]:
    """No more; of None no group's."""
    if group is None:
        _infos.clear()
        return None
    return _infos.pop(group, None)


def info_of(group: Any) -> Optional[GroupInfo]:
    """Of that group, None: of the default one.  None: it has no communicators."""
    if group is None:
        group = dist.group.WORLD
    return None if group is None else _infos.get(group)


def comm_of(group: Any, device: Optional[str] = None) -> TorchComm:
    """Its communicator.  RuntimeError: it has none."""
    info = info_of(group)
    if info is None:
        raise RuntimeError("the group has no communicator; call init_process_group with use_torchcomms=True")
    return info.of(device).get_comm()


def device_among(values: Iterable[Any]) -> Optional[str]:
    """The kind of device of the first tensor there, in lists too."""
    for value in values:
        if isinstance(value, torch.Tensor):
            return value.device.type
        if isinstance(value, (list, tuple)) and value and isinstance(value[0], torch.Tensor):
            return str(value[0].device.type)
    return None
