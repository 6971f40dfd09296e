"""The master: inside of a program, as `MasterNode`, or as one of the programs ``pccl_master`` and ``ccoip_master``."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import atexit
import os
import sys
import threading
import weakref
from typing import Any, Optional, Sequence

from pccl._native import ffi, lib
from pccl.engine.address import format_address, parse_address
from pccl.engine.process import Bound, own_process, wait_for
from pccl.errors import PCCLError, check, make_error
from pccl.types import Result


_SILENT_SECONDS = 1.0  # that a program waits for its master without a word


class MasterNode(Bound):
    """A master that listens at `listen_address`: "host:port", "1.2.3.4:5", "[::]:5"; port 0: any that is free, see `address`.

    As in the original, the program waits for a running master when it drops the last reference to the master, and when it ends.  A
    program that only runs a master therefore serves until Ctrl-C.  After a second of waiting, a line on standard error
    names the remedy.  `destroy`, or leaving the ``with`` block, interrupts the master first, and so does a program's end by an exception.
    """

    def __init__(self, listen_address: str) -> None:
        self._handle: Any = None
        self._pid = os.getpid()
        self._ended: Optional[threading.Event] = None  # None: it was never run
        made = ffi.new("pcclMasterInstance_t **")
        address = parse_address(listen_address, lib.CCOIP_PROTOCOL_PORT_MASTER, "MasterNode", "listen_address")
        check(lib.pcclCreateMaster(address, made), "MasterNode")
        self._handle = made[0]

    def run(self) -> None:
        """Binds, and serves in a thread of the library's; returns at once.  InvalidUsage: it runs, or the address cannot be bound."""
        handle = self._own("run")
        check(lib.pcclRunMaster(handle), "run")
        ended = self._ended = threading.Event()

        def wait_in_c() -> None:  # here, so that Ctrl-C reaches whoever waits for the event
            lib.pcclMasterAwaitTermination(handle)
            ended.set()

        threading.Thread(target=wait_in_c, name="pccl-master", daemon=True).start()
        _running.add(self)

    def interrupt(self) -> None:
        """Asks it to stop; any number of times.  InvalidUsage: it was never run."""
        check(lib.pcclInterruptMaster(self._own("interrupt")), "interrupt")

    def wait(self, timeout: Optional[float] = None) -> bool:
        """Waits until it has stopped, or `timeout` seconds passed; whether it has.  InvalidUsage: it was never run."""
        self._own("wait")
        if self._ended is None:
            raise make_error(Result.INVALID_USAGE, "wait", "the master was never run; call run first")
        if timeout is not None:
            return self._ended.wait(timeout)
        wait_for(self._ended)
        return True

    @property
    def address(self) -> str:
        """Where it listens, with its real port.  InvalidUsage: it does not run."""
        bound = ffi.new("ccoip_socket_address_t *")
        check(lib.pcclGetMasterAddress(self._own("address"), bound), "address")
        return format_address(bound[0])

    def destroy(self) -> None:
        """Interrupts it, waits until it has stopped, frees it.  The second time nothing."""
        if self._handle is not None and self._ended is not None and os.getpid() == self._pid:
            self.interrupt()
            wait_for(self._ended)
        self._end()

    def _own(self, name: str) -> Any:
        own_process(self._pid, name)
        if self._handle is None:
            raise make_error(Result.INVALID_USAGE, name, "the master was destroyed: make a new one")
        return self._handle

    def _end(self) -> None:
        """Waits until somebody has stopped it, or Ctrl-C does, and frees it."""
        if self._handle is None:
            return
        if self._ended is not None and os.getpid() == self._pid:
            try:
                self._serve_on(self._ended)
            except KeyboardInterrupt:
                lib.pcclInterruptMaster(self._handle)
                wait_for(self._ended)
        handle, self._handle = self._handle, None
        _running.discard(self)
        lib.pcclDestroyMaster(handle)

    def _serve_on(self, ended: threading.Event) -> None:
        """Waits until it has stopped, and says after a second that the program waits."""
        try:
            wait_for(ended, _SILENT_SECONDS)
            if not ended.is_set() and sys.stderr is not None:
                print(
                    f"pccl: the MasterNode at {self.address} still serves, and this program waits for it; call destroy(), use a with block, "
                    "or press Ctrl-C",
                    file=sys.stderr, flush=True,
                )
        except (OSError, PCCLError, ValueError):
            pass  # nobody reads standard error, or it has just stopped
        wait_for(ended)

    def __enter__(self) -> "MasterNode":
        return self

    def __exit__(self, *_: object) -> None:
        self.destroy()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            self._end()


_running: "weakref.WeakSet[MasterNode]" = weakref.WeakSet()


def _end_all() -> None:
    """While signals and threads still are what they were: when the interpreter takes objects apart they are not."""
    failed = getattr(sys, "last_type", None) is not None  # Ctrl-C, too, if it came before this
    for node in list(_running):
        node.destroy() if failed else node._end()


atexit.register(_end_all)


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """``pccl_master``: serves until SIGINT or SIGTERM.  Returns the exit status."""
    import argparse
    import signal

    parser = argparse.ArgumentParser(prog="pccl_master", description="Keeps the membership of runs until SIGINT or SIGTERM.")
    parser.add_argument(
        "--listen-address", default=f"0.0.0.0:{lib.CCOIP_PROTOCOL_PORT_MASTER}", help="host:port, 1.2.3.4:5 or [::]:5; default %(default)s"
    )
    options = parser.parse_args(arguments)
    try:
        node = MasterNode(options.listen_address)
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: node.interrupt() if node._ended is not None else sys.exit(0))
        node.run()
    except PCCLError as error:
        print(f"pccl_master: {error.text or error}", file=sys.stderr)
        return 2
    print(f"pccl_master: listening at {node.address}", flush=True)
    node.wait()
    node.destroy()
    return 0


def ccoip_master() -> None:
    """``ccoip_master``: the program that the package carries, in place of this process."""
    from pccl.engine.bootstrap import master_program

    program = master_program()
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
