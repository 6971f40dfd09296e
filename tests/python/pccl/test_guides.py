"""What the getting-started guide and the tutorial show does in Python what they say."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Callable

import numpy as np

import pccl
from support.master import Master
from support.pages import programs
from support.programs import Program
from support.worlds import together

PROGRAMS = Path(__file__).parent / "programs"


def test_the_guides_check_of_an_installation() -> None:
    said = subprocess.run([sys.executable, "-c", "import pccl; print(pccl.__version__)"], capture_output=True, text=True, check=True)
    assert said.stdout == f"{pccl.__version__}\n"


def test_two_peers_of_the_guides_complete_program(master: Master) -> None:
    with Program(PROGRAMS / "hello_world.py", master.address) as first, Program(PROGRAMS / "hello_world.py", master.address) as second:
        for program in (first, second):
            program.succeeds()
            results = [line.partition("result = ")[2].partition("]")[0] for line in program.said if "result = " in line]
            assert results == [str([2.0 * (10 * step + k + 1) for k in range(4)])[:-1] for step in range(5)]
            revisions = [line for line in program.said if "shared_revision" in line]
            assert revisions == [f"[Peer] shared_revision now {step + 1}, sync => tx=0, rx=0" for step in range(5)]
            assert program.said[-2:] == ["[Peer] Reached revision 5 => done.", f"[Peer] Exiting. {pccl.__version__}"]


def test_shared_state_takes_the_popular_content_and_says_who_received(master: Master) -> None:
    """The tutorial's example: A and B agree, C differs and is told what they have."""
    gate = threading.Barrier(3)

    def peer(index: int) -> tuple[bool, list[float]]:
        weights = np.full(4096, 7.0 if index == 2 else 3.0, np.float32)
        with pccl.Communicator(master.address) as communicator:
            gate.wait()
            communicator.connect()
            while communicator.get_attribute(pccl.Attribute.GLOBAL_WORLD_SIZE) < 3:
                communicator.update_topology()
            info = communicator.sync_shared_state(pccl.SharedState([pccl.TensorInfo.from_numpy(weights, "model_weights")]))
            return info.rx_bytes > 0, weights.tolist()

    results = together(3, peer)
    assert [received for received, _ in results] == [False, False, True]
    assert all(weights == [3.0] * 4096 for _, weights in results)


def test_the_tutorials_step_of_four_calls(master: Master) -> None:
    """updateTopology, syncSharedState, allReduceAsync, awaitAsyncReduce, again and again."""

    def peer(index: int) -> float:
        weights = np.zeros(10, np.float64)
        state = pccl.SharedState([pccl.TensorInfo.from_numpy(weights, "weights")])
        with pccl.Communicator(master.address) as communicator:
            communicator.connect()
            while communicator.get_attribute(pccl.Attribute.GLOBAL_WORLD_SIZE) < 2:
                communicator.update_topology()
            for step in range(100):
                if step > 0:
                    communicator.update_topology()
                    state.push_revision()
                assert communicator.sync_shared_state(state).rx_bytes == 0
                gradient = np.full(10, float(index + step))
                handle = communicator.all_reduce_async(gradient, gradient, op=pccl.ReduceOp.AVG)
                ok, status, info = handle.wait()
                assert ok and status == pccl.Result.SUCCESS.value and info.local_world_size == 2
                weights += gradient
        return float(weights[0])

    assert together(2, peer) == [100 * 0.5 + sum(range(100))] * 2


def test_the_first_example_of_the_page_runs_at_two_peers(master: Master) -> None:
    first = programs("python/PCCL.md")[0]
    with Program(first, master.address, "200") as one, Program(first, master.address, "200") as other:
        one.succeeds()
        other.succeeds()
        assert one.said[-1] == other.said[-1]
        words = one.said[-1].replace("[", " ").replace("]", " ").split()
        assert words[:4] == ["step", "150:", "2", "peers,"]
        assert all(abs(float(weight) - 3) < 2 for weight in words[5:9])


def test_the_loop_of_the_page_and_its_master(master: Master) -> None:
    shown: dict[str, Callable[..., np.ndarray]] = {}
    exec(programs("python/PCCL.md")[1], shown)
    assert [weights.tolist() for weights in together(3, lambda _: shown["train"](master.address, 50))] == [[51.0] * 4] * 3
    exec(programs("python/PCCL.md")[2], {})
