"""Options of a group beyond torch's own arguments: ``init_process_group("pccl", pg_options=pccl.distributed.Options(...))``."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import dataclasses
import math
from typing import Any, Optional

from pccl.types import LossRule


@dataclasses.dataclass(frozen=True)
class Options:
    """Zero, "" and None are the library's defaults.

    `loss_rule`: END, the group ends with its first loss; SHRINK, it continues with the remaining ranks, renumbered without gaps. `master`,
    `world`: the master's "host:port" and the name of the group's world there, in place of a rendezvous over the store; all ranks say the
    same. `join`: enters that world, which goes on by SHRINK, in place of a rank that it has lost. `lanes`: connections to each peer.
    `stall`: seconds of silence after which a peer counts as lost, no more than the master's (``--dead-ms``, 10 s by default).
    `reconfigurable`: it begins with the first `pccl.distributed.reconfigure`; of the default group, and as 2.15's ``enable_reconfigure``.
    `as_backend`: the group is torch's own, with this as its back-end, from 2.15 on. A map of devices ("cpu:pccl,cuda:gloo") implies it.
    It adds `split_group`, `monitored_barrier` and all else that torch reserves for its own groups; its ranks do not change.
    """

    loss_rule: LossRule = LossRule.END
    master: str = ""
    world: str = ""
    join: bool = False
    lanes: int = 0
    stall: Optional[float] = None
    reconfigurable: bool = False
    as_backend: bool = False

    def __post_init__(self) -> None:
        for name, kind in _KINDS.items():
            if not isinstance(getattr(self, name), kind):
                raise TypeError(f"pccl: Options.{name} is {getattr(self, name)!r}; pass a {kind.__name__}")
        if self.stall is not None and not (isinstance(self.stall, (int, float)) and 0.05 <= self.stall < math.inf):
            raise ValueError(f"pccl: Options.stall is {self.stall!r}; pass seconds, 0.05 at least, or None")
        if not 0 <= self.lanes < 2**32:
            raise ValueError(f"pccl: Options.lanes is {self.lanes}; pass a number of connections, or 0 for what the library takes")
        if self.world and not self.master:
            raise ValueError(f"pccl: Options.world is {self.world!r}, but master is not given; pass the address of the master that has it")
        if self.join and not (self.world and self.loss_rule is LossRule.SHRINK):
            raise ValueError("pccl: Options.join enters a world that goes on after losses; pass its master, its name, and LossRule.SHRINK")
        if self.as_backend and (self.reconfigurable or self.loss_rule is LossRule.SHRINK):
            raise ValueError("pccl: Options.as_backend makes a group whose ranks do not change; leave reconfigurable out, and SHRINK")


_KINDS: dict[str, type] = {
    "loss_rule": LossRule, "master": str, "world": str, "join": bool, "lanes": int, "reconfigurable": bool, "as_backend": bool,
}


def options_of(given: Any) -> Options:
    """TypeError: something else was passed as pg_options."""
    if given is None:
        return Options()
    if isinstance(given, Options):
        return given
    raise TypeError(f"pccl: pg_options is a {type(given).__name__}; pass a pccl.distributed.Options")
