"""Calls of the original interface in a world: all-reduces that a tag names, many of them with retry, and shared state.

Callers pass filled structures of C, and `keep`: all objects that have to live as long as the call needs their memory.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any

from pccl._native import ffi, lib
from pccl.arguments import whole
from pccl.engine.operation import Operation, OperationInfo
from pccl.engine.process import interruptible
from pccl.engine.world import World


class TaggedOperation(Operation):
    """An all-reduce in flight that its tag names, which is in use until it has ended and somebody has looked."""

    __slots__ = ()

    _handle_type = "pcclAsyncReduceOp_t *"
    _wait_in_c = lib.pcclWaitAsyncReduce
    _spend_in_c = lib.pcclAwaitAsyncReduce
    _cancel_in_c = lib.pcclCancelAsyncReduce
    _attach_in_c = lib.pcclQueueAttachReduce


def reduce_tagged(world: World, send: Any, receive: Any, descriptor: Any, keep: Any) -> Operation:
    """``pcclAllReduceAsync``: pointers, and a pcclReduceDescriptor_t."""
    return world._launch("all_reduce", lib.pcclAllReduceAsync, (send, receive, descriptor), keep, kind=TaggedOperation)


def reduce_many(world: World, descriptors: Any, max_in_flight: int, keep: Any) -> OperationInfo:
    """``pcclAllReduceMultipleWithRetry`` of an array of pcclReduceOpDescriptor_t."""
    info = ffi.new("pcclReduceInfo_t *")
    name = "all_reduce_multiple_with_retry"
    comm = world._own(name)
    arguments = (descriptors, len(descriptors), comm, info, whole(name, "max_in_flight", max_in_flight, "int32_t"))
    interruptible(name, lib.pcclAllReduceMultipleWithRetry, *arguments, keep=keep)
    return OperationInfo(info.local_world_size, info.tx_bytes, info.rx_bytes)


def synchronize(world: World, state: Any, strategy: int, keep: Any) -> tuple[int, int]:
    """``pcclSynchronizeSharedState`` of a pcclSharedState_t: payload bytes sent and received."""
    info = ffi.new("pcclSharedStateSyncInfo_t *")
    comm = world._own("sync_shared_state")
    world._sweep()
    interruptible("sync_shared_state", lib.pcclSynchronizeSharedState, comm, state, strategy, info, keep=keep)
    return info.tx_bytes, info.rx_bytes
