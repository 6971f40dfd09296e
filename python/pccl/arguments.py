"""Numbers, texts and times on their way into C: what C cannot hold is refused here, by name, before it is called.

A value that is too small or too large is an `InvalidArgument`, one of another type a `TypeError`; both tell argument, value and remedy.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import functools
import operator
from enum import Enum
from typing import Any, Iterable, Mapping, Optional

from pccl._native import ffi
from pccl.errors import make_error
from pccl.types import Result


def mistake(function: str, said: str) -> Exception:
    """The error for a wrong argument of `function`."""
    return make_error(Result.INVALID_ARGUMENT, function, said)


@functools.lru_cache(maxsize=None)
def _range(kind: Any) -> tuple[int, int]:
    """The least and the greatest number of an integer type of C."""
    bits = 8 * ffi.sizeof(kind)
    return (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if int(ffi.cast(kind, -1)) < 0 else (0, 2**bits - 1)


def whole(function: str, what: str, number: Any, kind: Any) -> int:
    """`number`, which the integer type `kind` of C has to hold.  InvalidArgument: it does not.  TypeError: it is no whole number."""
    low, high = _range(kind)
    try:
        value = operator.index(number)
    except TypeError:
        text = f"pccl: {function}: {what} is {number!r}, a {type(number).__name__}; pass a whole number from {low} to {high}"
        raise TypeError(text) from None
    if not low <= value <= high:
        raise mistake(function, f"{what} is {value}; pass a whole number from {low} to {high}")
    return value


def number(function: str, what: str, value: Any) -> int:
    """A whole number of any size, whose limits the caller checks.  TypeError: it is none."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"pccl: {function}: {what} is {value!r}, a {type(value).__name__}; pass a whole number") from None


def array(function: str, what: str, numbers: Iterable[Any], kind: str) -> Any:
    """A new array of C of these numbers.  Errors as of `whole`."""
    if not hasattr(numbers, "__iter__"):
        raise TypeError(f"pccl: {function}: {what} is {numbers!r}, a {type(numbers).__name__}; pass a list of whole numbers")
    listed = list(numbers)
    try:
        return ffi.new(f"{kind}[]", listed)
    except (OverflowError, TypeError):
        return ffi.new(f"{kind}[]", [whole(function, f"element {index} of {what}", number, kind) for index, number in enumerate(listed)])


def member(what: str, value: Any, kind: type[Enum]) -> Any:
    """The number of a member of `kind`.  TypeError: it is none, be it that it has a number, as those of other enumerations have."""
    if not isinstance(value, kind):
        raise TypeError(f"pccl: {what} is {value!r}; pass one of {kind.__name__}: {', '.join(kind.__members__)}")
    return value.value


def instance(what: str, value: Any, kind: type) -> None:
    """TypeError: `value` is no `kind`."""
    if not isinstance(value, kind):
        raise TypeError(f"pccl: {what} is {value!r}; pass a {kind.__name__}")


def text(function: str, what: str, value: Any) -> bytes:
    """A text of C: UTF-8, without NUL.  InvalidArgument: that cannot be.  TypeError: it is no text."""
    if not isinstance(value, str):
        raise TypeError(f"pccl: {function}: {what} is {value!r}, a {type(value).__name__}; pass a str")
    try:
        encoded = value.encode()
    except UnicodeEncodeError:
        raise mistake(function, f"{what} is {value!r}; pass one that UTF-8 can write") from None
    if b"\0" in encoded:
        raise mistake(function, f"{what} is {value!r}; leave the NUL out, at which it would end")
    return encoded


def length_of_time(seconds: Any) -> float:
    """`seconds` as a float; infinity is allowed.  ValueError: below 0, or not a number.  TypeError: something else."""
    try:
        value = float(seconds)
    except (TypeError, ValueError):
        raise TypeError(f"pccl: {seconds!r}, a {type(seconds).__name__}, is no length of time; pass seconds, or None") from None
    if not value >= 0:
        raise ValueError(f"pccl: {seconds} s is no length of time; pass a number that is not negative, or None")
    return value


def seconds(function: str, what: str, value: Any) -> float:
    """A length of time for an argument that cannot be None.  ValueError, TypeError: as of `length_of_time`, with its name."""
    try:
        return length_of_time(value)
    except TypeError:
        raise TypeError(f"pccl: {function}: {what} is {value!r}, a {type(value).__name__}; pass a number of seconds") from None
    except ValueError:
        raise ValueError(f"pccl: {function}: {what} is {value} s; pass a number that is not negative") from None


def call(name: str, function: Any, arguments: tuple[Any, ...], numbers: Optional[Mapping[str, Any]] = None) -> Any:
    """Calls a function of C and returns its result.  `numbers` names the arguments that came from outside; errors as of `whole`."""
    try:
        return function(*arguments)
    except (OverflowError, TypeError):  # rare, so that all others pay nothing for it
        names = {id(number): what for what, number in (numbers or {}).items()}
        kinds = ffi.typeof(function).args
        if not any(id(argument) in names for argument in arguments):
            raise
        arguments = tuple(
            whole(name, names[id(argument)], argument, kind) if id(argument) in names and kind.kind in ("primitive", "enum") else argument
            for argument, kind in zip(arguments, kinds)
        )
        return function(*arguments)
