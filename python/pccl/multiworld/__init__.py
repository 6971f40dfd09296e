"""Many named worlds in one process, each its own fault domain: MultiWorld's interface on PCCL's engine, or on torch's groups.

A world that loses a member is over, for its members alone; all other worlds of a process go on as if nothing had happened.
"""
# SPDX-License-Identifier: MIT
from pccl.multiworld.communicator import DEFAULT_WORLD_NAME, WorldCommunicator
from pccl.multiworld.compatibility import install
from pccl.multiworld.errors import BrokenWorldException
from pccl.multiworld.manager import WorldManager

__all__ = ["DEFAULT_WORLD_NAME", "BrokenWorldException", "WorldCommunicator", "WorldManager", "install"]
