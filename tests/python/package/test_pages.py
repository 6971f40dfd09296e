"""Programs that the pages show run as they stand there, but for ports, and what they print is right."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import contextlib
import io
import json
import os
import pathlib
import re
import sys
from typing import Optional

import numpy as np
import torch
import torch._dynamo  # noqa: F401 - optimisers need it; before processes are forked, or each would import it

from support.master import Master
from support.pages import DOCUMENTS, programs
from support.ranks import run

MIGRATION = "python/MIGRATION.md"

torch.set_num_threads(1)  # so that threads of its own need not outlive a fork


def printed(source: str, *arguments: list[str], master: Optional[Master] = None) -> list[str]:
    """What each process of one program prints, each with its arguments; they are forked, as ranks, so that none has to import torch."""

    names = {"__name__": "__main__"}  # outlives the program: a group of Gloo's that goes may wait for the interpreter's lock for ever

    def process() -> str:
        sys.argv[1:] = arguments[int(os.environ["RANK"])]
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            exec(compile(source, "a program of a page", "exec"), names)
        return said.getvalue()

    return run(len(arguments), process, environment={"PCCL_MASTER": master.address} if master else {})


def test_the_engines_example() -> None:
    (example,) = programs("PYTHON.md")
    (said,) = printed(example, [])
    assert sorted(said.splitlines()) == ["0 [3.0, 3.0, 3.0, 3.0]", "1 [3.0, 3.0, 3.0, 3.0]"]


def test_examples_give_their_master_the_usual_time() -> None:
    """On a busy machine peers take long to start; a master that ends after five seconds without one is gone by then."""
    texts = [*DOCUMENTS.rglob("*.md"), *(DOCUMENTS.parents[1] / "examples").rglob("*.py")]
    starting = {path.name: calls for path in texts if (calls := re.findall(r"spawn_master\((.*?)\)", path.read_text()))}
    assert starting.keys() >= {"PYTHON.md", "launch.py", "elastic_ddp.py"}
    assert all(call == '"127.0.0.1"' for calls in starting.values() for call in calls), starting


def test_the_first_example_of_torch_distributed(master: Master) -> None:
    assert printed(programs("python/TORCH.md")[0], [], [], [], master=master) == [f"{rank} tensor([3., 3., 3., 3.])\n" for rank in range(3)]


# ---- Coming from other libraries ----


def test_from_pccl_before_and_after_have_the_same_weights(master: Master) -> None:
    weights = np.zeros(4, np.float32)
    for _ in range(50):
        weights -= 0.1 * (weights - 3)
    for program in programs(MIGRATION, "From PCCL"):
        first, second = printed(program, [master.address], [master.address])
        assert first == second and np.allclose(json.loads(first), weights, rtol=1e-6)


def test_from_gloo_before_and_after_have_the_same_weights(master: Master) -> None:
    before, after = programs(MIGRATION, "From DDP over Gloo or NCCL")
    assert [line for line in after.splitlines() if line not in before.splitlines()] == [
        "import pccl.distributed", 'dist.init_process_group("pccl")'
    ]
    (one, other), (ours, theirs) = ([json.loads(said) for said in printed(program, [], [], master=master)] for program in (before, after))
    assert one == other and ours == theirs and np.allclose(one, ours, rtol=1e-5) and np.allclose(ours, 1, atol=0.01)


def test_from_torchft_replicas_with_other_data_have_the_same_model_of_all(master: Master) -> None:
    """torchft's own program cannot be run here; ours makes of both replicas' data what one process does of both."""
    first, second = printed(programs(MIGRATION, "From torchft")[1], [master.address, "1"], [master.address, "2"])
    assert first == second
    draws = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        model = torch.nn.Linear(4, 1)
        draws.append((model, [torch.randn(32, 4) for _ in range(50)]))
    found = torch.tensor(json.loads(first))
    expected = [trained(model, [torch.cat(pair) for pair in zip(draws[0][1], draws[1][1])]) for model, _ in draws]
    assert any(torch.allclose(found, weight, atol=1e-4) for weight in expected), (found, expected)


def trained(model: torch.nn.Module, batches: "list[torch.Tensor]") -> torch.Tensor:
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
    for x in batches:
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(x), x.sum(1, keepdim=True)).backward()
        optimizer.step()
    return model.weight.detach()


def test_from_multiworld_before_and_after_receive_the_same(master: Master, tmp_path: pathlib.Path) -> None:
    """With the ports of all worlds replaced by that of one master."""
    before, after = (re.sub(r"\b\d{5}\b", str(master.port), program) for program in programs(MIGRATION, "From MultiWorld"))
    assert before.count(str(master.port)) == after.count(str(master.port)) == 2
    sent = [f"{world} {number}.0" for world in ("world1", "world2") for number in range(3)]
    unchanged = tmp_path / "before.py"
    unchanged.write_text(before)
    command = ["--backend", "pccl", str(unchanged)]
    leader, *workers = printed("from pccl.multiworld.__main__ import main; main()", command, [*command, "world1"], [*command, "world2"])
    assert sorted(leader.splitlines()) == sent and workers == ["", ""]
    leader, *workers = printed(after, [], ["world1"], ["world2"])
    said = leader.splitlines()
    assert sorted(line for line in said if "broken" not in line) == sent and workers == ["", ""]
    assert sorted(line[:13] for line in said if "broken" in line) == ["world1 broken", "world2 broken"]


def test_what_the_page_imports_is_there() -> None:
    found = re.findall(r"`((?:from pccl[.\w]* )?import [.\w]+)`", (DOCUMENTS / MIGRATION).read_text())
    assert len(found) >= 4
    for statement in found:
        exec(statement, {})
