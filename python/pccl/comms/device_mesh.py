"""Device meshes over communicators, one for each dimension; FSDP2, DDP and tensor parallel then run through these."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import importlib
import itertools
from typing import Any, Optional, Sequence

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh

from pccl.comms.arguments import communicator, many
from pccl.comms.communicator import TorchComm
from pccl.comms.process_group import create_process_group as _create_torchcomm_process_group

__all__ = ["_create_torchcomm_process_group", "_flatten_with_comm", "init_device_mesh"]


def init_device_mesh(
    mesh_dim_comms: Sequence[TorchComm], mesh_dim_names: Sequence[str], _global_comm: Optional[TorchComm] = None
) -> DeviceMesh:
    """A mesh whose shape are the communicators' sizes, and this process's place their ranks.

    Each dimension's group has its name, with a number behind it where a group of that name is registered already.
    Several dimensions need the communicator of all processes, which becomes torch's default group; the one of a single dimension does.
    RuntimeError: it is missing.  ValueError: as many names as communicators are needed.
    """
    many("mesh_dim_comms", mesh_dim_comms, "communicators")
    many("mesh_dim_names", mesh_dim_names, "names")
    comms = list(mesh_dim_comms)
    for comm in comms:
        communicator("init_device_mesh", comm)
    if len(comms) != len(mesh_dim_names) or not comms:
        raise ValueError(f"{len(comms)} communicators and {len(mesh_dim_names)} names were passed; pass one of each for every dimension")
    if len(comms) > 1 and _global_comm is None:
        raise RuntimeError("there is no global comm: a mesh of several dimensions needs that of all processes; pass _global_comm")
    whole = _global_comm or comms[0]
    ranks = {rank: rank for rank in range(whole.get_size())}
    names = tuple(mesh_dim_names)
    own_name = _free_name(names[0] if len(comms) == 1 else "torchcomms_world")
    everybody = _create_torchcomm_process_group(whole, own_name, global_ranks_mapping=ranks)
    c10d: Any = dist.distributed_c10d
    c10d.GroupMember.WORLD = everybody
    if len(comms) == 1:
        return DeviceMesh.from_group(everybody, "cpu", mesh_dim_names=names)
    mesh = _places(comms, whole)
    place = tuple(comm.get_rank() for comm in comms)
    groups: list[dist.ProcessGroup] = []
    for dimension, (comm, name) in enumerate(zip(comms, names)):
        line = mesh[tuple(slice(None) if other == dimension else place[other] for other in range(len(comms)))]
        mapping = {int(rank): own for own, rank in enumerate(line)}
        groups.append(_create_torchcomm_process_group(comm, _free_name(name), global_ranks_mapping=mapping))
    return DeviceMesh.from_group(groups, "cpu", mesh, mesh_dim_names=names)


def _flatten_with_comm(mesh: DeviceMesh, mesh_dim_name: str, comm: TorchComm, global_ranks: Sequence[int], layout: Any) -> DeviceMesh:
    """The mesh of one dimension of that name over all of `mesh`, whose group is `comm`; ``mesh[mesh_dim_name]`` finds it from now on.

    `global_ranks` are the members' ranks of the default group, by rank in `comm`; `layout` is torch's of the new mesh, None: that of `mesh`.
    ValueError: the root has a dimension of that name, or as many ranks are not in the communicator, or this process has another place there.
    """
    root: Any = mesh._get_root_mesh()
    ranks = [int(rank) for rank in global_ranks]
    if mesh_dim_name in (root._mesh_dim_names or ()) or mesh_dim_name in root._flatten_mapping:
        raise ValueError(f"mesh_dim_name {mesh_dim_name!r} is one of {root} already; pass another")
    if len(ranks) != comm.get_size() or ranks[comm.get_rank()] != dist.get_rank():
        raise ValueError(
            f"global_ranks are {ranks}, and communicator {comm.get_name()} has {comm.get_size()} ranks, with rank {dist.get_rank()} of the "
            f"default group at {comm.get_rank()}; list the global rank of each member, by its rank there"
        )
    layouts: Any = importlib.import_module("torch.distributed._mesh_layout")._MeshLayout
    flat = mesh._layout.collapse() if layout is None else layout.collapse()
    mapping = {rank: own for own, rank in enumerate(ranks)}
    group = _create_torchcomm_process_group(comm, _free_name(mesh_dim_name), global_ranks_mapping=mapping)
    made: Any = DeviceMesh(
        root._device_type, _layout=layouts([flat]), _rank_map=root._rank_map, mesh_dim_names=(mesh_dim_name,), _root_mesh=root,
        _init_backend=False,
    )
    made._dim_group_names = [group.getGroupName()]
    root._flatten_mapping[mesh_dim_name] = made
    return made  # type: ignore[no-any-return]


def _free_name(name: str) -> str:
    """The name for a group that is registered now: this one, or the first of its kind that no group has."""
    taken = set(dist.distributed_c10d._world.pg_names.values())
    numbered = (f"{name}_{number}" for number in itertools.count(1))
    return next(free for free in itertools.chain([name], numbered) if free not in taken)


def _places(comms: Sequence[TorchComm], whole: TorchComm) -> torch.Tensor:
    """The global rank at each place.  RuntimeError: the communicators do not make up a grid."""
    shape = [comm.get_size() for comm in comms]
    mine = torch.tensor([comm.get_rank() for comm in comms])
    heard = torch.zeros(whole.get_size() * len(comms), dtype=torch.int64)
    whole.all_gather_single(heard, mine)
    mesh = torch.full(shape, -1, dtype=torch.int)
    for rank, place in enumerate(heard.view(-1, len(comms)).tolist()):
        mesh[tuple(place)] = rank
    if whole.get_size() != mesh.numel() or bool((mesh < 0).any()):
        raise RuntimeError(f"{whole.get_size()} processes are no grid of the shape {shape}; split the global comm into rows and columns")
    return mesh
