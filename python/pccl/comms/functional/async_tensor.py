"""A tensor that is not there yet: whatever is first done with it waits."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any

import torch
from torch.utils import _pytree as pytree


class TorchCommsAsyncTensor(torch.Tensor):
    """A result of `pccl.comms.functional.collectives` outside of `torch.compile`."""

    _result: torch.Tensor
    _over: bool

    @staticmethod
    def __new__(cls, result: torch.Tensor) -> "TorchCommsAsyncTensor":
        made: Any = torch.Tensor._make_wrapper_subclass(
            cls, result.size(), strides=result.stride(), storage_offset=result.storage_offset(), dtype=result.dtype, layout=result.layout,
            device=result.device, requires_grad=False,
        )
        made._result, made._over = result, False
        return made  # type: ignore[no-any-return]

    def wait(self) -> torch.Tensor:
        """The tensor itself, when it is there.  Raises how the operation failed."""
        if not self._over:
            (self._result,) = torch.ops.torchcomms.torchcomm_wait_tensors([self._result])
            self._over = True
        return self._result

    def tolist(self) -> Any:
        """Its numbers in lists, when they are there."""
        return self.wait().tolist()

    def numpy(self, *, force: bool = False) -> Any:
        """The numpy array of the tensor, when that is there."""
        return self.wait().numpy(force=force)

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]  # torch's has no types
        return f"TorchCommsAsyncTensor({self.wait()!r})"

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]  # torch's stub is of another shape
        cls, function: Any, types: Any, arguments: Any = (), named: Any = None
    ) -> Any:
        def there(value: Any) -> Any:
            return value.wait() if isinstance(value, TorchCommsAsyncTensor) else value

        return function(*pytree.tree_map(there, arguments), **pytree.tree_map(there, named or {}))
