"""The group that torch has where communicators do the work: it tells ranks and sizes, and refuses to communicate."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any, NoReturn

import torch
import torch.distributed as dist

NAME = "torchcomms_distwrap"

_ProcessGroup: Any = dist.ProcessGroup

#: What torch calls of a group, older and newer names.
_CALLS = (
    "allreduce", "allreduce_coalesced", "broadcast", "reduce", "allgather", "allgather_coalesced", "all_gather_single", "_allgather_base",
    "all_gather_single_coalesced", "allgather_into_tensor_coalesced", "gather", "gather_single", "scatter", "reduce_scatter",
    "reduce_scatter_single", "_reduce_scatter_base", "reduce_scatter_single_coalesced", "reduce_scatter_tensor_coalesced", "alltoall",
    "all_to_all_single", "alltoall_base", "send", "recv", "recv_anysource", "barrier", "monitored_barrier",
)


class FallbackGroup(_ProcessGroup):  # type: ignore[misc]  # its stubs know no constructor of ours
    """Rank, size and name."""

    def __init__(self, rank: int, size: int) -> None:
        super().__init__(rank, size)
        self._of = rank, size
        self._name = self._desc = ""
        self.splits = 0  #: it has seen so many

    def getBackendName(self) -> str:  # noqa: N802 - torch's names
        return NAME

    def getRank(self) -> int:  # noqa: N802
        return self._of[0]

    def getSize(self) -> int:  # noqa: N802
        return self._of[1]

    def setGroupName(self, name: str) -> None:  # noqa: N802
        self._name = name

    def getGroupName(self) -> str:  # noqa: N802
        return self._name

    def setGroupDesc(self, text: str) -> None:  # noqa: N802
        self._desc = text

    def getGroupDesc(self) -> str:  # noqa: N802
        return self._desc

    supports_splitting = supports_coalescing = False

    @property
    def _device_types(self) -> list[torch.device]:
        return []

    def _get_backend(self, device: Any) -> Any:
        return self

    def shutdown(self) -> None:
        """Nothing: the communicators are ended by themselves."""

    def abort(self) -> None:
        """Nothing."""


def _refusal(name: str) -> Any:
    def refuse(self: FallbackGroup, *arguments: Any, **named: Any) -> NoReturn:
        raise NotImplementedError(
            f"{name}: this group's communication is done by communicators; call the function of pccl.comms.distwrap of that name in place of "
            "the one of torch.distributed"
        )

    return refuse


for _call in _CALLS:
    setattr(FallbackGroup, _call, _refusal(_call))


def register() -> None:
    """Makes torch know it; the second time nothing."""
    if NAME not in dist.Backend.backend_list:
        dist.Backend.register_backend(NAME, lambda store, rank, size, timeout: FallbackGroup(rank, size), devices=["cpu", "cuda"])
