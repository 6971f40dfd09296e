"""A barrier that names the missing ranks, as rank 0 holds it, over the messages of any API."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any, Callable, Protocol

from pccl.errors import PCCLError
from pccl.types import Cause


class Waitable(Protocol):
    """A message in flight."""

    def wait(self) -> Any:
        """RuntimeError: it has failed, or its time has passed."""


def roll_call(size: int, hear: Callable[[int], Waitable], answer: Callable[[int], Waitable], all_of_them: bool, milliseconds: int) -> str:
    """Hears from each other rank, then answers.  Returns the first rank that was late, or `all_of_them`, in torch's words; "": none.
    PCCLError: no rank was late, but the group has ended."""
    others = range(1, size)
    late: list[int] = []
    for peer, heard in [(peer, hear(peer)) for peer in others]:
        try:
            heard.wait()
        except RuntimeError as error:
            if isinstance(error, PCCLError) and error.cause is not Cause.DEADLINE:
                raise  # a loss, which has ended what those who are there have sent, too
            late.append(peer)
            if not all_of_them:
                break
    if late:
        who = f"Rank {late[0]}" if len(late) == 1 else f"Ranks {', '.join(map(str, late))}"
        return f"{who} failed to pass monitoredBarrier in {milliseconds} ms"
    for answered in [answer(peer) for peer in others]:
        answered.wait()
    return ""
