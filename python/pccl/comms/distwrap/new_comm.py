"""How groups with communicators begin and end."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import datetime
from typing import Any, Optional, Sequence

import torch.distributed as dist
from torch._C._distributed_c10d import HashStore

from pccl.comms import environment, factory
from pccl.comms.arguments import many
from pccl.comms.distwrap import fallback, pginfo
from pccl.comms.distwrap.utils import backends_by_device
from pccl.comms.process_group import BackendWrapper, create_process_group

_c10d: Any = dist.distributed_c10d


def init_process_group(
    backend: Optional[str] = None, init_method: Optional[str] = None, timeout: Optional[datetime.timedelta] = None, world_size: int = -1,
    rank: int = -1, store: Any = None, group_name: str = "", pg_options: Any = None, device_id: Any = None, use_torchcomms: bool = False,
    **newer: Any,
) -> None:
    """torch's; with `use_torchcomms` the default group has a communicator for each device of `backend`, which meet over the same store.

    `backend` is "gloo", or "cpu:gloo,cuda:nccl".  ValueError: its name is unknown.
    """
    if not use_torchcomms:
        dist.init_process_group(backend, init_method, timeout, world_size, rank, store, group_name, pg_options, device_id, **newer)
        return
    if newer:
        raise TypeError(f"init_process_group: {', '.join(newer)} cannot be given with use_torchcomms=True; leave it out")
    names = backends_by_device(backend)
    fallback.register()
    dist.init_process_group(fallback.NAME, init_method, timeout, world_size, rank, store, group_name)
    own, size = dist.get_rank(), dist.get_world_size()
    try:
        carriers: dict[str, BackendWrapper] = {}
        for device, name in names.items():
            label = f"{group_name or 'default_pg'}_{device}"
            place = _c10d.PrefixStore(f"distwrap/{label}", _c10d._get_default_store())
            with environment.as_rank(own, size):
                comm = factory.new_comm(name, device_id if device_id is not None and device != "cpu" else device, label, timeout=timeout, store=place)
            carriers[device] = _carrier(comm, label, {each: each for each in range(size)}, timeout)
    except Exception:
        dist.destroy_process_group()
        raise
    pginfo.enter(dist.group.WORLD, pginfo.GroupInfo(carriers))


def destroy_process_group(group: Any = None) -> None:
    """torch's; the communicators of the group, of None all, are finalized, which is collective."""
    if group is None or group is dist.group.WORLD:
        pginfo.leave(None)
    else:
        info = pginfo.leave(group)
        for carrier in info.carriers.values() if info is not None else ():
            dist.destroy_process_group(carrier)
    dist.destroy_process_group(group)


def new_group(*arguments: Any, **named: Any) -> Any:
    """torch's.  AssertionError: the default group has communicators; call `split_group`."""
    if pginfo.info_of(None) is not None:
        raise AssertionError("new_group is not for groups with communicators; call split_group, with the ranks of all groups")
    return dist.new_group(*arguments, **named)


def split_group(
    parent_pg: Any = None, split_ranks: Optional[Sequence[Sequence[int]]] = None, timeout: Optional[datetime.timedelta] = None,
    pg_options: Any = None, group_desc: Optional[str] = None, backend: Optional[str] = None,
) -> Any:
    """Collective of the parent: this rank's group of those that `split_ranks` lists, by ranks of the parent, in the listed order.

    `backend` chooses among the parent's devices, as "cpu:gloo".  ValueError: there are no lists, this rank is in none of them, or the
    parent has no such back-end.
    """
    info = pginfo.info_of(parent_pg)
    if info is None:
        options = {} if backend is None else {"backend": backend}
        return dist.split_group(parent_pg, split_ranks, timeout, pg_options, group_desc, **options)  # type: ignore[arg-type]
    if not split_ranks:
        raise ValueError("split_ranks is empty; list the ranks of each group")
    many("split_ranks", split_ranks, "lists of ranks")
    for ranks in split_ranks:
        many("split_ranks", ranks, "lists of ranks")
    chosen = info.carriers
    if backend is not None:
        wanted = backends_by_device(backend)
        chosen = {device: one for device, one in chosen.items() if wanted.get(device) == one.name()}
        if len(chosen) != len(wanted):
            raise ValueError(f"backend is {backend!r}, and the parent has {[f'{d}:{c.name()}' for d, c in info.carriers.items()]}; choose of these")
    own = next(iter(chosen.values())).getRank()
    mine = next((list(ranks) for ranks in split_ranks if own in ranks), [])
    parent: Any = parent_pg or dist.group.WORLD
    of_world = {of_parent: of_world for of_world, of_parent in _c10d._world.pg_group_ranks[parent].items()}
    parent.splits += 1  # at all of its ranks
    label = f"{parent.getGroupName()}:{parent.splits}"
    mapping = {of_world[rank]: place for place, rank in enumerate(mine)}
    carriers: dict[str, BackendWrapper] = {}
    for device, carrier in chosen.items():
        comm = carrier.get_comm().split(mine, f"{label}_{device}", timeout=timeout)
        if comm is not None:
            carriers[device] = _carrier(comm, f"{label}_{device}", mapping, timeout)
    if not mine:
        raise ValueError(f"rank {own} is in none of split_ranks {[list(ranks) for ranks in split_ranks]}; list each rank in one of them")
    group = fallback.FallbackGroup(mine.index(own), len(mine))
    group.setGroupName(label)
    group.setGroupDesc(group_desc or "undefined")
    _c10d._register_pg_in_world(
        group, backend_name=fallback.NAME, store=HashStore(), group_name=label, backend_config=f"cpu:{fallback.NAME}", rank_mapping=mapping,
    )
    pginfo.enter(group, pginfo.GroupInfo(carriers))
    return group


def _carrier(comm: Any, name: str, mapping: dict[int, int], timeout: Optional[datetime.timedelta]) -> BackendWrapper:
    wrapper = create_process_group(comm, name, global_ranks_mapping=mapping)
    if timeout is not None:
        wrapper.set_timeout(timeout)
    return wrapper
