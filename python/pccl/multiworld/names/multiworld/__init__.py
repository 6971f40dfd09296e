"""MultiWorld's name for the processes that a program of ``python -m pccl.multiworld`` starts: their PYTHONPATH has the folder above."""
# SPDX-License-Identifier: MIT
__pccl__ = True

from pccl.multiworld.compatibility import in_child  # noqa: E402

in_child()
