"""A tensor that is not there yet: whatever is first done with it waits."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any, Optional

import torch
from torch.utils import _pytree as pytree

from pccl.comms.functional import pending


class TorchCommsAsyncTensor(torch.Tensor):
    """A result of `pccl.comms.functional.collectives` outside of `torch.compile`.

    A program makes one of a tensor and the work that writes the tensor.  None stands for the work of an operator of the library
    `torchcomms`, whose result `result` is, or for no work.
    """

    _result: torch.Tensor
    _work: Any
    _over: bool

    @staticmethod
    def __new__(cls, result: torch.Tensor, work: Optional[Any] = None) -> "TorchCommsAsyncTensor":
        if not isinstance(result, torch.Tensor):
            raise TypeError(f"result is a {type(result).__name__}; pass a torch tensor")
        if work is not None and not callable(getattr(work, "wait", None)):
            raise TypeError(f"work is {work!r}, a {type(work).__name__}; pass a work, which has a method wait, or None")
        made: Any = torch.Tensor._make_wrapper_subclass(
            cls, result.size(), strides=result.stride(), storage_offset=result.storage_offset(), dtype=result.dtype, layout=result.layout,
            device=result.device, requires_grad=False,
        )
        made._result, made._work, made._over = result, work, False
        return made  # type: ignore[no-any-return]

    def wait(self) -> torch.Tensor:
        """The tensor itself, when it is there.  Raises the error of an operation that failed."""
        if not self._over:
            if self._work is None:
                pending.arrive([self._result])
            else:
                self._work.wait()
            self._over, self._work = True, None
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
