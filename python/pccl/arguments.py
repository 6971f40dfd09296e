"""Arguments as C takes them: numbers of a width, members of an enumeration, texts.  What is none is named, with what to pass instead."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import operator
from enum import Enum
from typing import Any


def number(value: Any, name: str, bits: int = 64) -> int:
    """A number of so many bits, without a sign.  TypeError: it is not whole.  ValueError: it is below 0, or too large."""
    try:
        whole = operator.index(value)
    except TypeError:
        raise TypeError(f"pccl: {name} is {value!r}; pass a whole number") from None
    if not 0 <= whole < 1 << bits:
        raise ValueError(f"pccl: {name} is {whole}; pass a number from 0 to {(1 << bits) - 1}")
    return whole


def member(value: Any, kind: type[Enum], name: str) -> Any:
    """The number of a member of `kind`.  TypeError: it is none, be it that it has a number, as those of other enumerations have."""
    if not isinstance(value, kind):
        raise TypeError(f"pccl: {name} is {value!r}; pass a {kind.__name__}: {', '.join(kind.__members__)}")
    return value.value


def instance(value: Any, kind: type, name: str) -> None:
    """TypeError: `value` is no `kind`."""
    if not isinstance(value, kind):
        raise TypeError(f"pccl: {name} is {value!r}; pass a {kind.__name__}")


def text(value: Any, name: str) -> bytes:
    """A text in UTF-8.  TypeError: it is none.  ValueError: it has a NUL, at which it would end, or half a character."""
    if not isinstance(value, str):
        raise TypeError(f"pccl: {name} is {value!r}; pass a str")
    if "\0" in value:
        raise ValueError(f"pccl: {name} is {value!r}; leave the NUL out, at which it would end")
    try:
        return value.encode()
    except UnicodeEncodeError:
        raise ValueError(f"pccl: {name} is {value!r}, of which UTF-8 has no form; leave the surrogates out") from None
