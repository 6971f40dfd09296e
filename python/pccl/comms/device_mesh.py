"""Device meshes over communicators, one for each dimension; FSDP2, DDP and tensor parallel then run through these."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any, Optional, Sequence

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import DeviceMesh

from pccl.comms.communicator import TorchComm
from pccl.comms.process_group import create_process_group as _create_torchcomm_process_group

__all__ = ["_create_torchcomm_process_group", "init_device_mesh"]


def init_device_mesh(
    mesh_dim_comms: Sequence[TorchComm], mesh_dim_names: Sequence[str], _global_comm: Optional[TorchComm] = None
) -> DeviceMesh:
    """A mesh whose shape are the communicators' sizes, and this process's place their ranks.

    Several dimensions need the communicator of all processes, which becomes torch's default group; the one of a single dimension does.
    RuntimeError: it is missing.  ValueError: as many names as communicators are needed.
    """
    comms = list(mesh_dim_comms)
    if len(comms) != len(mesh_dim_names) or not comms:
        raise ValueError(f"{len(comms)} communicators and {len(mesh_dim_names)} names were passed; pass one of each for every dimension")
    if len(comms) > 1 and _global_comm is None:
        raise RuntimeError("there is no global comm: a mesh of several dimensions needs that of all processes; pass _global_comm")
    whole = _global_comm or comms[0]
    ranks = {rank: rank for rank in range(whole.get_size())}
    everybody = _create_torchcomm_process_group(whole, "torchcomms_world", global_ranks_mapping=ranks)
    c10d: Any = dist.distributed_c10d
    c10d.GroupMember.WORLD = everybody
    names = tuple(mesh_dim_names)
    if len(comms) == 1:
        return DeviceMesh.from_group(everybody, "cpu", mesh_dim_names=names)
    mesh = _places(comms, whole)
    place = tuple(comm.get_rank() for comm in comms)
    groups: list[dist.ProcessGroup] = []
    for dimension, (comm, name) in enumerate(zip(comms, names)):
        line = mesh[tuple(slice(None) if other == dimension else place[other] for other in range(len(comms)))]
        mapping = {int(rank): own for own, rank in enumerate(line)}
        groups.append(_create_torchcomm_process_group(comm, f"mesh_{name}", global_ranks_mapping=mapping))
    return DeviceMesh.from_group(groups, "cpu", mesh, mesh_dim_names=names)


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
