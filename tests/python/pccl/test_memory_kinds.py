"""Every type of every library is reduced and synchronised where it lies, with the right values, whichever of the libraries are there."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import array
import sys
import types
from typing import Any, Callable, Iterator

import numpy as np
import pytest
import torch

import pccl
from pccl import DataType, ReduceOp
from pccl.buffers import as_buffer
from pccl.comms import tensors
from pccl.multiworld import memory
from support.master import Master
from support.programs import Program
from support.worlds import together

PEERS = 3
COUNT = 1000
COMPUTED = [
    DataType.UINT8, DataType.INT8, DataType.INT16, DataType.UINT16, DataType.UINT32, DataType.INT32, DataType.UINT64, DataType.INT64,
    DataType.FLOAT16, DataType.BFLOAT16, DataType.FLOAT, DataType.DOUBLE,
]


@pytest.fixture(scope="module")
def peers() -> Iterator[list[pccl.Communicator]]:
    """Three peers of one run, that all tests of this file share."""
    with Master() as master:
        communicators = [pccl.Communicator(master.address, p2p_connection_pool_size=2) for _ in range(PEERS)]
        communicators[0].connect()

        def join(index: int) -> None:
            communicator = communicators[index]
            if index > 0:
                communicator.connect()
            while communicator.get_attribute(pccl.Attribute.GLOBAL_WORLD_SIZE) < PEERS:
                communicator.update_topology()

        together(PEERS, join)
        communicators.sort(key=lambda communicator: next(peer.rank for peer in communicator.peers if peer.is_self))
        yield communicators
        for communicator in communicators:
            communicator.destroy()


def values(peer: int) -> list[int]:
    """Small whole numbers, so that sums are exact in every type."""
    return [(3 * i + peer) % 7 for i in range(COUNT)]


EXPECTED = [sum(column) for column in zip(*(values(peer) for peer in range(PEERS)))]


def with_numpy(datatype: DataType, numbers: list[int]) -> Any:
    return np.array(numbers).astype(datatype.to_numpy_dtype())


def with_torch(datatype: DataType, numbers: list[int]) -> Any:
    return torch.tensor(numbers, dtype=torch.float64).to(datatype.to_torch_dtype())


def numbers_of(memory: Any) -> list[float]:
    return [float(number) for number in (memory.double() if isinstance(memory, torch.Tensor) else memory)]


@pytest.mark.parametrize("datatype", COMPUTED, ids=lambda datatype: datatype.name)
@pytest.mark.parametrize("make", [with_numpy, with_torch])
def test_every_type_is_reduced_where_it_lies(peers: list[pccl.Communicator], make: Callable[..., Any], datatype: DataType) -> None:
    def reduce(peer: int) -> None:
        send, recv = make(datatype, values(peer)), make(datatype, [0] * COUNT)
        where = [memory.data_ptr() if make is with_torch else memory.ctypes.data for memory in (send, recv)]
        info = peers[peer].all_reduce(send, recv, op=ReduceOp.SUM)
        assert numbers_of(recv) == EXPECTED and numbers_of(send) == values(peer)
        assert where == [memory.data_ptr() if make is with_torch else memory.ctypes.data for memory in (send, recv)]
        assert info.local_world_size == PEERS and info.tx_bytes > 0 and info.rx_bytes > 0
        peers[peer].all_reduce(send, send, op=ReduceOp.MAX, tag=1)
        assert numbers_of(send) == [max(column) for column in zip(*map(values, range(PEERS)))]

    together(PEERS, reduce)


FORMATS = "B b h H i I q Q f d".split()


@pytest.mark.parametrize("code", FORMATS)
def test_buffers_of_python_are_reduced_where_they_lie(peers: list[pccl.Communicator], code: str) -> None:
    def reduce(peer: int) -> None:
        send, recv = array.array(code, values(peer)), array.array(code, [0] * COUNT)
        peers[peer].all_reduce(send, recv, op=ReduceOp.SUM)
        assert recv.tolist() == EXPECTED and send.tolist() == values(peer)
        peers[peer].all_reduce(memoryview(send), memoryview(send), op=ReduceOp.MIN)
        assert send.tolist() == [min(column) for column in zip(*map(values, range(PEERS)))]

    together(PEERS, reduce)


@pytest.mark.parametrize("op", [ReduceOp.SUM, ReduceOp.AVG, ReduceOp.PROD, ReduceOp.MAX, ReduceOp.MIN], ids=lambda op: op.name)
def test_every_operator_in_and_out_of_place(peers: list[pccl.Communicator], op: ReduceOp) -> None:
    columns = np.array([values(peer) for peer in range(PEERS)], np.float64)
    expected = {
        ReduceOp.SUM: columns.sum(0), ReduceOp.AVG: columns.sum(0) / PEERS, ReduceOp.PROD: columns.prod(0), ReduceOp.MAX: columns.max(0),
        ReduceOp.MIN: columns.min(0),
    }[op]

    def reduce(peer: int) -> None:
        send, recv = np.array(values(peer), np.float64), np.zeros(COUNT)
        peers[peer].all_reduce(send, recv, op=op)
        assert recv.tolist() == expected.tolist()
        peers[peer].all_reduce(send, send, op=op)
        assert send.tolist() == expected.tolist()

    together(PEERS, reduce)


def test_a_pattern_of_bits_may_be_called_by_its_type(peers: list[pccl.Communicator]) -> None:
    """bfloat16 in an array of uint16, as programs without ml_dtypes have it."""
    operand = pccl.ReduceOperandDescriptor(DataType.BFLOAT16)

    def reduce(peer: int) -> None:
        bits = (np.array(values(peer), np.float32).view(np.uint32) >> 16).astype(np.uint16)
        peers[peer].all_reduce(bits, bits, op=ReduceOp.SUM, operand_descriptor=operand)
        assert (bits.astype(np.uint32) << 16).view(np.float32).tolist() == EXPECTED

    together(PEERS, reduce)


@pytest.mark.parametrize("count", [0, 1, 2])
def test_fewer_elements_than_peers(peers: list[pccl.Communicator], count: int) -> None:
    def reduce(peer: int) -> None:
        tensor = torch.full((count,), float(peer))
        assert peers[peer].all_reduce(tensor, tensor, op=ReduceOp.SUM).local_world_size == PEERS
        assert tensor.tolist() == [0.0 + 1 + 2] * count

    together(PEERS, reduce)


@pytest.mark.parametrize("max_in_flight", [1, 4, 64])
def test_many_at_once(peers: list[pccl.Communicator], max_in_flight: int) -> None:
    """Of both libraries in one call, and the bytes are those of all."""
    def reduce(peer: int) -> None:
        none = pccl.QuantizationOptions(DataType.FLOAT, pccl.QuantizationAlgorithm.NONE)
        operand = pccl.ReduceOperandDescriptor(DataType.FLOAT)
        memory: list[Any] = [np.full(100 + tag, peer * tag, np.float32) for tag in range(10)]
        memory += [torch.full((100 + tag,), float(peer * tag)) for tag in range(10, 20)]
        descriptors = []
        for tag, one in enumerate(memory):
            made = pccl.ReduceDescriptor(100 + tag, ReduceOp.SUM, tag, operand, none)
            of = pccl.ReduceOpDescriptor.from_torch if tag >= 10 else pccl.ReduceOpDescriptor.from_numpy
            descriptors.append(of(one, one, made))
        info = peers[peer].all_reduce_multiple_with_retry(descriptors, max_in_flight=max_in_flight)
        for tag, one in enumerate(memory):
            assert numbers_of(one) == [tag * (0 + 1 + 2)] * (100 + tag)
        assert info.local_world_size == PEERS and info.tx_bytes > 0

    together(PEERS, reduce)


QUANTISED = [
    (source, algorithm, target)
    for source in ("float32", "float64")
    for algorithm, kinds in (("MIN_MAX", "U"), ("ZERO_POINT_SCALE", "UI"))
    for bits in (8, 16, 32, 64)
    for target in [("UINT" if kind == "U" else "INT") + str(bits) for kind in kinds]
]


@pytest.mark.parametrize(("source", "algorithm", "target"), QUANTISED)
def test_every_quantisation_is_as_near_as_its_bits_allow(
    peers: list[pccl.Communicator], source: str, algorithm: str, target: str,
) -> None:
    """One rounding of each input and one of the sum, each of half a step of its range; and the same bits everywhere."""
    results: list[Any] = [None] * PEERS
    inputs = [np.random.default_rng(peer).uniform(-1, 1, COUNT).astype(source) for peer in range(PEERS)]

    def reduce(peer: int) -> None:
        options = pccl.QuantizationOptions(pccl.DataType[target], pccl.QuantizationAlgorithm[algorithm])
        out = np.empty_like(inputs[peer])
        peers[peer].all_reduce(inputs[peer], out, op=ReduceOp.SUM, quantization_options=options)
        results[peer] = out

    together(PEERS, reduce)
    exact = np.sum([one.astype(np.float64) for one in inputs], axis=0)
    bits = int(target.lstrip("UINT"))
    half_step = 0.0 if bits >= 8 * inputs[0].itemsize else 1.01 / (2.0 ** (bits if algorithm == "MIN_MAX" else bits - 1) - 2)
    rounding = 8 * np.finfo(source).eps
    assert np.abs(results[0] - exact).max() <= 2 * PEERS * half_step + rounding
    for other in results[1:]:
        assert other.tobytes() == results[0].tobytes()


def test_shared_state_of_every_type_comes_to_one_who_differs(peers: list[pccl.Communicator]) -> None:
    """Types of 16 bits and entries that may differ, too: the original sends neither."""
    revisions = []

    def synchronize(peer: int) -> None:
        there = [0, 0, 5][peer]  # two agree
        memory: dict[str, Any] = {}
        for datatype in COMPUTED:
            memory[f"numpy {datatype.name}"] = with_numpy(datatype, [there] * 37)
            memory[f"torch {datatype.name}"] = with_torch(datatype, [there] * 37)
        memory["array"] = array.array("d", [there] * 37)
        memory["bytes"] = bytearray([there] * 37)
        state = pccl.SharedState([pccl.TensorInfo.from_buffer(one, name) for name, one in memory.items()])
        info = peers[peer].sync_shared_state(state)
        for name, one in memory.items():
            assert numbers_of(one) == [0] * 37, name
        assert (info.rx_bytes > 0) == (peer == 2)
        state.push_revision()
        again = peers[peer].sync_shared_state(state)
        assert (again.tx_bytes, again.rx_bytes) == (0, 0)
        revisions.append(state.revision)

    together(PEERS, synchronize)
    assert revisions == [1] * PEERS


def test_disagreement_is_an_error_for_all_that_carries_cause_peer_and_phase(peers: list[pccl.Communicator]) -> None:
    ids = [next(one.id for one in peer.peers if one.is_self) for peer in peers]

    def reduce(peer: int) -> pccl.PCCLError:
        tensor = torch.ones(10 if peer else 11)
        handle = peers[peer].all_reduce_async(tensor, tensor, op=ReduceOp.SUM, tag=77)
        ok, status, info = handle.wait()
        assert not ok and status == pccl.Result.INVALID_ARGUMENT.value and info.local_world_size == 0
        assert tensor.tolist() == [1.0] * len(tensor)
        assert handle.error is not None
        return handle.error

    for peer, error in enumerate(together(PEERS, reduce)):
        assert isinstance(error, pccl.InvalidArgument) and isinstance(error, ValueError)
        assert (error.cause, error.error_class, error.tag) == (pccl.Cause.MISMATCH, pccl.ErrorClass.FIX, 77)
        assert error.peer in ids and error.peer != ids[peer]
        assert error.phase and "10" in error.text and "11" in error.text


WITHOUT = """
import sys, threading
for name in sys.argv[2:]:
    sys.modules[name] = None  # an import of it fails
