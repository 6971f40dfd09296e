"""Names that other libraries have in the environment, and what they are here.

A name of ours that is set counts; else the one that begins with ``NCCL_``, else that with ``RCCL_``.  Which name gave a value is logged, and
once for a process what cannot be followed.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import logging
import os
import socket
from typing import Callable, MutableMapping, Optional

_log = logging.getLogger("pccl")

_ALGORITHMS = {"tiny", "direct", "ring", "halving", "tree", "chain", "bruck", "pairwise", "forest"}
_NETS = {"socket": "Socket", "ofi": "OFI"}

#: What these ask for is so, or nothing that can be chosen here.
_WITHOUT_EFFECT = {
    "ALLREDUCE_ELEMENTS_THRESHOLD": "the fastest algorithm for each size is chosen by what messages and bytes were measured to cost",
    "DIRECT": "tensors are sent and received where they lie",
    "MEMPOOL_DISABLE": "staging memory is bounded, and goes back when it is idle",
    "IB_DISABLE": "NCCL_NET says what carries the bytes",
    "DEVICES": "the memory is the host's",
}


def _interfaces(text: str) -> Optional[str]:
    """As it is, if an interface here is named so."""
    names = [name for _, name in socket.if_nameindex()]
    exclude = text.startswith("^")
    exact = text.lstrip("^").startswith("=")
    listed = text.lstrip("^=").split(",")
    named = [name for name in names if any(name == one if exact else name.startswith(one) for one in listed if one)]
    return text if (len(named) < len(names) if exclude else named) else None


def _switch(text: str) -> Optional[str]:
    return text if text in ("0", "1") else None


def _bytes(text: str) -> Optional[str]:
    return text if text.isdigit() and 4096 <= int(text) <= 2**30 else None


def _net(text: str) -> Optional[str]:
    return _NETS.get(text.lower())


def _algorithms(text: str) -> Optional[str]:
    lists = [part.rpartition(":")[2].lstrip("^") for part in text.lower().split(";")]
    return text.lower() if all(name in _ALGORITHMS for each in lists for name in each.split(",")) else None


def _all_reduce(text: str) -> Optional[str]:
    chosen = _algorithms(text)
    return None if chosen is None else f"allreduce:{chosen}"


#: Our name, the others' without their beginning, and what makes our value of theirs (None: it cannot be followed).
_ALIASES: list[tuple[str, str, Callable[[str], Optional[str]]]] = [
    ("PCCL_SOCKET_IFNAME", "SOCKET_IFNAME", _interfaces),
    ("PCCL_SHM_DISABLE", "SHM_DISABLE", _switch),
    ("PCCL_SOCKET_SNDBUF", "BUFFSIZE", _bytes),
    ("PCCL_SOCKET_RCVBUF", "BUFFSIZE", _bytes),
    ("PCCL_NET", "NET", _net),
    ("PCCL_ALGO", "ALGO", _algorithms),
    ("PCCL_ALGO", "ALLREDUCE_ALGO", _all_reduce),
]

_said: set[str] = set()


def adopt(environment: MutableMapping[str, str] = os.environ) -> None:
    """Sets those names of ours that are not set and that others tell; before the first communicator of a process connects."""
    for ours, rest, read in _ALIASES:
        name = next((name for name in (f"NCCL_{rest}", f"RCCL_{rest}") if environment.get(name)), None)
        if name is None or ours in environment:
            continue
        value = read(environment[name])
        if value is None:
            _say(logging.WARNING, name, f"{name} is {environment[name]!r}, which cannot be followed here; {ours} is as if it was not set")
        else:
            environment[ours] = value
            _say(logging.INFO, ours, f"{ours} is {value!r}, as {name} says")
    for rest, why in _WITHOUT_EFFECT.items():
        for name in (f"NCCL_{rest}", f"RCCL_{rest}"):
            if environment.get(name):
                _say(logging.WARNING, name, f"{name} has no effect: {why}")


def _say(level: int, name: str, text: str) -> None:
    if name not in _said:
        _said.add(name)
        _log.log(level, "pccl: %s", text)
