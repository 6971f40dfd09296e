"""Who keeps the ranks that a group had when it was made, and so cannot go on in one that shrinks: device meshes and FSDP.

Both ask the group for something that they keep: a mesh for its name, by which it finds it later, FSDP for the rank whose parts it has.  So
who asks is seen from the module whose function it is.
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
