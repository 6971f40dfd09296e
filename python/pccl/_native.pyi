# The extension: cffi's interface to all of pccl_topology.h and pccl.h, written out by python/declarations.py.
# SPDX-License-Identifier: MIT
from typing import Any

ffi: Any
lib: Any
