"""The functions of `torch.distributed`, with its names, arguments and checks.

Where a group has communicators, the group that goes to torch's function is the one that carries the calls of the communicator for the
tensor's device.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, Optional, Sequence, TypeVar, cast

import torch
import torch.distributed as dist

from pccl.comms.distwrap import pginfo

Function = TypeVar("Function", bound=Callable[..., Any])


def _looks_alike(function: Function, needs: tuple[str, ...] = ()) -> Function:
    """The same by a group's communicator; ValueError where none of the arguments that it `needs` is given."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        bound = signature.bind(*arguments, **named)
        info = pginfo.info_of(bound.arguments.get("group"))
        if info is not None:
            if needs and all(bound.arguments.get(name) is None for name in needs):
                raise ValueError(f"{function.__name__}: neither {' nor '.join(needs)} was given; pass one")
            bound.arguments["group"] = info.of(pginfo.device_among(bound.arguments.values()))
        return function(*bound.args, **bound.kwargs)

    return cast(Function, call)


all_reduce = _looks_alike(dist.all_reduce)
broadcast = _looks_alike(dist.broadcast, ("src", "group_src"))
reduce = _looks_alike(dist.reduce, ("dst", "group_dst"))
all_gather = _looks_alike(dist.all_gather)
all_gather_into_tensor = _looks_alike(dist.all_gather_into_tensor)
reduce_scatter = _looks_alike(dist.reduce_scatter)
reduce_scatter_tensor = _looks_alike(dist.reduce_scatter_tensor)
all_to_all = _looks_alike(dist.all_to_all)
all_to_all_single = _looks_alike(dist.all_to_all_single)
scatter = _looks_alike(dist.scatter)
gather = _looks_alike(dist.gather)
barrier = _looks_alike(dist.barrier)
send = _looks_alike(dist.send, ("dst", "group_dst"))
recv = _looks_alike(dist.recv, ("src", "group_src"))
isend = _looks_alike(dist.isend, ("dst", "group_dst"))
irecv = _looks_alike(dist.irecv, ("src", "group_src"))
all_gather_object = _looks_alike(dist.all_gather_object)
gather_object = _looks_alike(dist.gather_object)
scatter_object_list = _looks_alike(dist.scatter_object_list)
broadcast_object_list = _looks_alike(dist.broadcast_object_list)


def _make_nccl_premul_sum(factor: Any) -> Any:
    """torch's operator that multiplies each input by `factor`, a number or a tensor of one element, and sums."""
    return dist._make_nccl_premul_sum(factor)  # type: ignore[attr-defined]  # not public


_ISEND, _IRECV = (isend, dist.isend), (irecv, dist.irecv)


class P2POp:
    """A send or receive of `batch_isend_irecv`: `op` is this module's or torch's `isend` or `irecv`, `peer` a global rank, or `group_peer`
    one of the group.  ValueError: `op` is another function, or both or neither of the peers are given.
    TypeError: `tensor` is none."""

    def __init__(
        self, op: Callable[..., Any], tensor: torch.Tensor, peer: Optional[int] = None, group: Any = None, tag: int = 0,
        group_peer: Optional[int] = None,
    ) -> None:
        if op not in (*_ISEND, *_IRECV):
            raise ValueError("op is neither isend nor irecv; pass one of these")
        if not isinstance(tensor, torch.Tensor):
            raise TypeError(f"tensor is a {type(tensor).__name__}; pass a torch tensor")
        if (peer is None) == (group_peer is None):
            raise ValueError("both or neither of peer and group_peer were given; pass one")
        self.op, self.tensor, self.peer, self.group, self.tag, self.group_peer = op, tensor, peer, group, tag, group_peer

    def _for_torch(self) -> Any:
        info = pginfo.info_of(self.group)
        group = self.group if info is None else info.of(self.tensor.device.type)
        return dist.P2POp(dist.isend if self.op in _ISEND else dist.irecv, self.tensor, self.peer, group, self.tag, self.group_peer)


def batch_isend_irecv(p2p_op_list: Sequence[Any]) -> list[Any]:
    """Issues all of them; returns their works."""
    works: list[Any] = dist.batch_isend_irecv([op._for_torch() if isinstance(op, P2POp) else op for op in p2p_op_list])
    return works
