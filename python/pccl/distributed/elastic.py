"""Training that goes on when ranks are lost and new ones join: what a program adds to its loop, over a group with the loss rule SHRINK::

    while step < steps:
        if pccl.distributed.update().joined:      # between two steps: who waits is let in
            step, ddp = bring_up(step, model)     # who has the highest step broadcasts its state; all wrap the model anew
        try:
            train_one_step(ddp)
        except RuntimeError as error:
            pccl.distributed.recover(error, ddp)  # raises it again if it is no loss
            continue                              # the same step, with those who are left
        step += 1

All of it, with a kill and a newcomer, is ``examples/python/elastic_ddp.py``.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from datetime import timedelta
from typing import Any, Collection, NamedTuple, Optional

import torch.distributed as dist

from pccl.distributed.group import Group
from pccl.distributed.reconfiguration import Wish
from pccl.distributed.work import Work
from pccl.errors import make_error
from pccl.types import ErrorClass, LossRule, Result


class Membership(NamedTuple):
    """The members of a group: this rank, the number of ranks, and the ranks that have come with this update."""

    rank: int                #: this process's
    size: int                #: how many ranks there are
    joined: tuple[int, ...]  #: the ranks that have come with this update


def update(group: Optional[Any] = None) -> Membership:
    """Admits waiting newcomers, and removes ranks that have left; all ranks call it between two steps, with nothing in flight.

    The group of a newcomer was made with ``Options(join=True)``.  This call of the others let it return.  The newcomer continues
    with the same actions as the others after a join.
    PendingAsyncOps: a Work has not been waited for.
    """
    ours = _ours(group)
    world = ours.world
    if ours.options.loss_rule is not LossRule.SHRINK:
        raise make_error(Result.INVALID_USAGE, "update", "the group ends with its first loss; pass Options(loss_rule=LossRule.SHRINK) when it is made")
    if world is None:
        raise make_error(Result.INVALID_USAGE, "update", "the group has not begun, or was shut down; call it between init and destroy")
    world.update()
    members = world.members()
    joined = tuple(member.rank for member in members if member.id not in ours.known)
    ours.known = {member.id: member.key for member in members}
    return Membership(world.rank, len(members), joined)


def recover(error: BaseException, *wrappers: Any, group: Optional[Any] = None) -> None:
    """Makes DistributedDataParallel modules ready to repeat the step that failed with `error`, dividing by the size that is now.

    Raises `error` if a repetition does not help: it is not the group's, or the group does not go on after a loss.
    """
    ours = _ours(group)
    failure, ours.failure = ours.failure, None
    if failure is None or failure.error_class is not ErrorClass.RETRY or ours.options.loss_rule is not LossRule.SHRINK:
        raise error
    for wrapper in wrappers:
        wrapper._update_process_group(ours)


def reconfigure(
    uuid: int, handles: Collection[str], group: Optional[Any] = None, timeout: Optional[timedelta] = None, hints: Optional[dict[str, str]] = None
) -> Work:
    """Gives a group made with ``Options(reconfigurable=True)`` new members; all of them make the same call.  Returns a Work to wait for.

    In a list of handles positions are ranks.  Nobody else has to do anything.  After a failure the group is as it was, and a fresh `uuid`
    may succeed.  The same as torch's own of 2.15.
    """
    return _ours(group).reconfigure(Wish(uuid, handles, timeout, hints))


def reconfigure_handle(group: Optional[Any] = None) -> str:
    """The handle of this process's group for `reconfigure`; the program sends it to the others.  It is valid until that has succeeded."""
    return _ours(group).get_reconfigure_handle()


def _ours(group: Optional[Any]) -> Group:
    """The group, or the default one.  TypeError: another backend's."""
    found = dist.group.WORLD if group is None else group
    if not isinstance(found, Group):
        raise TypeError(f"pccl: the group is a {type(found).__name__}; pass one of the backend pccl")
    return found
