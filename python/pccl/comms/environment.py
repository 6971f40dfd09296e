"""The settings of the environment: this process's rank and size, defaults of timeouts and flags."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import contextlib
import os
from typing import Iterator, Optional

_TRUE = {"1", "true", "yes", "y"}
_FALSE = {"0", "false", "no", "n"}

#: Seconds that an operation may take where nobody says otherwise.
DEFAULT_TIMEOUT = 600.0

_Pairs = list[tuple[str, tuple[str, ...]]]
_PAIRS: dict[str, _Pairs] = {
    "mpi": [("OMPI_COMM_WORLD_RANK", ("OMPI_COMM_WORLD_SIZE",)), ("PMI_RANK", ("PMI_SIZE",))],
    "pals": [("PALS_RANKID", ("PALS_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "WORLD_SIZE"))],
    "torchrun": [("RANK", ("WORLD_SIZE",))],
}
_PAIRS["auto"] = _PAIRS["mpi"] + _PAIRS["pals"] + _PAIRS["torchrun"]


def text(name: str) -> Optional[str]:
    """A variable's text without blanks around it; None where it is not set or empty."""
    value = os.environ.get(name, "").strip()
    return value or None


def as_flag(value: str, what: str) -> bool:
    """A boolean as hints and variables write it.  RuntimeError: none."""
    word = value.strip().lower()
    if word not in _TRUE and word not in _FALSE:
        raise RuntimeError(f"Invalid value for {what}: {value}; write one of 1, true, yes, y, 0, false, no, n")
    return word in _TRUE


def flag(name: str) -> Optional[bool]:
    """A boolean variable; None where it is not set or empty."""
    value = text(name)
    return None if value is None else as_flag(value, f"environment variable {name}")


def number(name: str, default: float) -> float:
    """A variable that is not negative.  RuntimeError: none."""
    value = text(name)
    if value is None:
        return default
    try:
        result = float(value)
    except ValueError:
        result = -1.0
    if not 0 <= result < float("inf"):
        raise RuntimeError(f"Invalid value for environment variable {name}: {value}; write a number that is not negative")
    return result


def default_timeout() -> float:
    """Seconds, TORCHCOMM_TIMEOUT_SECONDS."""
    return number("TORCHCOMM_TIMEOUT_SECONDS", DEFAULT_TIMEOUT) or DEFAULT_TIMEOUT


@contextlib.contextmanager
def as_rank(rank: int, size: int) -> Iterator[None]:
    """This process is that rank of so many, within the block, whatever the environment says outside of it."""
    said = {"TORCHCOMM_RANK": str(rank), "TORCHCOMM_SIZE": str(size)}
    before = {name: os.environ.get(name) for name in said}
    os.environ.update(said)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def rank_and_size() -> tuple[int, int]:
    """Rank and size of this process.  RuntimeError: no pair of variables tells them."""
    method = (text("TORCHCOMM_BOOTSTRAP_RANKSIZE_QUERY_METHOD") or "auto").lower()
    pairs = [("TORCHCOMM_RANK", ("TORCHCOMM_SIZE",)), *_PAIRS.get(method, [])]
    for rank_name, size_names in pairs:
        rank = _integer(rank_name)
        size = next((value for value in map(_integer, size_names) if value is not None), None)
        if rank is not None and size is not None and rank >= 0 and size > 0:
            if rank >= size:
                raise RuntimeError(f"Unable to determine rank and size: {rank_name} is {rank}, and the size {size}; ranks begin at 0")
            return rank, size
    names = ", ".join(rank for rank, _ in pairs)
    odd = "" if method in _PAIRS else f" (TORCHCOMM_BOOTSTRAP_RANKSIZE_QUERY_METHOD is {method!r}, none of {', '.join(sorted(_PAIRS))})"
    raise RuntimeError(
        f"Unable to determine rank and size: none of {names} is set with its size{odd}; start with torchrun or mpirun, "
        "or set TORCHCOMM_RANK and TORCHCOMM_SIZE"
    )


def _integer(name: str) -> Optional[int]:
    value = text(name)
    if value is None:
        return None
    try:
        return int(value)
    except ValueError:
        raise RuntimeError(f"Invalid value for environment variable {name}: {value}; write a whole number") from None
