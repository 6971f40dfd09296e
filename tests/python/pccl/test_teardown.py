"""Communicators and masters go in any order, at any time: by name, by their destructors, with the interpreter, beside calls in flight."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import copy
import gc
import os
import pickle
import signal
import threading
import weakref
from typing import Callable

import numpy as np
import pytest

import pccl
from pccl._native import ffi, lib
from support.master import Master
from support.programs import Program
from support.worlds import together


def two_peers(address: str) -> tuple[pccl.Communicator, pccl.Communicator]:
    """Both in the run."""
    first, second = pccl.Communicator(address), pccl.Communicator(address)
    first.connect()
    joining = threading.Thread(target=second.connect)
    joining.start()
    while first.get_attribute(pccl.Attribute.GLOBAL_WORLD_SIZE) < 2:
        first.update_topology()
    joining.join()
    return first, second


def test_communicator_before_master() -> None:
    master = pccl.MasterNode("127.0.0.1:0")
    master.run()
    communicator = pccl.Communicator(master.address)
    communicator.connect(n_attempts=1)
    del communicator
    master.interrupt()
    del master
    gc.collect()


def test_master_before_communicator() -> None:
    master = pccl.MasterNode("127.0.0.1:0")
    master.run()
    communicator = pccl.Communicator(master.address)
    communicator.connect(n_attempts=1)
    master.interrupt()
    del master
    del communicator
    gc.collect()


def test_never_connected_and_never_run() -> None:
    communicator = pccl.Communicator("127.0.0.1:48148")
    master = pccl.MasterNode("127.0.0.1:0")
    del master, communicator
    gc.collect()


def test_the_destructor_comes_with_the_last_reference_also_beside_an_operation_in_flight(master: Master) -> None:
    """An operation refers to its world: without the communicator's own destructor nobody would leave before the garbage collector."""
    first, second = two_peers(master.address)
    handle = first.all_reduce_async(np.ones(4, np.float32), np.ones(4, np.float32), op=pccl.ReduceOp.SUM)
    gone = weakref.ref(first)
    gc.disable()
    try:
        del first
        assert gone() is None
    finally:
        gc.enable()
    ok, status, info = handle.wait()
    assert (ok, status) == (False, pccl.Result.MASTER_CONNECTION_FAILED.value)
    assert (info.local_world_size, info.tx_bytes, info.rx_bytes) == (0, 0, 0)
    assert handle.error is not None and handle.error.cause is pccl.Cause.LEFT
    assert handle.wait()[:2] == (ok, status)  # cached
    second.update_topology()
    assert second.get_attribute(pccl.Attribute.GLOBAL_WORLD_SIZE) == 1
    second.destroy()


def test_what_had_succeeded_when_the_communicator_was_destroyed_has_succeeded(master: Master) -> None:
    first, second = two_peers(master.address)
    send, recv = np.ones(4, np.float32), np.zeros(4, np.float32)
    handles = [peer.all_reduce_async(send, recv, op=pccl.ReduceOp.SUM) for peer in (first, second)]
    assert handles[1].wait()[0]
    ended = ffi.new("bool *")
    while not ended[0]:  # asks, and does not take note
        assert lib.pcclTestAsyncReduce(handles[0]._operation._handle, ended) == lib.pcclSuccess
    first.destroy()
    ok, status, info = handles[0].wait()
    assert (ok, status, info.local_world_size) == (True, 0, 2)
    second.destroy()


@pytest.mark.parametrize("what", ["connect", "update", "sync", "reduce", "query", "many"])
def test_destroy_ends_a_call_of_another_thread(master: Master, what: str) -> None:
    first, second = two_peers(master.address)
    waiting = pccl.Communicator(master.address) if what == "connect" else first
    memory = np.ones(4, np.float32)
    state = pccl.SharedState([pccl.TensorInfo.from_numpy(memory, "w")])
    operand = pccl.ReduceOperandDescriptor(pccl.DataType.FLOAT)
    quantization = pccl.QuantizationOptions(pccl.DataType.FLOAT, pccl.QuantizationAlgorithm.NONE)
    several = [
        pccl.ReduceOpDescriptor.from_numpy(part, part, pccl.ReduceDescriptor(2, pccl.ReduceOp.SUM, tag, operand, quantization))
        for tag, part in enumerate((memory[:2], memory[2:]))
    ]
    calls: dict[str, Callable[[], object]] = {
        "connect": lambda: waiting.world.connect(),
        "update": waiting.update_topology,
        "sync": lambda: waiting.sync_shared_state(state),
        "reduce": lambda: waiting.all_reduce(memory, memory, op=pccl.ReduceOp.SUM),
        "query": waiting.are_peers_pending,
        "many": lambda: waiting.all_reduce_multiple_with_retry(several),
    }
    raised: list[BaseException] = []

    def call() -> None:
        try:
            calls[what]()
        except BaseException as error:  # noqa: B902 - judged below
            raised.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    while not waiting.world.waits():  # until the call is one
        pass
    waiting.destroy()
    thread.join(30)
    assert not thread.is_alive()
    assert isinstance(raised[0], pccl.MasterConnectionFailed)
    assert memory.tolist() == [1.0] * 4
    first.destroy()
    second.destroy()


def test_after_destroy_every_call_says_so(master: Master) -> None:
    communicator = pccl.Communicator(master.address)
    communicator.connect()
    communicator.destroy()
    communicator.destroy()
    with pytest.raises(pccl.InvalidUsage, match="destroyed"):
        communicator.update_topology()
    with pytest.raises(Exception, match="destroyed") as raised:
        communicator.connect()
    assert type(raised.value) is Exception and isinstance(raised.value.__cause__, pccl.InvalidUsage)


