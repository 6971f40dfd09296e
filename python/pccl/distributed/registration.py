"""How torch comes to know the backend, and how its groups are made: the default group meets over the store, others out of it."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import atexit
import dataclasses
import hashlib
import sys
import time
import weakref
from datetime import timedelta
from typing import Any, Optional, Sequence

import torch.distributed as dist

from pccl.distributed import farewell
from pccl.distributed.backend import Backend, group_of, leads, wanted
from pccl.distributed.group import Group
from pccl.distributed.options import Options, options_of
from pccl.distributed.rendezvous import meet, own_master
from pccl.engine import World, aliases
from pccl.engine.meeting import connected, world_of
from pccl.errors import RankConnectionLost, make_error
from pccl.types import Result

_groups: "weakref.WeakSet[Group]" = weakref.WeakSet()


def register() -> None:
    """Makes torch know the backend "pccl"; the second time nothing."""
    if "pccl" not in dist.Backend.backend_list:
        dist.Backend.register_backend("pccl", _create, extended_api=True, devices=["cpu"])


def _create(opts: Any, pg_options: Any) -> "Group | Backend":
    """What torch calls at the members of a group."""
    options = options_of(pg_options)
    aliases.adopt()
    if getattr(opts, "enable_reconfigure", False):
        options = dataclasses.replace(options, reconfigurable=True)
    backend = wanted(opts, options)
    ranks = list(opts.global_ranks_in_group)
    parent = _default_group() if ranks else None
    if parent is not None and not options.world:
        tag = parent.count_of(ranks)

        def make(group: Group) -> World:
            return _derived(parent, ranks, tag, opts.timeout, options)
    else:

        def make(group: Group) -> World:
            world, group.where = meet(opts.store, opts.group_rank, opts.group_size, opts.timeout.total_seconds(), options)
            return world

    group = Group(opts.group_rank, opts.group_size, opts.timeout, options, make, bool(ranks), lambda: own_master(opts.store))
    group.store = opts.store
    _groups.add(group)
    return Backend(group, opts.group_id, leads(opts.process_group), _split) if backend else group


def _split(parent: Group, ranks: Sequence[int], timeout: timedelta) -> Group:
    """A group of ranks of another one; all calls fail where this process's is none of them."""
    own = parent.getRank()
    tag = parent.count_of(ranks)

    def make(group: Group) -> World:
        if own not in ranks:
            raise make_error(Result.INVALID_USAGE, "split_group", f"rank {own} is in no part of this split; call nothing in what it was given")
        return _derived(parent, ranks, tag, timeout, parent.options)

    group = Group(ranks.index(own) if own in ranks else -1, len(ranks), timeout, parent.options, make, True, parent.own_master)
    _groups.add(group)
    return group


def _default_group() -> Optional[Group]:
    group = dist.distributed_c10d._get_default_group()
    return group if isinstance(group, Group) else group_of(group)


def _derived(parent: Group, ranks: Sequence[int], tag: int, timeout: timedelta, options: Options) -> World:
    """A world of those ranks of the parent; given up when one of them is lost to that before it has come.

    One that has ended since other ranks have left it does no harm: the new one is then found by its name alone.
    """
    until = time.monotonic() + timeout.total_seconds()
    try:
        return _within(parent, ranks, tag, timeout, options)
    except RankConnectionLost:
        if parent.where is None or not parent.ended_without(ranks):
            raise
    name = hashlib.sha256(f"{parent.where.world} {list(ranks)} {tag}".encode()).hexdigest()[:40]
    return connected(world_of(
        parent.where._replace(world=f"torch-group-{name}"), size=len(ranks), rank=ranks.index(parent.rank()), loss_rule=options.loss_rule,
        formation_timeout=max(0.001, until - time.monotonic()), lanes=options.lanes,
    ))


def _within(parent: Group, ranks: Sequence[int], tag: int, timeout: timedelta, options: Options) -> World:
    """The same, while the parent's world goes on."""
    world = parent.world
    if world is None:
        raise make_error(Result.INVALID_USAGE, "new_group", f"the default group has no world: {parent.no_world}")
    members = {member.key: member.id for member in world.members()}
    gone = [rank for rank in ranks if rank not in members]
    if gone:
        raise make_error(Result.INVALID_ARGUMENT, "new_group", f"ranks {gone} are not in the default group any more; leave them out")
    return world.create_from_list(
        [members[rank] for rank in ranks], tag, loss_rule=options.loss_rule, formation_timeout=timeout.total_seconds(), lanes=options.lanes
    )


def _leave_all() -> None:
    """At the end of a program that has not destroyed its groups: the others need not find out.

    A parent may be waiting for this process to end before it comes to its own end, so there is no more than a little patience; one that ends by
    an exception has none.
    """
    failed = hasattr(sys, "last_value")
    for group in list(_groups):
        if group.own():
            group.leave(None if failed else 0.0)
    if failed:
        farewell.give_up()
    farewell.finish()


atexit.register(_leave_all)
