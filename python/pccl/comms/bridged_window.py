"""A communicator's window as torch's own group hands it out: torch's arguments, works and kinds of access."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import datetime
from typing import Any, Callable, Optional

import torch

from pccl.comms.window import TorchCommWinAccessType, TorchCommWindow, TorchCommWindowAttr
from pccl.comms.work import TorchWork

_in_cpp: Any = torch._C._distributed_c10d


class BridgedWindow:
    """The window that `torch.distributed` uses from 2.15 on.  `window` is the communicator's, for operations that torch does not name."""

    def __init__(self, window: TorchCommWindow, wrapped: Callable[[TorchWork], Any]) -> None:
        """`wrapped` makes a work of torch's."""
        self.window = window
        self._wrapped = wrapped

    def tensor_register(self, tensor: torch.Tensor, owning: bool = True) -> None:
        """Collective: this rank's part is `tensor`, which is kept unless `owning` is false."""
        self.window.tensor_register(tensor, owning)

    def tensor_deregister(self) -> None:
        """Collective: nobody reaches the tensor any more."""
        self.window.tensor_deregister()

    def put(self, tensor: torch.Tensor, dst_rank: int, target_offset_nelems: int, async_op: bool, opts: Any = None) -> Any:
        """Writes `tensor` into the part of `dst_rank`, from that element on; its end means that it is there."""
        return self._wrapped(self.window.put(tensor, dst_rank, target_offset_nelems, async_op, _hints(opts), _timeout(opts)))

    def signal(self, peer_rank: int, async_op: bool, opts: Any = None) -> Any:
        """Tells `peer_rank` that all that was put there before is done."""
        return self._wrapped(self.window.signal(peer_rank, async_op, _hints(opts), _timeout(opts)))

    def wait_signal(self, peer_rank: int, async_op: bool, opts: Any = None) -> Any:
        """Ends with a signal of `peer_rank` that no other wait has taken."""
        return self._wrapped(self.window.wait_signal(peer_rank, async_op, _hints(opts), _timeout(opts)))

    def map_remote_tensor(self, rank: int) -> Any:
        """The tensor of `rank`, in its own memory: this rank's always, others' where the access is unified; until deregistration."""
        return self.window.map_remote_tensor(rank)

    def get_attr(self, peer_rank: int) -> Any:
        """How that rank's part is reached: torch's WindowAttr, of releases that have it."""
        ours: TorchCommWindowAttr = self.window.get_attr(peer_rank)
        if not hasattr(_in_cpp, "WindowAttr"):
            return ours
        unified = ours.access_type is TorchCommWinAccessType.WIN_ACCESS_TYPE_UNIFIED
        attr = _in_cpp.WindowAttr()
        attr.access_type = _in_cpp.WindowAccessType.UNIFIED if unified else _in_cpp.WindowAccessType.SEPARATE
        return attr


def _hints(opts: Any) -> Any:
    return getattr(opts, "hints", None) or None


def _timeout(opts: Any) -> Optional[datetime.timedelta]:
    """torch's minus one millisecond is none."""
    timeout: Optional[datetime.timedelta] = getattr(opts, "timeout", None)
    return None if timeout is None or timeout < datetime.timedelta() else timeout
