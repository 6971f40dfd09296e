"""Many named worlds in one process, each its own fault domain: MultiWorld's interface on PCCL's engine, or on torch's groups.

A world that loses a member ends, for its members alone.  All other worlds of a process continue undisturbed.
"""
# SPDX-License-Identifier: MIT
from pccl.multiworld.communicator import DEFAULT_WORLD_NAME, WorldCommunicator
from pccl.multiworld.compatibility import install
from pccl.multiworld.errors import BrokenWorldException
from pccl.multiworld.manager import WorldManager

__all__ = ["DEFAULT_WORLD_NAME", "BrokenWorldException", "WorldCommunicator", "WorldManager", "install"]
