"""A hook that refuses operations on tensors that hold a NaN."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import threading
from typing import Any

from pccl.comms.arguments import communicator
from pccl.comms.communicator import TorchComm
from pccl.comms.hooks.registry import OpName, RemovableHandle
from pccl.comms.hooks.shapes import tensors_of
from pccl.comms.tensors import has_nan
from pccl.comms.work import TorchWork


class NanCheckHook:
    """`check_inputs`: a NaN prevents the operation; `check_outputs`: its `wait` raises."""

    __module__ = "pccl.comms.hooks"

    def __init__(self, check_inputs: bool = True, check_outputs: bool = False) -> None:
        self.check_inputs = check_inputs
        self.check_outputs = check_outputs
        self._handles: list[RemovableHandle] = []
        self._outputs = threading.local()

    def is_enabled(self) -> bool:
        """Whether it is registered with a communicator and looks at anything."""
        return bool(self._handles) and (self.check_inputs or self.check_outputs)

    def register_with_comm(self, comm: TorchComm) -> None:
        """Looks at that communicator's operations from now on."""
        communicator("register_with_comm", comm)

        def before(name: OpName, op_id: int, args: Any) -> None:
            inputs, outputs = tensors_of(args)
            if name is OpName.broadcast and comm.get_rank() != args.root:
                inputs = []
            if self.check_inputs:
                _look(inputs, "input", name, comm)
            self._outputs.now = (op_id, outputs)

        def after(op_id: int, args: Any) -> None:
            known, outputs = getattr(self._outputs, "now", (None, []))
            work: Any = getattr(args, "work", None)
            if self.check_outputs and known == op_id and isinstance(work, TorchWork):
                work._checks.append(lambda: _look(outputs, "output", args.name, comm))

        self._handles += [comm.register_pre_hook(before), comm.register_post_hook(after)]

    def unregister(self) -> None:
        """Looks at nothing any more."""
        while self._handles:
            self._handles.pop().remove()


def _look(tensors: list[Any], which: str, name: OpName, comm: TorchComm) -> None:
    if any(has_nan(tensor) for tensor in tensors):
        raise RuntimeError(f"NaN detected in {which} tensor for '{name.name}' on comm '{comm.get_name()}'")