def test_contexts_destroy() -> None:
    with pccl.MasterNode("127.0.0.1:0") as master:
        master.run()
        with pccl.Communicator(master.address) as communicator:
            communicator.connect()
            assert [peer.is_self for peer in communicator.peers] == [True]
        with pytest.raises(pccl.InvalidUsage):
            communicator.get_attribute(pccl.Attribute.GLOBAL_WORLD_SIZE)
    with pytest.raises(pccl.InvalidUsage, match="destroyed"):
        master.run()


def test_nothing_that_ends_with_its_owner_is_copied(master: Master) -> None:
    """The copy's destructor would end the original."""
    with pccl.Communicator(master.address) as communicator, pccl.MasterNode("127.0.0.1:0") as node:
        communicator.connect()
        for original in (communicator, communicator.world, node):
            for copied in (copy.copy, copy.deepcopy, pickle.dumps):
                with pytest.raises(TypeError, match="neither copied nor pickled"):
                    copied(original)
        assert communicator.get_attribute(pccl.Attribute.LOCAL_WORLD_SIZE) == 1


def test_a_wrong_address_leaves_nothing_to_destroy() -> None:
    for wrong in ("", "host:name:7", "127.0.0.1:0", "127.0.0.1:99999"):
        with pytest.raises(pccl.InvalidArgument) as raised:
            pccl.Communicator(wrong)
        assert isinstance(raised.value, ValueError)
    with pytest.raises(pccl.InvalidArgument):
        pccl.MasterNode("127.0.0.1:99999")
    gc.collect()


AT_EXIT = {
    "globals": "pass",
    "a cycle": "cycle = [communicator]; cycle.append(cycle); del communicator",
    "an attribute of a module": "import json; json.kept = communicator",
    "a builtin": "import builtins; builtins.kept = communicator",
    "a local of a thread": """
import threading
threading.Thread(target=lambda kept: threading.Event().wait(), args=(communicator,), daemon=True).start()""",
    "a call in flight of a thread": """
import threading
began = threading.Event()
def call():
    began.set()
    communicator.update_topology()
threading.Thread(target=call, daemon=True).start()
began.wait()""",
    "an operation in flight": """
import array
kept = communicator.all_reduce_async(array.array("f", [1]), array.array("f", [0]), op=pccl.ReduceOp.SUM)""",
    "a callback in flight": """
import array
kept = communicator.all_reduce_async(array.array("f", [1]), array.array("f", [0]), op=pccl.ReduceOp.SUM)
kept._operation.when_done(print)""",
    "an exception": "kept = communicator; raise SystemExit(0)",
}

PEER_AT_EXIT = """
import sys
import pccl
communicator = pccl.Communicator(sys.argv[1])
communicator.connect()
print("connected")
"""


@pytest.mark.parametrize("what", AT_EXIT)
def test_the_interpreter_ends_with_a_communicator_in(master: Master, what: str) -> None:
    """It leaves the run, and nothing crashes or hangs, wherever the last reference is."""
    with pccl.Communicator(master.address) as other:
        other.connect()
        with Program(PEER_AT_EXIT + AT_EXIT[what], master.address) as peer:
            while other.get_attribute(pccl.Attribute.GLOBAL_WORLD_SIZE) < 2:
                other.update_topology()
            peer.succeeds()
            assert not [line for line in peer.said if "Error" in line or "Exception" in line or "Fatal" in line], peer.said
            while other.get_attribute(pccl.Attribute.GLOBAL_WORLD_SIZE) > 1:
                other.update_topology()


MASTER_AT_EXIT = """
import pccl
master = pccl.MasterNode("127.0.0.1:0")
master.run()
print("listening", master.address)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_program_that_only_runs_a_master_serves_until_a_signal(number: int) -> None:
    """As with the original, whose examples end with run()."""
    with Program(MASTER_AT_EXIT) as program:
        address = program.until("listening").split()[1]
        with pccl.Communicator(address) as communicator:
            communicator.connect()
            communicator.update_topology()
        program.signal(number)
        assert program.end() in (0, 1, -number)  # 1: it came before the end of the program


def test_a_program_that_fails_does_not_go_on_serving() -> None:
    with Program(MASTER_AT_EXIT + "raise RuntimeError('the program failed')") as program:
        assert program.end() == 1
        assert program.said[-1] == "RuntimeError: the program failed"


def test_a_forked_child_neither_leaves_nor_ends_what_its_parent_has() -> None:
    with pccl.MasterNode("127.0.0.1:0") as master:
        master.run()
        with pccl.Communicator(master.address) as communicator:
            communicator.connect()
            child = os.fork()
            if child == 0:
                status = 1
                try:
                    communicator.update_topology()
                except pccl.InvalidUsage as error:
                    status = 0 if "forked" in str(error) else 2
                communicator.destroy()
                master.destroy()
                os._exit(status)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
            communicator.update_topology()
            assert communicator.get_attribute(pccl.Attribute.GLOBAL_WORLD_SIZE) == 1


def test_many_come_and_go_at_once(master: Master) -> None:
    """Destructors of several threads, while others connect."""

    def come_and_go(_: int) -> None:
        for _ in range(5):
            communicator = pccl.Communicator(master.address)
            operation = communicator.world.connect_async()
            del communicator
            try:
                operation.wait()  # it may have been in before it left
            except pccl.MasterConnectionFailed as error:
                assert error.cause in (pccl.Cause.LEFT, pccl.Cause.CANCELLED)

    together(4, come_and_go)
