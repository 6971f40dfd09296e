"""What a program is told when a world is over: a plain exception of two arguments, with the reason as attributes."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import NamedTuple, Optional

from pccl.types import Cause


class Loss(NamedTuple):
    """Why a world is over."""

    text: str
    cause: Cause
    peer: Optional[int]           #: rank of the member concerned; None: none, or it is not known
    phase: str                    #: what was under way: "all-reduce", "receive", ...; "" unknown
    detected_ms: Optional[float]  #: for how long the condition had lasted when it was noticed; None: not known


class BrokenWorldException(Exception):
    """A world lost a member, or was left; what waited in it has ended, and its name is free.

    Attributes: `world_name`, `msg`; `cause`, a `pccl.types.Cause`; `peer`, the rank of the member that was lost, None if unknown;
    `phase`, what was under way; `detected_ms`, for how long the condition had lasted when it was noticed, None if unknown.  The
    engine's error, with the peer's id, is `__cause__`.
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
