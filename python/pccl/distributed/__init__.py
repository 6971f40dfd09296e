"""The backend "pccl" of torch.distributed: importing this module registers it::

    import torch.distributed as dist
    import pccl.distributed

    dist.init_process_group("pccl")

Where torch looks for backends among installed packages (2.15) the import is not needed.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from pccl.distributed.elastic import Membership, reconfigure, reconfigure_handle, recover, update
from pccl.distributed.group import Group
from pccl.distributed.hooks import in_turn
from pccl.distributed.options import Options
from pccl.distributed.registration import register
from pccl.types import LossRule

__all__ = ["Group", "LossRule", "Membership", "Options", "in_turn", "reconfigure", "reconfigure_handle", "recover", "register", "update"]

register()
