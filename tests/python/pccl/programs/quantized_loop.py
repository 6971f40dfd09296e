"""A peer of the original's asynchronous loop: quantised reduces, each in flight while the next step computes.

quantized_loop.py MASTER SLOT PEERS STEPS.  Uses nothing that the original has not.  Inputs can be computed by everybody, so that
each result is checked against the exact sum, within what quantising each input once and the result once may cost.
"""
# SPDX-License-Identifier: MIT
import sys
import zlib

import numpy as np
from pccl import (
    Attribute, Communicator, DataType, DistributionHint, PCCLError, QuantizationAlgorithm, QuantizationOptions, ReduceOp,
    ReduceOperandDescriptor, Result,
)

ADDRESS, SLOT, PEERS, STEPS = sys.argv[1], *map(int, sys.argv[2:])
COUNT = 1024


def inputs(step: int, slot: int) -> np.ndarray:
    return np.random.default_rng([step, slot]).standard_normal(COUNT, dtype=np.float32)


def check(step: int, result: np.ndarray) -> None:
    given = [inputs(step, slot).astype(np.float64) for slot in range(PEERS)]
    exact = np.sum(given, axis=0)
    spread = sum(np.ptp(one) for one in (*given, exact)) / 255 / 2
    assert np.abs(result - exact).max() <= 1.1 * spread, f"step {step}: {np.abs(result - exact).max()} > {spread}"
    assert np.abs(result - exact).max() > 0, "nothing was quantised"


def main() -> None:
    communicator = Communicator(ADDRESS, 0)
    communicator.connect(n_attempts=15)
    while communicator.get_attribute(Attribute.GLOBAL_WORLD_SIZE) < PEERS:
        try:
            communicator.update_topology()
        except PCCLError as error:
            assert error.result is Result.UPDATE_TOPOLOGY_FAILED
    digest = 0
    in_flight = None
    for step in range(STEPS + 1):
        if step < STEPS:
            x, y = inputs(step, SLOT), np.zeros(COUNT, np.float32)
            launched = communicator.all_reduce_async(
                x, y, op=ReduceOp.SUM, tag=step % 2,
                operand_descriptor=ReduceOperandDescriptor(datatype=DataType.FLOAT, distribution_hint=DistributionHint.NORMAL),
                quantization_options=QuantizationOptions(quantized_datatype=DataType.UINT8, algorithm=QuantizationAlgorithm.MIN_MAX),
            )
        if in_flight is not None:
            handle, result, of = in_flight
            is_success, status, info = handle.wait()
            assert is_success, f"step {of}: {Result(status)}"
            assert info.local_world_size == PEERS and 0 < info.tx_bytes < 2 * 4 * COUNT, info.tx_bytes
            check(of, result)
            digest = zlib.crc32(result.tobytes(), digest)
        in_flight = (launched, y, step)
    print("digest", digest)


main()
