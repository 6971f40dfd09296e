"""Ctrl-C ends every wait, attempts to connect come to an end, and calls that are not allowed yet say so."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import signal
import threading
import time

import numpy as np
import pytest

import pccl
from support.master import Master
from support.programs import Program

WAITS = {
    "connect": "communicator.connect()",
    "update": "communicator.update_topology()",
    "optimize": "communicator.optimize_topology()",
    "query": "communicator.are_peers_pending()",
    "sync": "communicator.sync_shared_state(pccl.SharedState([pccl.TensorInfo.from_buffer(memory, 'w')]))",
    "reduce": "communicator.all_reduce(memory, memory, op=pccl.ReduceOp.SUM)",
    "handle": "communicator.all_reduce_async(memory, memory, op=pccl.ReduceOp.SUM).wait()",
    "many": """communicator.all_reduce_multiple_with_retry([pccl.ReduceOpDescriptor.from_buffers(memory, memory, pccl.ReduceDescriptor(
        1, pccl.ReduceOp.SUM, 0, pccl.ReduceOperandDescriptor(pccl.DataType.FLOAT),
        pccl.QuantizationOptions(pccl.DataType.FLOAT, pccl.QuantizationAlgorithm.NONE)))])""",
    "run": "pccl.run(communicator, lambda step: step.all_reduce(memory))",
}

WAITING = """
import array, sys, threading
import pccl
memory = array.array("f", [1])
communicator = pccl.Communicator(sys.argv[1])
if sys.argv[2] != "connect":
    communicator.connect()
print("in")
sys.stdin.readline()
def tell():
    while not communicator.world.waits():
        pass
    print("waits")
threading.Thread(target=tell, daemon=True).start()
try:
    {wait}
except KeyboardInterrupt:
    print("interrupted")
communicator.destroy()
print("destroyed", memory.tolist())
"""


@pytest.mark.parametrize("what", WAITS)
def test_ctrl_c_ends_a_wait(master: Master, what: str) -> None:
    """The main thread waits in slices, or has another one wait; the peer that it waits for never comes."""
    with pccl.Communicator(master.address) as other:
        other.connect()
        with Program(WAITING.format(wait=WAITS[what]), master.address, what) as program:
            while what != "connect" and other.get_attribute(pccl.Attribute.GLOBAL_WORLD_SIZE) < 2:
                other.update_topology()
            program.until("in")
            program.tell("now")
            program.until("waits")
            program.signal(signal.SIGINT)
            assert program.until("interrupted")
            assert program.until("destroyed") == "destroyed [1.0]"
            program.succeeds()


def test_after_an_interrupted_connect_it_may_be_called_again(master: Master) -> None:
    source = """
import sys, threading
import pccl
communicator = pccl.Communicator(sys.argv[1])
def tell():
    while not communicator.world.waits():
        pass
    print("waits")
threading.Thread(target=tell, daemon=True).start()
try:
    communicator.connect()
except KeyboardInterrupt:
    print("interrupted")
sys.stdin.readline()
communicator.connect()
print("size", communicator.get_attribute(pccl.Attribute.GLOBAL_WORLD_SIZE))
"""
    with pccl.Communicator(master.address) as other:
        other.connect()
        with Program(source, master.address) as program:
            program.until("waits")
            program.signal(signal.SIGINT)
            program.until("interrupted")
            other.destroy()
            program.tell("again")
            assert program.until("size") == "size 1"
            program.succeeds()


@pytest.mark.parametrize("n_attempts", [1, 3])
def test_attempts_to_connect_end_with_a_plain_exception(n_attempts: int) -> None:
    communicator = pccl.Communicator("127.0.0.1:1")
    with pytest.raises(Exception, match=f"attempt {n_attempts} of {n_attempts}") as raised:
        communicator.connect(n_attempts=n_attempts)
    assert type(raised.value) is Exception
    cause = raised.value.__cause__
    assert isinstance(cause, pccl.MasterConnectionFailed)
    assert (cause.cause, cause.error_class, cause.phase) == (
        pccl.Cause.MASTER_UNREACHABLE, pccl.ErrorClass.REJOIN, "connect",
    )


def test_attempts_to_connect_meet_a_master_that_comes_later() -> None:
    with Master.at_a_port_that_stays() as earlier:
        port = earlier.port
    communicator = pccl.Communicator(f"127.0.0.1:{port}")
    failed = threading.Event()
    connecting = threading.Thread(target=lambda: (failed.set(), communicator.connect(n_attempts=30)))
    connecting.start()
    failed.wait()
    with Master(port):
        connecting.join(60)
        assert communicator.get_attribute(pccl.Attribute.GLOBAL_WORLD_SIZE) == 1
        communicator.destroy()


def test_a_mistake_is_not_attempted_again(master: Master) -> None:
    """Connected already: no attempt could succeed."""
    with pccl.Communicator(master.address) as communicator:
        communicator.connect()
        began = time.monotonic()
        with pytest.raises(Exception, match="attempt 1 of 1000") as raised:
            communicator.connect(n_attempts=1000)
        assert isinstance(raised.value.__cause__, pccl.InvalidUsage)
        assert time.monotonic() - began < 60
        communicator.update_topology()


def test_calls_before_connect_are_refused() -> None:
    memory = np.ones(4, np.float32)
    state = pccl.SharedState([pccl.TensorInfo.from_numpy(memory, "w")])
    with pccl.Communicator("127.0.0.1:48148") as communicator:
        for call in (
            communicator.update_topology,
            communicator.are_peers_pending,
            communicator.optimize_topology,
            lambda: communicator.get_attribute(pccl.Attribute.GLOBAL_WORLD_SIZE),
            lambda: communicator.sync_shared_state(state),
            lambda: communicator.all_reduce(memory, memory, op=pccl.ReduceOp.SUM),
            lambda: communicator.all_reduce_async(memory, memory, op=pccl.ReduceOp.SUM),
            lambda: communicator.peers,
        ):
            with pytest.raises(pccl.PCCLError) as raised:
                call()
            assert raised.value.result is pccl.Result.INVALID_USAGE
            assert raised.value.error_class is pccl.ErrorClass.FIX and "connect" in str(raised.value)
    assert memory.tolist() == [1.0] * 4
