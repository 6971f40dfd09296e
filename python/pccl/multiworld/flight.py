"""An operation that was launched, as every back-end offers it."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any, Callable, Optional, Protocol

from pccl.multiworld.memory import Land


class Flight(Protocol):
    """An operation that was launched."""

    @property
    def land(self) -> Land:
        """To be called once, after success."""

    @property
    def error(self) -> Optional[BaseException]:
        """How it failed; None: it has not ended, or succeeded."""

    def when_done(self, callback: Callable[[], None]) -> None:
        """Has `callback` called in some thread when it has ended; at once, here, if it has."""

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits until it has ended, or so many seconds passed; whether it has."""

    def cancel(self) -> None:
        """Asks for its end; never blocks."""


class Receive(Flight, Protocol):
    """A receive that was launched."""

    @property
    def memory(self) -> Any:
        """Contiguous memory that the message goes to, from where `land` brings it to the program's."""