import pccl

def memory(numbers):
    if "torch" not in sys.argv[2:]:
        import torch
        return torch.tensor(numbers, dtype=torch.float32)
    if "numpy" not in sys.argv[2:]:
        import numpy
        return numpy.array(numbers, numpy.float32)
    import array
    return array.array("f", numbers)

def peer(index):
    with pccl.Communicator(sys.argv[1]) as communicator:
        if index == 0:
            communicator.connect()
            first.set()
        else:
            first.wait()
            communicator.connect()
        while communicator.get_attribute(pccl.Attribute.GLOBAL_WORLD_SIZE) < 2:
            communicator.update_topology()
        numbers = memory([1.0 + index, 2.0])
        state = pccl.SharedState([pccl.TensorInfo.from_buffer(memory([5.0]), "w")])
        communicator.sync_shared_state(state)
        communicator.all_reduce(numbers, numbers, op=pccl.ReduceOp.SUM)
        results.append(numbers.tolist())

results = []
first = threading.Event()
threads = [threading.Thread(target=peer, args=(index,)) for index in range(2)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(results)
for name, touch in (("torch", pccl.DataType.FLOAT.to_torch_dtype), ("numpy", pccl.DataType.FLOAT.to_numpy_dtype)):
    try:
        touch()
        print("there is", name)
    except RuntimeError as error:
        print("there is no", name, str(error).count(name))
"""


@pytest.mark.parametrize("missing", [(), ("torch",), ("numpy",), ("torch", "numpy")], ids=lambda names: " and ".join(names) or "nothing")
def test_libraries_that_are_not_installed_are_not_needed(master: Master, missing: tuple[str, ...]) -> None:
    with Program(WITHOUT, master.address, *missing) as program:
        program.succeeds()
        assert "[[3.0, 4.0], [3.0, 4.0]]" in program.said
        for name in ("torch", "numpy"):
            assert [line for line in program.said if line.startswith(f"there is {'no ' if name in missing else ''}{name}")]


@pytest.mark.parametrize("importing", [("torch",), ("torch", "numpy")], ids=" and ".join)
def test_a_library_that_another_thread_is_importing_is_not_needed(importing: tuple[str, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """It is among the modules, and has nothing yet: no memory is of it."""
    kinds: list[Any] = [array.array("d", [1.0, 2.0]), np.array([1.0, 2.0])][: 3 - len(importing)]
    for name in importing:
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    for numbers in kinds:
        assert as_buffer(numbers, writable=True).nbytes == 16
        assert tensors.is_contiguous(numbers) and not tensors.has_nan(numbers)
        assert memory.readable(numbers) is numbers and memory.extent(numbers) == (2, "d" if numbers is kinds[0] else "<f8")
