"""The other form of a group: a back-end of torch's own process group, which works with others in a map of devices, and splits.

PyTorch makes such a group of "cpu:pccl,cuda:gloo" and the like, and where a program asks for it by `Options.as_backend`.  Its calls use
the same `Group` as those of the usual form, by the same table.  Torch's own groups do not pass on three features:
the source of a message from any rank, whether a Work is completed without a wait, and ranks that change.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from datetime import timedelta
from typing import Any, Callable, Optional, Sequence

import torch
import torch.distributed as dist

from pccl.distributed.group import Group, with_calls
from pccl.distributed.options import Options
from pccl.distributed.work import Call, Work
from pccl.engine.untraced import untraced
from pccl.errors import make_error
from pccl.types import LossRule, Result

_c10d: Any = torch._C._distributed_c10d

#: Makes the group of these ranks out of another one, under a timeout.
Derive = Callable[[Group, Sequence[int], timedelta], Group]

_kept: dict[str, "Backend"] = {}  # by the group's name: torch's wrapper of its DETAIL mode holds the half in C++ only


class Backend(_c10d.Backend):  # type: ignore[misc]  # a class of C++ without stubs in some releases
    """The back-end that torch's own process group calls for a device.  `group` does the work."""

    supports_splitting = True
    supports_coalescing = False
    supports_reconfigure = False
    supports_window = False

    def __init__(self, group: Group, name: str, leads: bool, derive: Derive) -> None:
        """`name` is that of torch's group, which it `leads`, if its default back-end is this one.  It lives until `shutdown`."""
        super().__init__(group.getRank(), group.getSize())
        self.group = group
        self._name = name
        self._leads = leads
        self._derive = derive
        _kept[name] = self

    def issue(self, build: Callable[..., Call], arguments: tuple[Any, ...], named: dict[str, Any]) -> Work:
        return self.group.issue(build, arguments, named)

    def getBackendName(self) -> str:
        return "pccl"

    @property
    def options(self) -> Any:
        """The options that torch copies for the parts of a split; it sets the name and timeout of each part."""
        options = _c10d.Backend.Options("pccl", self.group.timeout)
        options.group_name = self._name
        return options

    def split(self, store: Any, ranks: Sequence[int], opts: Any) -> "Backend":
        """For `torch.distributed.split_group`: that of the group of these ranks, in their order.  It needs no store.

        A rank that is not among them has one whose calls fail: without any, as is right, torch 2.15 ends the process by a fault of memory.
        InvalidUsage: nor can it have one, since the group's default back-end is another one, which has none.
        """
        if not self._leads and self.group.getRank() not in ranks:
            text = f"rank {self.group.getRank()} is in no part of this split, which torch does not bear in this map of devices"
            raise make_error(Result.INVALID_USAGE, "split_group", f"{text}; put it into one, alone if need be")
        return Backend(self._derive(self.group, ranks, opts._timeout), opts.group_name, self._leads, self._derive)

    def eager_connect_single_device(self, device: Any) -> None:
        """Nothing: it is connected when it has been made."""

    def perform_nocolor_split(self, device: Any) -> None:
        """Nothing: who is in no part has no part in a split."""

    def shutdown(self) -> None:
        """Leaves, and may be freed."""
        self.group.shutdown()
        if _kept.get(self._name) is self:
            del _kept[self._name]

    def start_coalescing(self) -> None:
        """Nothing: operations that are issued one after the other travel together."""

    def end_coalescing(self) -> None:
        """Nothing to wait for; torch takes that."""

    def monitored_barrier(self, opts: Any, wait_all_ranks: bool = False) -> None:
        """The group's."""
        self.group.monitored_barrier(None if opts.timeout < timedelta() else opts.timeout, wait_all_ranks)


def _passed_on(name: str) -> Callable[..., Any]:
    def method(self: Backend, *arguments: Any) -> Any:
        return getattr(self.group, name)(*arguments)

    method.__doc__ = getattr(Group, name).__doc__
    return method


for _name in (
    "set_timeout", "_add_ephemeral_timeout", "get_error", "abort", "_set_sequence_number_for_group", "_get_sequence_number_for_group",
    "_wait_for_pending_works",
):
    setattr(Backend, _name, _passed_on(_name))
for _name, _seen in (("register_abort_hook", "registerAbortHook"), ("unregister_abort_hook", "unregisterAbortHook")):
    setattr(Backend, _seen, _passed_on(_name))  # torch looks for them by their names in C++
with_calls(Backend)
untraced(Backend)


def group_of(group: Any) -> Optional[Group]:
    """The group that does the work of torch's own process group.  None: it contains no back-end of this package."""
    found = _kept.get(dist.distributed_c10d._world.pg_names.get(group, ""))
    return None if found is None else found.group


def leads(group: Any) -> bool:
    """Whether the default back-end of torch's own group is ours."""
    return bool(group._get_backend_name() == "custom")


def wanted(opts: Any, options: Options) -> bool:
    """Whether the group that torch makes with these `opts` needs a back-end.

    It does if it has another back-end, if the program asks for one, or if it has a device of its own and ranks that do not change.

    Another back-end shows in the group's contents: its device, or its name as the name of the whole group.  The latter holds because
    torch prefers a back-end of another device than the CPU.  InvalidUsage: this torch does not permit a back-end in Python, or the
    ranks are to change.
    """
    if not _can_be_made():
        if options.as_backend:
            text = f"torch {torch.__version__} lets no back-end be made in Python, as 2.15 does; leave Options.as_backend out"
            raise make_error(Result.INVALID_USAGE, "init_process_group", text)
        return False
    group = opts.process_group
    shrinks = options.loss_rule is LossRule.SHRINK
    if not leads(group) or group._device_types:
        if shrinks:
            text = "a group of several back-ends has the ranks that it began with; use LossRule.END, or \"pccl\" alone"
            raise make_error(Result.INVALID_USAGE, "init_process_group", text)
        return True
    return options.as_backend or (group.bound_device_id is not None and not shrinks and not options.reconfigurable)


def _can_be_made() -> bool:
    try:
        _c10d.Backend(0, 1)
    except TypeError:
        return False
    return True
