"""The examples of the backend, in short forms, and the names of other libraries in the environment that they may be started with."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import os
import pathlib
import re
import socket
import subprocess
import sys
import tomllib
from importlib.metadata import EntryPoint

import pytest
import torch.distributed as dist

from pccl.engine import aliases

EXAMPLES = pathlib.Path(__file__).parents[3] / "examples" / "python"

#: As the guide for users of RCCL sets them.
GUIDE = {
    "RCCL_BUFFSIZE": "67108864", "RCCL_ALLREDUCE_ALGO": "ring", "RCCL_SOCKET_IFNAME": "ib0", "RCCL_ALLREDUCE_ELEMENTS_THRESHOLD": "8192",
    "RCCL_DIRECT": "1", "RCCL_SHM_DISABLE": "0", "RCCL_MEMPOOL_DISABLE": "0",
}


def run(name: str, *arguments: str, **environment: str) -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    result = subprocess.run(
        [sys.executable, str(EXAMPLES / name), *arguments], capture_output=True, text=True, timeout=120,
        env={**os.environ, "MASTER_PORT": port, **environment},
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def test_the_guides_program() -> None:
    said = run("ddp_toy.py", **GUIDE)
    for rank in range(2):
        losses = [float(number) for number in re.findall(rf"Rank {rank}, Loss: (\d+\.\d+)", said)]
        assert len(losses) == 10 and losses[9] < losses[0]


def test_elastic_training_loses_no_step() -> None:
    said = run("elastic_ddp.py", "--steps", "30")
    assert said.count("step 10 failed, repeats it with 2 ranks") == 2
    ends = re.findall(r"rank (\d)( \(new\))?: steps (\d+) to (\d+), (\d) repeated, none lost; 3 ranks, parameters (\w+)", said)
    assert sorted((end[0], end[4]) for end in ends) == [("0", "1"), ("1", "1"), ("2", "0")], said
    assert len({end[5] for end in ends}) == 1 and len({end[3] for end in ends}) == 1, said
    joined = re.search(r"rank 2 \(new\): joins before step (\d+), 3 ranks", said)
    assert joined and {end[2] for end in ends} == {"0", joined.group(1)}


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch) -> pytest.LogCaptureFixture:
    caplog.set_level("INFO", "pccl")
    monkeypatch.setattr(aliases, "_said", set())
    return caplog


def test_names_of_others(said: pytest.LogCaptureFixture) -> None:
    interface = socket.if_nameindex()[0][1]
    environment = {**GUIDE, "NCCL_SOCKET_IFNAME": f"={interface}", "NCCL_NET": "socket"}
    aliases.adopt(environment)
    assert {name: value for name, value in environment.items() if name.startswith("PCCL_")} == {
        "PCCL_SOCKET_IFNAME": f"={interface}", "PCCL_SHM_DISABLE": "0", "PCCL_SOCKET_SNDBUF": "67108864", "PCCL_SOCKET_RCVBUF": "67108864",
        "PCCL_NET": "Socket", "PCCL_ALGO": "allreduce:ring",
    }
    assert "PCCL_ALGO is 'allreduce:ring', as RCCL_ALLREDUCE_ALGO says" in said.text
    assert said.text.count("RCCL_DIRECT has no effect: tensors are sent and received where they lie") == 1
    aliases.adopt(environment)
    assert said.text.count("RCCL_DIRECT") == 1


def test_names_of_ours_count_first_and_what_cannot_be_followed_is_said_once(said: pytest.LogCaptureFixture) -> None:
    environment = {"PCCL_ALGO": "tree", "NCCL_ALGO": "ring", "RCCL_SOCKET_IFNAME": "nothere", "NCCL_NET": "IB", "NCCL_SHM_DISABLE": "1"}
    aliases.adopt(environment)
    aliases.adopt(environment)
    assert environment["PCCL_ALGO"] == "tree" and environment["PCCL_SHM_DISABLE"] == "1"
    assert "PCCL_SOCKET_IFNAME" not in environment and "PCCL_NET" not in environment
    assert said.text.count("'nothere', which cannot be followed") == 1 and said.text.count("'IB', which cannot be followed") == 1
    other = {"NCCL_ALGO": "collnetdirect,ring"}
    aliases.adopt(other)
    assert "PCCL_ALGO" not in other


def test_exclusions(said: pytest.LogCaptureFixture) -> None:
    names = [name for _, name in socket.if_nameindex()]
    for text, good in (("^nothere", True), ("^" + ",".join(names), False), (names[0], True)):
        environment = {"NCCL_SOCKET_IFNAME": text}
        aliases.adopt(environment)
        assert ("PCCL_SOCKET_IFNAME" in environment) == good


def test_torch_finds_the_backend_by_its_entry_point() -> None:
    project = tomllib.loads((EXAMPLES.parents[1] / "pyproject.toml").read_text())
    named = project["project"]["entry-points"]["torch.distributed.backends"]["pccl"]
    EntryPoint("pccl", named, "torch.distributed.backends").load()()
    assert "pccl" in dist.Backend.backend_list
