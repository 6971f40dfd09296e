"""A master inside of a program and as the programs that the package installs; names, IPv4 and IPv6."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path

import pytest

import pccl
from pccl import master as module
from support.programs import Program


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
        return True
    except OSError:
        return False


ADDRESSES = [
    "127.0.0.1:0",
    "localhost:0",
    pytest.param("[::1]:0", marks=pytest.mark.skipif(not has_ipv6(), reason="no IPv6 here")),
    pytest.param("[::]:0", marks=pytest.mark.skipif(not has_ipv6(), reason="no IPv6 here")),
]


@pytest.mark.parametrize("listen", ADDRESSES)
def test_peers_connect_by_name_and_by_both_protocols(listen: str) -> None:
    """The original splits at the first colon, and fills the wrong field for IPv6."""
    with pccl.MasterNode(listen) as node:
        node.run()
        host, _, port = node.address.rpartition(":")
        hosts = {"[::]": ["[::1]", "127.0.0.1", "localhost"], "[::1]": ["[::1]"]}.get(host, ["127.0.0.1", "localhost"])
        for dialled in hosts:
            with pccl.Communicator(f"{dialled}:{port}") as communicator:
                communicator.connect()
                assert communicator.get_attribute(pccl.Attribute.GLOBAL_WORLD_SIZE) == 1


def test_a_port_that_is_taken_is_said() -> None:
    with pccl.MasterNode("127.0.0.1:0") as first:
        first.run()
        second = pccl.MasterNode(first.address)
        with pytest.raises(pccl.InvalidUsage, match=first.address.rpartition(":")[2]):
            second.run()
        second.destroy()


def test_calls_out_of_order_are_refused() -> None:
    node = pccl.MasterNode("127.0.0.1:0")
    with pytest.raises(pccl.InvalidUsage):
        node.interrupt()
    with pytest.raises(pccl.InvalidUsage):
        node.wait()
    node.run()
    with pytest.raises(pccl.InvalidUsage):
        node.run()
    assert node.wait(0) is False
    node.interrupt()
    node.interrupt()
    assert node.wait(30) is True
    assert node.wait() is True
    node.destroy()
    node.destroy()
    with pytest.raises(pccl.InvalidUsage, match="destroyed"):
        node.interrupt()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_pccl_master_serves_until_a_signal(number: int) -> None:
    with Program("import sys; from pccl.master import main; sys.exit(main())", "--listen-address", "localhost:0") as program:
        address = program.until("pccl_master: listening at").rpartition(" ")[2]
        with pccl.Communicator(address) as communicator:
            communicator.connect()
            program.signal(number)
            program.succeeds()


def test_pccl_master_says_what_is_wrong_with_its_address() -> None:
    with Program("import sys; from pccl.master import main; sys.exit(main())", "--listen-address", "127.0.0.1:99999") as program:
        assert program.end() == 2
        assert program.said[0].startswith("pccl_master: ") and "99999" in program.said[0]


def test_ccoip_master_is_the_packages_program() -> None:
    """The process itself becomes the program, so that signals and descriptors are its own."""
    with Program("from pccl.master import ccoip_master; ccoip_master()", "--listen", "127.0.0.1:0") as program:
        port = program.until("").rpartition(":")[2]
        assert Path(os.readlink(f"/proc/{program.process.pid}/exe")).name == "ccoip_master"
        with pccl.Communicator(f"127.0.0.1:{port}") as communicator:
            communicator.connect()
        program.signal(signal.SIGTERM)
        program.succeeds()


def test_an_interrupted_wait_of_the_destructor_ends_the_master() -> None:
    source = """
import sys, threading
import pccl
master = pccl.MasterNode("127.0.0.1:0")
master.run()
def tell():
    frame = None
    while frame is None or frame.f_code.co_name != "_end":
        frame = sys._current_frames()[threading.main_thread().ident]
        while frame.f_back is not None and frame.f_code.co_name != "_end":
            frame = frame.f_back
    print("waits")
threading.Thread(target=tell).start()
del master
print("gone")
"""
    with Program(source) as program:
        program.until("waits")
        program.signal(signal.SIGINT)
        program.until("gone")
        program.succeeds()


WAITING = {
    "the end of the program": "master.run()",
    "the end of a function": "def serve(node):\n    node.run()\nserve(master)\ndel master",
}


@pytest.mark.parametrize("source", WAITING.values(), ids=WAITING)
def test_a_program_that_waits_for_its_master_says_how_to_end_it(source: str) -> None:
    """It would wait without a word, and look as if it hung."""
    with Program(f"import pccl\nmaster = pccl.MasterNode('127.0.0.1:0')\n{source}") as program:
        line = program.until("pccl: the MasterNode at 127.0.0.1:")
        assert "call destroy(), use a with block, or press Ctrl-C" in line
        program.signal(signal.SIGINT)
        program.succeeds()
        assert program.said == [line]


def test_a_program_that_destroys_its_master_says_nothing() -> None:
    """Nor does one whose master is interrupted by the time that it ends."""
    source = """
import pccl
from pccl import master
master._SILENT_SECONDS = 0.0
with pccl.MasterNode("127.0.0.1:0") as node:
    node.run()
node = pccl.MasterNode("127.0.0.1:0")
node.run()
node.destroy()
node = pccl.MasterNode("127.0.0.1:0")
node.run()
node.interrupt()
node.wait()
"""
    with Program(source) as program:
        program.succeeds()
        assert program.said == []


def test_help_names_the_default_of_the_original(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        module.main(["--help"])
    assert "0.0.0.0:48148" in capsys.readouterr().out
    assert sys.modules["pccl.master"] is module
