"""Errors of the library in Python: they name what a program calls and passes here, and say a cause once."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import pathlib
import re
import socket
from typing import Any, Callable

import numpy as np
import pytest

import pccl
from pccl import engine, wording
from pccl._native import ffi, lib
from pccl.engine import World
from pccl.engine.operation import Operation
from pccl.errors import error_of
from pccl.types import Attribute, ReduceOp
from support.master import Master

ROOT = pathlib.Path(__file__).resolve().parents[3]
WORDS_OF_C = re.compile(r"pccl[A-Z]\w*|PCCL_(?:OPTION|ATTRIBUTE|NO|ANY)_\w+|\w->|\b(?:send|recv)buf|\w_out\b")


def test_an_attempt_to_connect_says_its_cause_once() -> None:
    with socket.socket() as bound:  # nobody listens there
        bound.bind(("127.0.0.1", 0))
        address = "127.0.0.1:%d" % bound.getsockname()[1]
        with pccl.Communicator(address) as communicator, pytest.raises(Exception) as caught:
            communicator.connect(n_attempts=1)
    said = str(caught.value)
    begins = f"pccl: not connected, at attempt 1 of 1: the master cannot be reached: connect to {address}: Connection refused"
    assert said.startswith(begins), said
    assert said.endswith("(World.set_connect_timeout sets how long connect tries)"), said
    assert not WORDS_OF_C.search(said)
    assert str(caught.value.__cause__) == f"connect: MASTER_CONNECTION_FAILED: {said.partition('of 1: ')[2]}"


def test_an_error_has_the_fields_of_the_structure() -> None:
    """An age is in seconds here, and in nanoseconds there."""
    info = ffi.new("pcclErrorInfo_t *")
    info.error_class, info.cause = lib.pcclClassRetry, lib.pcclCausePeerSilent
    info.peer, info.rank, info.tag, info.age_ns = 7, 2, 9, 2_500_000_000
    info.phase, info.address, info.text = b"reduce", b"10.0.0.3:48150", b"reduce: rank 2 is silent"
    error = error_of(info, lib.pcclRankConnectionLost, "all_reduce")
    assert isinstance(error, pccl.RankConnectionLost) and (error.function, error.result) == ("all_reduce", pccl.Result.RANK_CONNECTION_LOST)
    assert (error.error_class, error.cause) == (pccl.ErrorClass.RETRY, pccl.Cause.PEER_SILENT)
    assert (error.peer, error.rank, error.tag, error.age) == (7, 2, 9, 2.5)
    assert (error.phase, error.address, error.text) == ("reduce", "10.0.0.3:48150", "reduce: rank 2 is silent")
    info.rank = lib.PCCL_NO_RANK
    assert error_of(info, lib.pcclRankConnectionLost, "all_reduce").rank is None


def test_errors_name_pythons_calls_and_parameters(master: Master) -> None:
    a, ints = np.zeros(4), np.zeros(4, np.int32)
    quantized = pccl.QuantizationOptions()
    twice = pccl.SharedState([pccl.TensorInfo.from_numpy(a, "x"), pccl.TensorInfo.from_numpy(a, "x")])
    with World(master.address) as apart, World(master.address, name="w", size=1, rank=0) as world, pccl.Communicator(master.address) as c:
        world.connect()
        cases: list[tuple[Callable[[], Any], str]] = [
            (lambda: apart.barrier(), "barrier: INVALID_USAGE: not connected: call connect() first"),
            (lambda: c.update_topology(), "update_topology: INVALID_USAGE: not connected: call connect() first"),
            (lambda: c.get_attribute(Attribute.GLOBAL_WORLD_SIZE), "get_attribute: INVALID_USAGE: not connected: call connect() first"),
            (lambda: world.connect(), "leave() comes first"),
            (lambda: world.set_master_loss_timeout(5), "set_master_loss_timeout: INVALID_USAGE: "),
            (lambda: world.send(a, 5), "send: INVALID_ARGUMENT: rank is 5: "),
            (lambda: world.reduce_scatter(a, a).wait(), "reduce_scatter: INVALID_ARGUMENT: receive overlaps send: "),
            (lambda: world.split(-5), "NO_COLOR"),
            (lambda: World("127.0.0.1:0"), "World: INVALID_ARGUMENT: the address '127.0.0.1:0' has port 0; pass the port"),
            (lambda: pccl.Communicator("127.0.0.1:99999"), "Communicator: INVALID_ARGUMENT: address '127.0.0.1:99999': "),
            (lambda: World("127.0.0.1:99999"), "World: INVALID_ARGUMENT: address '127.0.0.1:99999': "),
            (lambda: pccl.MasterNode("127.0.0.1:99999"), "MasterNode: INVALID_ARGUMENT: address '127.0.0.1:99999': "),
        ]
        for call, said in cases:
            with pytest.raises(pccl.PCCLError) as caught:
                call()
            assert said in str(caught.value) and not WORDS_OF_C.search(str(caught.value)), caught.value
        world.leave()
        c.connect()
        more: list[tuple[Callable[[], Any], str]] = [
            (lambda: c.all_reduce(ints, ints.copy(), op=ReduceOp.SUM, quantization_options=quantized),
             "quantization_options.algorithm is 1 (QuantizationAlgorithm.MIN_MAX): it takes operand_descriptor.datatype f32 or f64"),
            (lambda: c.all_reduce(a, a.copy(), op=ReduceOp.BIT_AND), "op is 5 (and) of f64"),
            (lambda: c.sync_shared_state(twice), "tensor_infos[0].name and tensor_infos[1].name are both 'x'"),
        ]
        for call, said in more:
            with pytest.raises(pccl.PCCLError) as caught:
                call()
            assert said in str(caught.value) and not WORDS_OF_C.search(str(caught.value)), caught.value


def test_every_call_and_option_that_a_text_of_the_library_names_has_a_name_in_python() -> None:
    """A text that is new in C names what does not exist in Python, until `pccl.wording` has it."""
    exported = set((ROOT / "scripts" / "exported_symbols.txt").read_text().split())
    texts = [text for path in (ROOT / "src").rglob("*.c") for text in re.findall(r'"((?:[^"\\]|\\.)*)"', path.read_text())]
    named = {name for text in texts for name in re.findall(r"\bpccl[A-Z]\w*|\bPCCL_OPTION_\w+", text)}
    wanted = {name for name in named if name in exported or name.startswith("PCCL_OPTION_")}
    assert {"pcclConnect", "pcclLeave", "PCCL_OPTION_CONNECT_TIMEOUT_MS"} <= wanted
    assert sorted(name for name in wanted if wording.name_in_python(name) == name) == []


def test_names_in_python_exist() -> None:
    places = (World, pccl.Communicator, pccl.MasterNode, Operation, pccl, engine)
    for said in (*wording.CALLS.values(), *(option.removeprefix("World.") for option in wording.OPTIONS.values() if "." in option)):
        name = said.removesuffix("()")
        assert any(hasattr(place, name) for place in places), said
