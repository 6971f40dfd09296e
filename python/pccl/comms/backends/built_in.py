"""The base of this package's back-ends: they know their rank and size, and return them."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from pccl.comms.backend import TorchCommBackend


class BuiltIn(TorchCommBackend):
    """A back-end whose rank, size and members are set when it enters its communicator."""

    built_in = True

    def __init__(self) -> None:
        self.name = ""
        self._rank = self._size = -1
        self._ranks: list[int] = []

    def get_rank(self) -> int:
        return self._rank

    def get_size(self) -> int:
        return self._size

    def get_ranks(self) -> list[int]:
        return list(self._ranks)

    def get_comm_name(self) -> str:
        return self.name
