"""The error that reports the end of a world: a plain exception of two arguments, with the reason as attributes."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import NamedTuple, Optional

from pccl.types import Cause


class Loss(NamedTuple):
    """Why a world has ended."""

    text: str
    cause: Cause
    peer: Optional[int]           #: rank of the member concerned; None: none, or it is not known
    phase: str                    #: what was under way: "all-reduce", "receive", ...; "" unknown
    detected_ms: Optional[float]  #: for how long the condition had lasted when it was noticed; None: not known


class BrokenWorldException(Exception):
    """A world lost a member, or was left.  Its waiting operations have ended, and its name is free.

    The attributes are `world_name` and `msg`, and `cause`, a `pccl.types.Cause`.  `peer` is the rank of the lost member, None if
    unknown.  `phase` is the phase of the operation.  `detected_ms` is how long the condition had lasted when it was noticed, None
    if unknown.  The engine's error, with the peer's id, is `__cause__`.
    """

    def __init__(self, world_name: str, msg: str) -> None:
        super().__init__(world_name, msg)
        self.world_name = world_name
        self.msg = msg
        self.cause = Cause.NONE
        self.peer: Optional[int] = None
        self.phase = ""
        self.detected_ms: Optional[float] = None

    def __str__(self) -> str:
        return f"{self.world_name} broken: {self.msg}"

    @classmethod
    def of(cls, world_name: str, loss: Loss) -> "BrokenWorldException":
        """The exception that tells of that loss."""
        error = cls(world_name, loss.text)
        error.cause, error.peer, error.phase, error.detected_ms = loss.cause, loss.peer, loss.phase, loss.detected_ms
        return error
