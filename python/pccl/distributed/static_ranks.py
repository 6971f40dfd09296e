"""Users of a group that keep its first ranks, and so cannot continue in a group that shrinks: device meshes and FSDP.

Both read a value from the group and keep it.  A mesh reads the name, by which it finds the group later.  FSDP reads the rank whose parts
it has.  The module of the calling function therefore identifies them.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from types import FrameType

from pccl.errors import make_error
from pccl.types import Result

_MESH = "torch.distributed.device_mesh"
_FSDP = ("torch.distributed.fsdp", "torch.distributed._composable.fsdp")


def refuse_mesh(caller: FrameType) -> None:
    """InvalidUsage: a DeviceMesh asks for the name of a group that shrinks."""
    if caller.f_globals.get("__name__") == _MESH:
        _refuse("a DeviceMesh")


def refuse_fsdp(caller: FrameType) -> None:
    """InvalidUsage: FSDP asks for the rank in a group that shrinks."""
    if str(caller.f_globals.get("__name__")).startswith(_FSDP):
        _refuse("FSDP")


def _refuse(keeper: str) -> None:
    text = f"{keeper} keeps the ranks of its group, and in this one they change with each loss; make the group with the loss rule END"
    raise make_error(Result.INVALID_USAGE, "process group", text)
