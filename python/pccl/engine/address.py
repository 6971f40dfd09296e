"""Addresses as texts: "host:port", "1.2.3.4:5", "[::1]:5"."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

from typing import Any

from pccl._native import ffi, lib
from pccl.arguments import text
from pccl.errors import last_error


def parse_address(address: str, default_port: int, function: str = "World", what: str = "master") -> Any:
    """A ccoip_socket_address_t; names are resolved.  Errors name `what`, an argument of `function`.  InvalidArgument: the text
    says what is wrong.  ValueError: the port is none.  TypeError: the address is no text."""
    if not 0 <= default_port < 65536:
        raise ValueError(f"pccl: port is {default_port}; pass one from 0 to 65535")
    made = ffi.new("ccoip_socket_address_t *")
    result = lib.pcclParseAddress(text(function, what, address), default_port, made)
    if result != lib.pcclSuccess:
        error = last_error(result, function)
        error.text = error.text.removeprefix(f"{error.phase}: ")
        raise error
    return made[0]


def format_address(address: Any) -> str:
    """The text of a ccoip_socket_address_t."""
    import ipaddress  # not loaded with the package: most programs never ask

    if address.inet.protocol == lib.inetIPv6:
        return f"[{ipaddress.IPv6Address(bytes(address.inet.ipv6.data))}]:{address.port}"
    return f"{ipaddress.IPv4Address(bytes(address.inet.ipv4.data))}:{address.port}"
