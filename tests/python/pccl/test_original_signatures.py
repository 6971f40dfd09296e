"""A program written for the original finds every name, parameter, default and value that it uses."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import inspect
import re
import subprocess
import sys
from typing import Any

import pytest

import pccl
from pccl._native import ffi, lib

EXPORTS = """AsyncReduceHandle Attribute Communicator DataType DistributionHint MasterNode PCCLError QuantizationAlgorithm
    QuantizationOptions ReduceDescriptor ReduceInfo ReduceOp ReduceOpDescriptor ReduceOperandDescriptor SharedState SharedStateSyncInfo
    SharedStateSyncStrategy TensorInfo cuda""".split()

NO_DEFAULT = inspect.Parameter.empty

# Positional parameters, then keyword-only ones; with their defaults, where they have one.
SIGNATURES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "PCCLError": ({"result": NO_DEFAULT, "func_name": NO_DEFAULT}, {}),
    "PCCLError.check": ({"result": NO_DEFAULT, "func_name": NO_DEFAULT}, {}),
    "DataType.to_torch_dtype": ({}, {}),
    "DataType.to_numpy_dtype": ({}, {}),
    "DataType.from_torch_dtype": ({"dtype": NO_DEFAULT}, {}),
    "DataType.from_numpy_dtype": ({"dtype": NO_DEFAULT}, {}),
    "DeviceType.from_torch_device_type": ({"device_type": NO_DEFAULT}, {}),
    "ReduceOperandDescriptor": ({"datatype": NO_DEFAULT, "distribution_hint": pccl.DistributionHint.NONE}, {}),
    "QuantizationOptions": (
        {"quantized_datatype": pccl.DataType.UINT8, "algorithm": pccl.QuantizationAlgorithm.MIN_MAX}, {},
    ),
    "ReduceDescriptor": (
        dict.fromkeys(("count", "op", "tag", "operand_descriptor", "quantization_options"), NO_DEFAULT), {},
    ),
    "ReduceOpDescriptor": (dict.fromkeys(("sendbuf_ptr", "recvbuf_ptr", "reduce_descriptor"), NO_DEFAULT), {}),
    "ReduceOpDescriptor.from_torch": (dict.fromkeys(("send", "recv", "reduce_descriptor"), NO_DEFAULT), {}),
    "ReduceOpDescriptor.from_numpy": (dict.fromkeys(("send", "recv", "reduce_descriptor"), NO_DEFAULT), {}),
    "ReduceOpDescriptor.to_c": ({}, {}),
    "ReduceOpDescriptor.to_c_inpl": ({"c_desc": NO_DEFAULT}, {}),
    "TensorInfo": (
        {"name": NO_DEFAULT, "data_ptr": NO_DEFAULT},
        dict.fromkeys(("numel", "dtype", "device_type", "allow_content_inequality"), NO_DEFAULT),
    ),
    "TensorInfo.from_torch": ({"tensor": NO_DEFAULT, "name": NO_DEFAULT}, {"allow_content_inequality": False}),
    "TensorInfo.from_numpy": ({"tensor": NO_DEFAULT, "name": NO_DEFAULT}, {"allow_content_inequality": False}),
    "SharedState": ({"tensor_infos": NO_DEFAULT}, {}),
    "SharedState.push_revision": ({}, {}),
    "SharedStateSyncInfo": ({"tx_bytes": NO_DEFAULT, "rx_bytes": NO_DEFAULT}, {}),
    "ReduceInfo": (dict.fromkeys(("local_world_size", "tx_bytes", "rx_bytes"), NO_DEFAULT), {}),
    "AsyncReduceHandle.wait": ({}, {}),
    "Communicator": ({"address": NO_DEFAULT, "peer_group": 0, "p2p_connection_pool_size": 0}, {}),
    "Communicator.connect": ({"n_attempts": 5}, {}),
    "Communicator.get_attribute": ({"attribute": NO_DEFAULT}, {}),
    "Communicator.update_topology": ({}, {}),
    "Communicator.are_peers_pending": ({}, {}),
    "Communicator.optimize_topology": ({}, {}),
    "Communicator.sync_shared_state": (
        {"shared_state": NO_DEFAULT, "strategy": pccl.SharedStateSyncStrategy.ENFORCE_POPULAR}, {},
    ),
    "Communicator.all_reduce": (
        {"send": NO_DEFAULT, "recv": NO_DEFAULT},
        {"op": NO_DEFAULT, "tag": 0, "operand_descriptor": None, "quantization_options": None},
    ),
    "Communicator.all_reduce_async": (
        {"send": NO_DEFAULT, "recv": NO_DEFAULT},
        {"op": NO_DEFAULT, "tag": 0, "operand_descriptor": None, "quantization_options": None},
    ),
    "Communicator.all_reduce_multiple_with_retry": ({"descriptors": NO_DEFAULT}, {"max_in_flight": 4}),
    "MasterNode": ({"listen_address": NO_DEFAULT}, {}),
    "MasterNode.run": ({}, {}),
    "MasterNode.interrupt": ({}, {}),
    "cuda.is_available": ({}, {}),
}

ENUMS = {
    "ReduceOp": {"SUM": "pcclSum", "AVG": "pcclAvg", "PROD": "pcclProd", "MAX": "pcclMax", "MIN": "pcclMin"},
    "Attribute": {
        "GLOBAL_WORLD_SIZE": "PCCL_ATTRIBUTE_GLOBAL_WORLD_SIZE",
        "LOCAL_WORLD_SIZE": "PCCL_ATTRIBUTE_PEER_GROUP_WORLD_SIZE",
        "NUM_DISTINCT_PEER_GROUPS": "PCCL_ATTRIBUTE_NUM_DISTINCT_PEER_GROUPS",
        "LARGEST_PEER_GROUP_WORLD_SIZE": "PCCL_ATTRIBUTE_LARGEST_PEER_GROUP_WORLD_SIZE",
    },
    "SharedStateSyncStrategy": {
        name: f"PCCL_SHARED_STATE_SYNC_STRATEGY_{name}" for name in ("ENFORCE_POPULAR", "RECEIVE_ONLY", "SEND_ONLY")
    },
    "DataType": {
        "UINT8": "pcclUint8", "INT8": "pcclInt8", "INT16": "pcclInt16", "UINT16": "pcclUint16", "UINT32": "pcclUint32",
        "INT32": "pcclInt32", "UINT64": "pcclUint64", "INT64": "pcclInt64", "FLOAT16": "pcclFloat16", "BFLOAT16": "pcclBFloat16",
        "FLOAT": "pcclFloat", "DOUBLE": "pcclDouble",
    },
    "DeviceType": {"CPU": "pcclDeviceCpu", "CUDA": "pcclDeviceCuda"},
    "DistributionHint": {"NONE": "pcclDistributionNone", "NORMAL": "pcclDistributionNormal", "UNIFORM": "pcclDistributionUniform"},
    "QuantizationAlgorithm": {"NONE": "pcclQuantNone", "MIN_MAX": "pcclQuantMinMax", "ZERO_POINT_SCALE": "pcclQuantZeroPointScale"},
}

RESULTS = {
    "SUCCESS": 0, "NOT_INITIALIZED": 1, "INTERNAL_ERROR": 2, "INVALID_ARGUMENT": 3, "INVALID_USAGE": 4, "TOO_FEW_PEERS": 5,
    "MASTER_CONNECTION_FAILED": 6, "RANK_CONNECTION_FAILED": 7, "RANK_CONNECTION_LOST": 8, "NO_SHARED_STATE_AVAILABLE": 9,
    "PENDING_ASYNC_OPS": 10, "UPDATE_TOPOLOGY_FAILED": 11, "TOPOLOGY_OPTIMIZATION_FAILED": 12,
}


def test_all_names_of_the_original_are_exported() -> None:
    assert set(EXPORTS) <= set(pccl.__all__)
    assert all(hasattr(pccl, name) for name in pccl.__all__)


@pytest.mark.parametrize("name", SIGNATURES)
def test_parameters_and_defaults_are_those_of_the_original(name: str) -> None:
    found: Any = pccl
    for part in name.split("."):
        found = getattr(found, part)
    parameters = [p for p in inspect.signature(found).parameters.values() if p.name != "self"]
    positional, keyword_only = SIGNATURES[name]
    ours = {p.name: p.default for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD}
    assert list(ours)[: len(positional)] == list(positional)  # further ones of ours have defaults
    assert all(default is not NO_DEFAULT for name, default in ours.items() if name not in positional)
    assert {name: ours[name] for name in positional} == positional
    assert {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY} == keyword_only


@pytest.mark.parametrize("name", ENUMS)
def test_enumerations_have_the_values_of_the_header(name: str) -> None:
    for member, constant in ENUMS[name].items():
        assert getattr(pccl, name)[member].value == getattr(lib, constant)


def test_results_have_the_values_of_the_header() -> None:
    assert {result.name: result.value for result in pccl.Result} == RESULTS


def test_an_error_names_the_result_and_the_function() -> None:
    error = pccl.PCCLError(pccl.Result.TOO_FEW_PEERS, "pcclAllReduce")
    assert error.result is pccl.Result.TOO_FEW_PEERS and "TOO_FEW_PEERS" in str(error) and "pcclAllReduce" in str(error)
    pccl.PCCLError.check(lib.pcclSuccess, "pcclAllReduce")
    with pytest.raises(pccl.PCCLError) as raised:
        pccl.PCCLError.check(lib.pcclInvalidUsage, "pcclAllReduce")
    assert raised.value.result is pccl.Result.INVALID_USAGE


def test_version_is_the_librarys() -> None:
    number = ffi.new("int *")
    lib.pcclGetVersion(number)
    assert re.fullmatch(r"\d+\.\d+\.\d+", pccl.__version__)
    major, minor, patch = map(int, pccl.__version__.split("."))
    assert major * 10000 + minor * 100 + patch == number[0]


def test_cuda_is_what_the_build_says() -> None:
    assert pccl.cuda.is_available() is False


SIDE_EFFECTS = """
import signal, sys, threading
handlers = [signal.getsignal(number) for number in range(1, 32)]
import pccl
assert [signal.getsignal(number) for number in range(1, 32)] == handlers
assert threading.active_count() == 1
assert "torch" not in sys.modules and "numpy" not in sys.modules
assert "logging" not in sys.modules or not sys.modules["logging"].getLogger().handlers
"""


def test_importing_only_loads() -> None:
    """No thread, no signal handler, no logging set up, neither torch nor numpy."""
    subprocess.run([sys.executable, "-c", SIDE_EFFECTS], check=True, timeout=30)
