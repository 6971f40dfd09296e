"""Collectives that return their result and leave their arguments as they are, with gradients, inside and outside of `torch.compile`.

Outside of it, and where no gradient is asked for, results are `TorchCommsAsyncTensor`: the call returns at once, and the first use waits.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Optional, Sequence

import torch

from pccl.comms.arguments import many
from pccl.comms.communicator import TorchComm
from pccl.comms.functional import registry  # noqa: F401 - has the operators
from pccl.comms.functional.async_tensor import TorchCommsAsyncTensor
from pccl.comms.functional.param_parsing import operator_of
from pccl.comms.reduce_op import ReduceOp, as_reduce_op

_Limits = tuple[str, bool, float, list[str]]


def _limits(comm: TorchComm, *inputs: torch.Tensor) -> _Limits:
    """The arguments that all operators end in.  TypeError: no communicator, or no tensor."""
    if not hasattr(comm, "_handle"):
        raise TypeError(f"comm is a {type(comm).__name__}; pass a communicator of new_comm or split")
    for one in inputs:
        if not isinstance(one, torch.Tensor):
            raise TypeError(f"tensor is a {type(one).__name__}; pass a torch tensor")
    plain = torch.compiler.is_compiling() or (torch.is_grad_enabled() and any([one.requires_grad for one in inputs]))
    return comm._handle, not plain, 0.0, []


def _result(made: torch.Tensor, limits: _Limits) -> torch.Tensor:
    return TorchCommsAsyncTensor(made) if limits[1] else made


def all_reduce(tensor: torch.Tensor, op: ReduceOp, comm: TorchComm) -> torch.Tensor:
    """All ranks' `tensor`, reduced.  Its gradient is reduced as well; SUM and AVG have one."""
    op = as_reduce_op(op)
    limits = _limits(comm, tensor)
    return _result(torch.ops.torchcomms.torchcomm_all_reduce(tensor, *operator_of(op), *limits), limits)


def reduce(tensor: torch.Tensor, root: int, op: ReduceOp, comm: TorchComm) -> torch.Tensor:
    """The same at the root; elsewhere a copy of `tensor`."""
    op = as_reduce_op(op)
    limits = _limits(comm, tensor)
    return _result(torch.ops.torchcomms.torchcomm_reduce(tensor, root, *operator_of(op), *limits), limits)


def broadcast(tensor: torch.Tensor, root: int, comm: TorchComm) -> torch.Tensor:
    """The root's `tensor`."""
    limits = _limits(comm, tensor)
    return _result(torch.ops.torchcomms.torchcomm_broadcast(tensor, root, *limits), limits)


def all_gather_single(tensor: torch.Tensor, comm: TorchComm) -> torch.Tensor:
    """All ranks' `tensor` along dimension 0, by rank."""
    limits = _limits(comm, tensor)
    rows = tensor.shape[0] if tensor.dim() else 1
    output = tensor.new_empty([rows * comm.get_size(), *tensor.shape[1:]])
    return _result(torch.ops.torchcomms.torchcomm_all_gather_single(output, tensor, *limits), limits)


def reduce_scatter_single(tensor: torch.Tensor, op: ReduceOp, comm: TorchComm) -> torch.Tensor:
    """This rank's part of dimension 0 of all ranks' `tensor`, reduced.  RuntimeError: the ranks cannot share it evenly."""
    op = as_reduce_op(op)
    limits = _limits(comm, tensor)
    if tensor.dim() == 0 or tensor.shape[0] % comm.get_size():
        raise RuntimeError(f"dimension 0 of a tensor of shape {list(tensor.shape)} must be divisible by comm_size, {comm.get_size()}")
    output = tensor.new_empty([tensor.shape[0] // comm.get_size(), *tensor.shape[1:]])
    made = torch.ops.torchcomms.torchcomm_reduce_scatter_single(output, tensor, *operator_of(op), *limits)
    return _result(made, limits)


def all_to_all_single(
    tensor: torch.Tensor, comm: TorchComm, output_split_sizes: Optional[Sequence[int]] = None,
    input_split_sizes: Optional[Sequence[int]] = None,
) -> torch.Tensor:
    """The data that each rank has for this one, by rank: equal parts of dimension 0, or rows as listed.  ValueError: one list alone was given."""
    limits = _limits(comm, tensor)
    if output_split_sizes is None and input_split_sizes is None:
        return _result(torch.ops.torchcomms.torchcomm_all_to_all_single(torch.empty_like(tensor), tensor, *limits), limits)
    if output_split_sizes is None or input_split_sizes is None:
        raise ValueError("output_split_sizes or input_split_sizes is missing; pass both, or neither")
    output = tensor.new_empty([sum(output_split_sizes), *tensor.shape[1:]])
    made = torch.ops.torchcomms.torchcomm_all_to_all_v_single(output, tensor, list(output_split_sizes), list(input_split_sizes), *limits)
    return _result(made, limits)


def all_to_all(tensors: Sequence[torch.Tensor], shapes: Sequence[Sequence[int]], comm: TorchComm) -> list[torch.Tensor]:
    """The tensors that the ranks have in their lists for this one; `shapes[r]` is the shape of the tensor from rank r."""
    many("tensors", tensors, "tensors")
    many("shapes", shapes, "shapes")
    limits = _limits(comm, *tensors)
    outputs = [tensors[0].new_empty(list(shape)) for shape in shapes]
    made = torch.ops.torchcomms.torchcomm_all_to_all(outputs, list(tensors), *limits)
    return [_result(one, limits) for one in made]


def wait_tensors(tensors: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """The same, when they are there."""
    return [one.wait() if isinstance(one, TorchCommsAsyncTensor) else one for one in tensors]

