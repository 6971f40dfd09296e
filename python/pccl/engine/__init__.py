"""One engine under all faces: worlds with all their calls, operations in flight, and the thread that tells of their ends.

`World` is a communicator of the library, `Operation` one of its calls in flight, `Window` memory that others reach.  Faces give these
the names and habits of other libraries, and have no logic of their own that belongs here or in C.
"""
# SPDX-License-Identifier: MIT
from pccl.engine.facts import Member, Transport, Wait
from pccl.engine.operation import Operation
from pccl.engine.process import at_once, awaited
from pccl.engine.window import Window, WindowPart
from pccl.engine.world import ANY_RANK, NO_COLOR, World, group

__all__ = [
    "ANY_RANK", "NO_COLOR", "Member", "Operation", "Transport", "Wait", "Window", "WindowPart", "World", "at_once", "awaited", "group",
]
