"""One engine under all APIs: worlds with all their calls, operations in flight, and the thread that reports when they end.

`World` is a communicator of the library.  `Operation` is one of its calls in flight.  `Window` is memory that other members access.
The APIs give these the names and conventions of other libraries.  Logic that belongs here or in C is not repeated in them.
"""
# SPDX-License-Identifier: MIT
from pccl.engine.facts import Connection, Edge, Member, TcpConnection, Topology, Transport, Wait
from pccl.engine.operation import Operation
from pccl.engine.process import at_once, awaited
from pccl.engine.window import Window, WindowPart
from pccl.engine.world import ANY_RANK, NO_COLOR, World, group

__all__ = [
    "ANY_RANK", "NO_COLOR", "Connection", "Edge", "Member", "Operation", "TcpConnection", "Topology", "Transport", "Wait", "Window",
    "WindowPart", "World", "at_once", "awaited", "group",
]
