"""The back-end `fake`: one rank, whose operations are done at once and touch nothing; for tests of programs and hooks."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import itertools
from typing import Any, Optional, Sequence

from pccl.buffers import Buffer
from pccl.comms.backend import OPERATIONS, Mask, TorchCommBackend
from pccl.comms.options import CommOptions
from pccl.types import DataType

_handles = itertools.count(1)


class FakeBackend(TorchCommBackend):
    """Rank 0 of 1."""

    mask = Mask(reconfigure=True, empty_batch=True)
    built_in = True

    def __init__(self) -> None:
        self.name = ""
        self._handle = f"fake;{next(_handles)}"

    def init(self, device: Any, name: str, options: CommOptions) -> None:
        self.name = name

    def finalize(self) -> None:
        pass

    def get_rank(self) -> int:
        return 0

    def get_size(self) -> int:
        return 1

    def get_backend_name(self) -> str:
        return "fake"

    def get_backend_version(self) -> str:
        return "1.0"

    def get_comm_name(self) -> str:
        return self.name

    def split(self, ranks: Sequence[int], name: str, options: CommOptions) -> Optional["FakeBackend"]:
        if not ranks:
            return None
        child = FakeBackend()
        child.name = name
        return child

    def batch_op_issue(self, ops: Sequence[Any], async_op: bool) -> None:
        pass

    def new_window(self) -> "_FakeWindow":
        return _FakeWindow()

    def tensor_register(self, tensor: Any) -> None:
        pass

    def tensor_deregister(self, tensor: Any) -> None:
        pass

    def all_gather_p_init(self, output: Any) -> int:
        return 1

    def all_gather_p_exec(self, handle: int, input: Any, async_op: bool) -> None:
        pass

    def all_gather_p_free(self, handle: int) -> None:
        pass

    def get_hosts(self) -> list[str]:
        return ["fake"]

    def is_abort_supported(self) -> bool:
        return True

    def abort(self) -> None:
        pass

    def get_init_handle(self) -> str:
        return self._handle

    def reconfigure(self, uuid: int, init_handles: Any, timeout: float, hints: Any) -> None:
        self._handle = f"fake;{next(_handles)}"


def _nothing(self: FakeBackend, *arguments: Any) -> None:
    """Done."""


for _name in OPERATIONS:
    setattr(FakeBackend, _name, _nothing)


class _FakeWindow:
    """This rank's tensor alone."""

    def register(self, buffer: Buffer, said: bytes) -> list[bytes]:
        return [said]

    def deregister(self) -> None:
        pass

    def put(self, source: Buffer, rank: int, first: int, async_op: bool, seconds: float) -> None:
        pass

    def get(self, target: Buffer, rank: int, first: int, async_op: bool, seconds: float) -> None:
        pass

    def fetch_add(self, addend: int, rank: int, first: int, datatype: DataType) -> int:
        return 0

    def signal(self, rank: int, async_op: bool, seconds: float) -> None:
        pass

    def wait_signal(self, rank: int, async_op: bool, seconds: float) -> None:
        pass
