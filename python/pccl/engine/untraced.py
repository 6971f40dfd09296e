"""Classes that torch calls from C++, also in the middle of what torch.compile has compiled: it runs them, and does not trace them."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import types
from typing import TypeVar

Face = TypeVar("Face", bound=type)


def untraced(face: Face) -> Face:
    """Keeps torch.compile out of the methods of a class, and out of all that they call."""
    from torch._C._dynamo.eval_frame import (  # type: ignore[attr-defined,unused-ignore]  # not in the stubs of some releases
        _FrameAction,
        _FrameExecStrategy,
        set_code_exec_strategy,
    )

    run = _FrameExecStrategy(_FrameAction.SKIP, _FrameAction.SKIP)
    for member in vars(face).values():
        function = member.fget if isinstance(member, property) else member
        if isinstance(function, types.FunctionType):
            set_code_exec_strategy(function.__code__, run)
    return face
