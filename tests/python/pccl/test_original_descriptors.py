"""Descriptors, types and entries become the structures of C that they describe, and what cannot be one is refused as the original does."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import array
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import pccl
from pccl import DataType, DistributionHint, QuantizationAlgorithm, ReduceOp
from pccl._native import ffi, lib

COMPUTED = [
    DataType.UINT8, DataType.INT8, DataType.INT16, DataType.UINT16, DataType.UINT32, DataType.INT32, DataType.UINT64, DataType.INT64,
    DataType.FLOAT16, DataType.BFLOAT16, DataType.FLOAT, DataType.DOUBLE,
]


def descriptor(count: int = 4, tag: int = 9, datatype: DataType = DataType.FLOAT) -> pccl.ReduceDescriptor:
    operand = pccl.ReduceOperandDescriptor(datatype, DistributionHint.NORMAL)
    return pccl.ReduceDescriptor(count, ReduceOp.MAX, tag, operand, pccl.QuantizationOptions())


def test_defaults_are_no_hint_and_min_max_to_uint8() -> None:
    assert pccl.ReduceOperandDescriptor(DataType.FLOAT).distribution_hint is DistributionHint.NONE
    options = pccl.QuantizationOptions()
    assert (options.quantized_datatype, options.algorithm) == (DataType.UINT8, QuantizationAlgorithm.MIN_MAX)


def test_descriptors_fill_their_structures() -> None:
    operand = pccl.ReduceOperandDescriptor(DataType.DOUBLE, DistributionHint.UNIFORM).to_c()
    assert ffi.typeof(operand) is ffi.typeof("pcclReduceOperandDescriptor_t *")
    assert (operand.datatype, operand.distribution_hint) == (lib.pcclDouble, lib.pcclDistributionUniform)
    options = pccl.QuantizationOptions(DataType.INT16, QuantizationAlgorithm.ZERO_POINT_SCALE).to_c()
    assert ffi.typeof(options) is ffi.typeof("pcclQuantizationOptions_t *")
    assert (options.quantized_datatype, options.algorithm) == (lib.pcclInt16, lib.pcclQuantZeroPointScale)
    made = descriptor(count=2**40, tag=2**63).to_c()
    assert ffi.typeof(made) is ffi.typeof("pcclReduceDescriptor_t *")
    assert (made.count, made.op, made.tag) == (2**40, lib.pcclMax, 2**63)
    assert (made.src_descriptor.datatype, made.src_descriptor.distribution_hint) == (lib.pcclFloat, lib.pcclDistributionNormal)
    assert made.quantization_options.quantized_datatype == lib.pcclUint8


def test_a_descriptor_with_buffers_fills_its_structure_and_one_of_an_array() -> None:
    send, recv = np.zeros(4, np.float32), np.zeros(4, np.float32)
    of_numpy = pccl.ReduceOpDescriptor.from_numpy(send, recv, descriptor())
    tensor = torch.zeros(4)
    of_torch = pccl.ReduceOpDescriptor.from_torch(tensor, tensor, descriptor(tag=10))
    of_pointers = pccl.ReduceOpDescriptor(ffi.cast("void *", 4096), 8192, descriptor(tag=11))
    made = of_numpy.to_c()
    assert ffi.typeof(made) is ffi.typeof("pcclReduceOpDescriptor_t *")
    assert (int(ffi.cast("uintptr_t", made.sendbuf)), int(ffi.cast("uintptr_t", made.recvbuf))) == (send.ctypes.data, recv.ctypes.data)
    several = ffi.new("pcclReduceOpDescriptor_t[]", 3)
    of_numpy.to_c_inpl(several[0])
    of_torch.to_c_inpl(several[1])
    of_pointers.to_c_inpl(several + 2)
    assert [one.descriptor.tag for one in several] == [9, 10, 11]
    assert int(ffi.cast("uintptr_t", several[1].sendbuf)) == tensor.data_ptr() == int(ffi.cast("uintptr_t", several[1].recvbuf))
    assert [int(ffi.cast("uintptr_t", p)) for p in (several[2].sendbuf, several[2].recvbuf)] == [4096, 8192]


@pytest.mark.parametrize("datatype", COMPUTED)
def test_types_go_to_torch_and_numpy_and_back(datatype: DataType) -> None:
    """INT16 is there, and to_numpy_dtype works: the original has neither."""
    assert DataType.from_torch_dtype(datatype.to_torch_dtype()) is datatype
    assert DataType.from_numpy_dtype(datatype.to_numpy_dtype()) is datatype
    assert datatype.to_numpy_dtype().itemsize == torch.empty(0, dtype=datatype.to_torch_dtype()).element_size() == datatype.itemsize


def test_a_type_that_there_is_not() -> None:
    with pytest.raises(ValueError, match="complex64"):
        DataType.from_torch_dtype(torch.complex64)
    with pytest.raises(AssertionError, match="c8"):
        DataType.from_numpy_dtype(np.complex64)
    with pytest.raises(AssertionError):
        DataType.from_numpy_dtype(np.dtype(">f4"))
    assert pccl.DeviceType.from_torch_device_type("cpu") is pccl.DeviceType.CPU
    assert pccl.DeviceType.from_torch_device_type("cuda") is pccl.DeviceType.CUDA
    assert pccl.DeviceType.from_torch_device_type("mps") is None


SHIFTED = np.zeros(5, np.float32)
WRONG_OPERANDS = {
    "of two libraries": (np.zeros(4, np.float32), torch.zeros(4), ValueError),
    "of two types": (np.zeros(4, np.float32), np.zeros(4, np.float64), AssertionError),
    "of two sizes": (torch.zeros(4), torch.zeros(5), AssertionError),
    "array not contiguous": (np.zeros((4, 4), np.float32)[:, 0], np.zeros(4, np.float32), AssertionError),
    "tensor not contiguous": (torch.zeros(4, 4)[:, 0], torch.zeros(4), AssertionError),
    "not on the CPU": (torch.zeros(4, device="meta"), torch.zeros(4), AssertionError),
    "of a type that there is not": (torch.zeros(4, dtype=torch.complex64), torch.zeros(4, dtype=torch.complex64), ValueError),
    "not dense": (torch.eye(3).to_sparse(), torch.eye(3).to_sparse(), ValueError),
    "across each other": (SHIFTED[:-1], SHIFTED[1:], ValueError),
    "masked": (np.ma.masked_array(np.zeros(4), [True, False, False, False]), np.zeros(4), ValueError),
    "read-only": (bytes(4), bytes(4), ValueError),
    "no memory": ([1.0], [1.0], TypeError),
}


@pytest.mark.parametrize("what", WRONG_OPERANDS)
def test_operands_that_cannot_be_reduced_are_refused_before_anything_is_sent(what: str) -> None:
    send, recv, kind = WRONG_OPERANDS[what]
    with pccl.Communicator("127.0.0.1:1") as communicator:
        with pytest.raises(kind):
            communicator.all_reduce(send, recv, op=ReduceOp.SUM)
        with pytest.raises(kind):
            communicator.all_reduce_async(send, recv, op=ReduceOp.SUM)


def test_operands_that_lie_one_behind_the_other_are_apart() -> None:
    """A program may keep all of its memory in one array."""
    whole = np.zeros(8, np.float32)
    for send, recv in ((whole[:4], whole[4:]), (whole[4:], whole[:4])):
        made = pccl.ReduceOpDescriptor.from_numpy(send, recv, descriptor())
        assert (made.sendbuf_ptr, made.recvbuf_ptr) == (send.ctypes.data, recv.ctypes.data)


def test_a_descriptor_that_does_not_fit_its_memory_is_refused() -> None:
    """It would read or write beyond the end."""
    memory = np.zeros(4, np.float32)
    with pytest.raises(ValueError, match="5 elements"):
        pccl.ReduceOpDescriptor.from_numpy(memory, memory, descriptor(count=5))
    with pytest.raises(ValueError, match="DOUBLE"):
        pccl.ReduceOpDescriptor.from_numpy(memory, memory, descriptor(datatype=DataType.DOUBLE))
    with pytest.raises(ValueError, match="torch"):
        pccl.ReduceOpDescriptor.from_torch(memory, memory, descriptor())
    with pytest.raises(ValueError, match="numpy"):
        pccl.ReduceOpDescriptor.from_numpy(torch.zeros(4), torch.zeros(4), descriptor())
    with pccl.Communicator("127.0.0.1:1") as communicator, pytest.raises(ValueError, match="DOUBLE"):
        communicator.all_reduce(memory, memory, op=ReduceOp.SUM, operand_descriptor=pccl.ReduceOperandDescriptor(DataType.DOUBLE))


OPERAND, NO_QUANTISATION = pccl.ReduceOperandDescriptor(DataType.FLOAT), pccl.QuantizationOptions()
WRONG_PARTS: dict[str, tuple[Any, type[Exception]]] = {
    "op is <RedOpType.MAX": (pccl.ReduceDescriptor(4, torch.distributed.ReduceOp.MAX, 0, OPERAND, NO_QUANTISATION), TypeError),  # type: ignore[arg-type]  # numbered as MIN
    "op is 'sum'": (pccl.ReduceDescriptor(4, "sum", 0, OPERAND, NO_QUANTISATION), TypeError),  # type: ignore[arg-type]
    "tag is -1": (pccl.ReduceDescriptor(4, ReduceOp.SUM, -1, OPERAND, NO_QUANTISATION), pccl.InvalidArgument),
    "tag is 0.5": (pccl.ReduceDescriptor(4, ReduceOp.SUM, 0.5, OPERAND, NO_QUANTISATION), TypeError),  # type: ignore[arg-type]
    "count is -1": (pccl.ReduceDescriptor(-1, ReduceOp.SUM, 0, OPERAND, NO_QUANTISATION), pccl.InvalidArgument),
    "operand_descriptor is": (pccl.ReduceDescriptor(4, ReduceOp.SUM, 0, DataType.FLOAT, NO_QUANTISATION), TypeError),  # type: ignore[arg-type]
    "quantization_options is": (pccl.ReduceDescriptor(4, ReduceOp.SUM, 0, OPERAND, None), TypeError),  # type: ignore[arg-type]
    "datatype is 'float'": (pccl.ReduceOperandDescriptor("float"), TypeError),  # type: ignore[arg-type]
    "distribution_hint is 1": (pccl.ReduceOperandDescriptor(DataType.FLOAT, 1), TypeError),  # type: ignore[arg-type]
    "quantized_datatype is 'u8'": (pccl.QuantizationOptions("u8"), TypeError),  # type: ignore[arg-type]
    "algorithm is <DataType": (pccl.QuantizationOptions(DataType.UINT8, DataType.INT8), TypeError),  # type: ignore[arg-type]
    "sendbuf_ptr is None": (pccl.ReduceOpDescriptor(None, None, descriptor()), TypeError),
}


@pytest.mark.parametrize("said", WRONG_PARTS)
def test_a_part_of_a_descriptor_that_is_none_is_named(said: str) -> None:
    """A number of another enumeration would be another operator, and a number out of range one within."""
    wrong, kind = WRONG_PARTS[said]
    with pytest.raises(kind, match=": " + said):
        wrong.to_c()


def test_arguments_of_calls_that_are_none_are_named() -> None:
    with pccl.Communicator("127.0.0.1:1") as communicator:
        wrong: Any = 1
        with pytest.raises(TypeError, match="attribute is 1; pass one of Attribute: GLOBAL"):
            communicator.get_attribute(wrong)
        state = pccl.SharedState([pccl.TensorInfo.from_buffer(array.array("f", [0]), "w")])
        with pytest.raises(TypeError, match="strategy is 1"):
            communicator.sync_shared_state(state, wrong)
        with pytest.raises(TypeError, match="shared_state is 1"):
            communicator.sync_shared_state(wrong)
        with pytest.raises(TypeError, match="an entry of descriptors is 1"):
            communicator.all_reduce_multiple_with_retry([wrong])
        with pytest.raises(TypeError, match="operand_descriptor is 1"):
            communicator.all_reduce(bytearray(4), bytearray(4), op=ReduceOp.SUM, operand_descriptor=wrong)
        with pytest.raises(TypeError, match="address is 1"):
            pccl.Communicator(wrong)


def test_an_entry_of_a_shared_state() -> None:
    weights = torch.zeros(3, dtype=torch.bfloat16)
    info = pccl.TensorInfo.from_torch(weights, "weights", allow_content_inequality=True)
    assert (info.name, info.data_ptr, info.numel) == ("weights", weights.data_ptr(), 3)
    assert (info.dtype, info.device_type, info.allow_content_inequality) == (DataType.BFLOAT16, pccl.DeviceType.CPU, True)
    moments = np.zeros(5, ml_dtypes.bfloat16)
    assert pccl.TensorInfo.from_numpy(moments, "moments").data_ptr == moments.ctypes.data
    with pytest.raises(ValueError, match="address 0"):
        pccl.TensorInfo("w", 0, numel=1, dtype=DataType.FLOAT, device_type=pccl.DeviceType.CPU, allow_content_inequality=False)
    with pytest.raises(ValueError, match="numpy"):
        pccl.TensorInfo.from_numpy(weights, "weights")
    with pytest.raises(ValueError, match="contiguous copy, and copy from that"):
        pccl.TensorInfo.from_torch(torch.zeros(4, 4).t()[1:], "weights")


def test_a_shared_state_keeps_names_and_memory_alive() -> None:
    state = pccl.SharedState([pccl.TensorInfo.from_numpy(np.full(1000, i, np.float64), f"größe {i}") for i in range(10)])
    entries = state.to_c()
    assert entries.count == 10
    others = [ffi.new("char[]", size) for size in range(8, 64) for _ in range(100)]  # they would get what was let go
    assert len(others) > 0
    for i in range(10):
        assert ffi.string(entries.infos[i].name).decode() == f"größe {i}"
        assert ffi.cast("double *", entries.infos[i].data)[999] == i


def test_a_tensor_that_has_got_other_memory_is_refused() -> None:
    """What it had may be freed; peers would agree in that, and differ in what the program uses."""
    parameter, array_ = torch.nn.Parameter(torch.zeros(4)), np.zeros(4)
    state = pccl.SharedState([pccl.TensorInfo.from_torch(parameter, "parameter"), pccl.TensorInfo.from_numpy(array_, "array")])
    parameter.data.copy_(torch.ones(4))
    array_[:] = 1
    assert state.to_c().count == 2
    parameter.data = torch.ones(4)
    with pytest.raises(ValueError, match="memory of 'parameter' is another one .* update tensors in place"):
        state.to_c()
    state = pccl.SharedState([pccl.TensorInfo.from_numpy(array_, "array")])
    array_.resize(100000, refcheck=False)
    with pytest.raises(ValueError, match="memory of 'array'"):
        state.to_c()


def test_the_revision_is_that_of_the_structure() -> None:
    state = pccl.SharedState([pccl.TensorInfo.from_buffer(array.array("f", [0]), "w")])
    assert state.revision == 0
    state.push_revision()
    assert state.revision == 1 == state.to_c().revision
    state.revision = 2**40
    assert state.to_c().revision == 2**40
    for revision, kind in ((-1, ValueError), (2**64, ValueError), ("1", TypeError)):
        with pytest.raises(kind, match="revision is"):
            setattr(state, "revision", revision)
    assert state.revision == 2**40
    with pytest.raises(AssertionError):
        pccl.SharedState([])


def test_a_name_that_c_would_cut_is_refused() -> None:
    """Two entries would have one key."""
    for name, kind in (("w\0a", ValueError), ("\ud800", ValueError), (b"w", TypeError)):
        wrong: Any = name
        with pytest.raises(kind, match="name is"):
            pccl.SharedState([pccl.TensorInfo.from_buffer(array.array("f", [0]), wrong)])
    entry: Any = np.zeros(4)
    with pytest.raises(TypeError, match="tensor_infos"):
        pccl.SharedState([entry])


def test_a_dtensor_is_refused_with_the_remedy() -> None:
    class Sharded(torch.Tensor):
        def to_local(self) -> Any:
            return self

    sharded = torch.zeros(4).as_subclass(Sharded)
    with pytest.raises(ValueError, match="to_local"):
        pccl.TensorInfo.from_torch(sharded, "w")
