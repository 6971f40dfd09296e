"""Names for communicators and windows within a process, as operators of torch take them, whose arguments are tensors, numbers and texts."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import itertools
import weakref
from typing import Any

_objects: "weakref.WeakValueDictionary[str, Any]" = weakref.WeakValueDictionary()
_numbers = itertools.count()


def enter(thing: Any, name: str) -> str:
    """A text that is this object's alone, for as long as it lives."""
    handle = f"{name}#{next(_numbers)}"
    _objects[handle] = thing
    return handle


def thing_of(handle: str) -> Any:
    """The object.  RuntimeError: it has gone."""
    thing = _objects.get(handle)
    if thing is None:
        raise RuntimeError(f"there is no communicator or window {handle} any more; keep it for as long as what was compiled with it runs")
    return thing
