"""Batches: sends and receives that are issued together, so that none waits for another."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Optional, Sequence

from pccl.comms.options import BatchP2POptions
from pccl.comms.work import TorchWork

if TYPE_CHECKING:
    from pccl.comms.memory import Memory


class P2POpType(str, Enum):
    """The kind of an operation of a batch."""

    SEND = "SEND"
    RECV = "RECV"


class P2POp:
    """A send to, or a receive from, rank `peer`."""

    __module__ = "pccl.comms"

    def __init__(self, type: P2POpType, tensor: Any, peer: int) -> None:
        self.type = P2POpType(type)
        self.tensor = tensor
        self.peer = peer

    def __repr__(self) -> str:
        return f"P2POp({self.type.name}, peer={self.peer})"


def in_rounds(ops: Sequence[P2POp], rank: int) -> list[P2POp]:
    """A batch's messages to and from others: of each pair and direction the first, then of each the second, and so on.

    So what meets is in one round at both, and who issues a round when an old one has ended never waits for who waits for him.  In a round
    receives come first.
    """
    counts: dict[tuple[str, int], int] = {}
    placed: list[tuple[int, int, P2POp]] = []
    for op in ops:
        if op.peer != rank:
            pair = (op.type.value, op.peer)
            counts[pair] = counts.get(pair, 0) + 1
            placed.append((counts[pair], op.type is P2POpType.SEND, op))
    return [op for _, _, op in sorted(placed, key=lambda one: one[:2])]


class BatchSendRecv:
    """The k-th send from A to B meets the k-th receive from A at B.  `ops` may be read and written, and issued again."""

    __module__ = "pccl.comms"

    def __init__(self, comm: "Memory") -> None:
        self._comm = comm
        self.ops: list[P2POp] = []

    def send(self, tensor: Any, dst: int) -> None:
        """Adds a send to rank `dst`, this rank itself too."""
        self.ops.append(P2POp(P2POpType.SEND, tensor, dst))

    def recv(self, tensor: Any, src: int) -> None:
        """Adds a receive from rank `src`, this rank itself too."""
        self.ops.append(P2POp(P2POpType.RECV, tensor, src))

    def issue(self, async_op: bool = False, options: Optional[BatchP2POptions] = None) -> TorchWork:
        """Issues all of them; only the ranks that they name take part."""
        return self._comm._issue_batch(self.ops, async_op, options)
