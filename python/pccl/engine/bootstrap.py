"""A master for those who have none: the program ``ccoip_master``, started as a process of its own that ends when nobody needs it."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import os
import select
import shutil
import socket
import subprocess
import time
from typing import Optional

from pccl._native import lib
from pccl.engine.address import format_address, parse_address
from pccl.errors import PCCLError, make_error
from pccl.types import Result

_START_SECONDS = 20.0
_own_ports: dict[tuple[int, str], int] = {}  # of masters that this process has started, by host


def master_program() -> str:
    """The path of ``ccoip_master``: the package's own, else the first on PATH.  RuntimeError: there is none."""
    own = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin", "ccoip_master")
    path = own if os.access(own, os.X_OK) else shutil.which("ccoip_master")
    if path is None:
        raise RuntimeError(f"pccl: there is no program ccoip_master, neither {own} nor on PATH; install the package anew")
    return path


def named_master() -> str:
    """The address in PCCL_MASTER, unchanged; "" if the variable is not set.  InvalidArgument: it is not an address."""
    named = os.environ.get("PCCL_MASTER", "").strip()
    if named:
        try:
            parse_address(named, lib.CCOIP_PROTOCOL_PORT_MASTER)
        except PCCLError as error:
            raise make_error(Result.INVALID_ARGUMENT, "PCCL_MASTER", f"{error.text}; set it to a running ccoip_master's host:port") from None
    return named


def spawn_master(host: str, port: int = 0, idle_exit: float = 60.0) -> str:
    """Starts a master that listens at `host` and `port` (0: any that is free), and returns its "host:port".

    It is a process of its own session, has no descriptor of this one, outlives it, and ends when no peer has been connected for
    `idle_exit` seconds.  Where a master listens there already, its address is returned.  RuntimeError: it cannot be started, for
    the reason that it gives.
    """
    listen = format_address(parse_address(f"[{host}]" if ":" in host else host, port or lib.CCOIP_PROTOCOL_PORT_MASTER))
    if port == 0:
        listen = listen.rpartition(":")[0] + ":0"
    command = [master_program(), "--listen", listen, "--idle-exit", str(max(1, round(idle_exit))), "--log-level", "none"]
    child = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True, close_fds=True, cwd="/"
    )
    said = _first_line(child)
    if said is not None:
        for pipe in (child.stdout, child.stderr):
            if pipe is not None:
                pipe.close()
        child.returncode = 0  # it is nobody's child to wait for: it outlives this process
        bound = said.rpartition(" ")[2]
        return f"{listen.rpartition(':')[0]}:{bound.rpartition(':')[2]}"
    why = child.communicate()[1].decode(errors="replace").strip()
    if port != 0 and answers(listen):
        return listen
    raise RuntimeError(f"pccl: no master could be started at {listen}: {why or 'it said nothing'}; name a running one in PCCL_MASTER")


def own_master(host: str, port: int = 0, elsewhere: bool = True) -> str:
    """The "host:port" of a master that this process has started at `host`; where it has not, or that has ended, it starts it now.

    It is always at the port that it had first: `port`, if that is not 0.  `elsewhere`: if somebody else has that, at any other; else that
    is a RuntimeError, as in `spawn_master`.
    """
    port = _own_ports.get((os.getpid(), host), 0) or port
    try:
        address = spawn_master(host, port)
    except RuntimeError:
        if port == 0 or not elsewhere:
            raise
        address = spawn_master(host)
    _own_ports[os.getpid(), host] = int(address.rpartition(":")[2])
    return address


def answers(address: str) -> bool:
    """Whether a master listens there, that speaks this version of the protocol."""
    command = [master_program(), "--status", address]
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_START_SECONDS).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def reachable_host(towards: Optional[str] = None) -> str:
    """An address of this host that others can dial: the one from which it would reach `towards` (a host name or address)."""
    target = towards or socket.gethostname()
    try:
        family, _, _, _, where = socket.getaddrinfo(target, 9, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect(where)  # sends nothing
            return str(probe.getsockname()[0])
    except OSError:
        return "127.0.0.1"


def _first_line(child: "subprocess.Popen[bytes]") -> Optional[str]:
    """What it says when it listens; None: it ended, or said nothing in time."""
    assert child.stdout is not None
    until = time.monotonic() + _START_SECONDS
    said = b""
    while not said.endswith(b"\n"):
        if not select.select([child.stdout], [], [], max(0.0, until - time.monotonic()))[0]:
            child.kill()
            return None
        piece = os.read(child.stdout.fileno(), 4096)
        if not piece:
            return None
        said += piece
    return said.decode().strip()
