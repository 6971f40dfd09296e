"""Callbacks and errors that do not keep alive what they come from, so that a group that is dropped leaves at once.

A reference cycle lasts until the garbage collector runs, and as long the other ranks would see a rank that does not answer.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import copy
import weakref
from typing import Any, Callable


def weakly(method: Callable[..., Any]) -> Callable[..., Any]:
    """A bound method that does not keep its object alive; called without it, it does nothing."""
    reference = weakref.WeakMethod(method)

    def call(*arguments: Any) -> Any:
        found = reference()
        return None if found is None else found(*arguments)

    return call


def twin(error: Exception) -> Exception:
    """A copy of an error to raise: the traceback, which has the caller's variables, is the copy's.  The error itself, if it has no copy."""
    try:
        made = copy.copy(error)
    except Exception:  # noqa: B902 - of any class
        return error
    made.__cause__ = error.__cause__
    return made if type(made) is type(error) and str(made) == str(error) else error
