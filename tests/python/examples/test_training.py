"""The examples of training as a person runs them, in short forms: the loss falls, who is killed and who joins is said, no step is lost,
and all who are left have the same bits in the end."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import pathlib
import re
from typing import NamedTuple

import pytest
from support.master import Master
from support.multiworld import Child, Children, run_script

EXAMPLES = pathlib.Path(__file__).parents[3] / "examples" / "python" / "training"


def start(children: Children, name: str, *arguments: object, plot: object = "") -> Child:
    return children.start(run_script, str(EXAMPLES / name), [str(argument) for argument in (*arguments, "--plot", plot)])


class End(NamedTuple):
    """What a process says last."""

    who: str
    first: int
    last: int
    made: int
    again: int
    digest: str


class Run:
    """What a launcher that came to its end has printed."""

    def __init__(self, launcher: Child, unit: str) -> None:
        assert launcher.join() == 0, launcher.text()
        self.text = "\n".join(line for _, line in launcher.lines)
        self.steps = {
            int(found[1]): (int(found[2]), float(found[3]))
            for found in re.finditer(rf"^{unit} (\d+): (\d+) \w+, loss (\d+\.\d+), [\d,]+ \w+/s", self.text, re.M)
        }
        pattern = rf"^(.+): {unit}s (\d+) to (\d+): (\d+) made, (\d+) begun again; parameters ([0-9a-f]{{12}})$"
        self.ends = [End(found[1], *map(int, found.groups()[1:5]), found[6]) for found in re.finditer(pattern, self.text, re.M)]
        assert all(end.made == end.last - end.first + 1 for end in self.ends)

    def says(self, pattern: str, times: int = 1) -> "re.Match[str]":
        found = list(re.finditer(pattern, self.text, re.M))
        assert len(found) == times, f"{pattern!r} is said {len(found)} times:\n{self.text}"
        return found[-1]

    def peers(self) -> list[int]:
        """Of each step, which are all there."""
        assert sorted(self.steps) == list(range(len(self.steps))), self.text
        return [peers for peers, _ in (self.steps[step] for step in sorted(self.steps))]

    def loss(self, of: slice) -> float:
        """The mean over some steps."""
        losses = [self.steps[step][1] for step in sorted(self.steps)][of]
        return sum(losses) / len(losses)

    def whole(self, who: list[str], steps: int, joined_at: int) -> None:
        """Those who are left are these, with the same bits; all but the last from the beginning to the end; nobody began a step again."""
        assert [end.who for end in self.ends] == who, self.text
        assert {end.last for end in self.ends} == {steps - 1} and {end.again for end in self.ends} == {0}
        assert [end.first for end in self.ends] == [0] * (len(who) - 1) + [joined_at]
        [digest] = {end.digest for end in self.ends}
        self.says(f"all {len(who)} have the same parameters, to the bit: {digest}$")


def test_digits(children: Children) -> None:
    pytest.importorskip("sklearn")
    run = Run(start(children, "digits.py", "--steps", 120, "--kill-at", 40, "--join-at", 80, "--every", 1), "step")
    assert run.peers() == [3] * 40 + [2] * 41 + [3] * 39
    run.whole(["peer 0", "peer 1", "peer 3"], 120, 81)
    assert run.loss(slice(3)) > 2.1 and run.loss(slice(-10, None)) < 0.35
    assert float(run.says(r"^of 360 other images (\d+\.\d)% are read rightly$")[1]) > 88
    run.says(r"^peer 2 is killed inside of step 40$")
    run.says(r"^the peer at .* has gone, 2 peers from step 41 on$")
    run.says(r"^peer 3 is started$")
    run.says(r"^the peer at .* has come, 3 peers from step 81 on$")
    run.says(r"^  a: peer 2 is killed inside of step 40$")  # below the chart
    run.says(r"^loss over steps: \* loss$")


def test_peers_that_are_started_by_hand(master: Master, children: Children) -> None:
    """Each in a terminal of its own, against a master that runs; each prints the loss, and its chart."""
    pytest.importorskip("sklearn")
    peers = [start(children, "digits.py", "--at", master.address, "--peers", 2, "--steps", 30, "--every", 10) for _ in range(2)]
    texts = []
    for peer in peers:
        assert peer.join() == 0, peer.text()
        texts.append(peer.text())
    for text in texts:
        assert "step 10: 2 peers, loss" in text and "+-----" in text
    [digest] = {re.search(r"^steps 0 to 29: 30 made, 0 begun again; parameters (\w+)$", text, re.M)[1] for text in texts}


def test_the_chart_has_a_second_run_without_kill_and_newcomer(children: Children, tmp_path: pathlib.Path) -> None:
    pytest.importorskip("sklearn")
    pytest.importorskip("matplotlib")
    path = tmp_path / "both.svg"
    launcher = start(children, "digits.py", "--steps", 24, "--every", 24, plot=path)
    assert launcher.join() == 0, launcher.text()
    text = launcher.text()
    assert len(re.findall("24 steps in .* all 3 have the same parameters, to the bit", text)) == 2 and text.count("is killed") == 2, text
    drawn = path.read_text()  # matplotlib writes what each of its paths shows as a comment
    for words in ("loss over steps", "time per step", "seconds", "disturbed", "undisturbed", "peer 2 is killed inside of step 8"):
        assert f"<!-- {words} -->" in drawn, words


def test_what_cannot_be_done_is_said(children: Children) -> None:
    launcher = start(children, "digits.py", "--peers", 2, "--steps", 30, "--kill-at", 10)
    assert launcher.join() == 2
    assert "need at least 3 peers of 2" in launcher.text()
    assert start(children, "digits.py", "--every", 0).join() == 2  # the launcher divides by it


def test_a_gpt_under_distributed_data_parallel(children: Children) -> None:
    run = Run(start(children, "gpt_ddp.py", "--steps", 45, "--kill-at", 15, "--join-at", 30, "--every", 1), "step")
    assert run.peers() == [3] * 15 + [2] * 15 + [3] * 15
    ends = [("peer 0", 0, 44, 1), ("peer 1", 0, 44, 1), ("peer 2", 30, 44, 0)]
    assert [(end.who, end.first, end.last, end.again) for end in run.ends] == ends
    run.says(f"all 3 have the same parameters, to the bit: {run.ends[0].digest}$")
    assert run.loss(slice(1)) > 4.3 and run.loss(slice(-5, None)) < 3.2
    run.says(r"^peer 2 is killed inside of step 15$")
    run.says(r"^a rank is lost, 2 ranks repeat step 15$")
    run.says(r"^peer 2 \(new\) is started$")
    run.says(r"^a rank has come, 3 ranks from step 30 on$")


@pytest.mark.parametrize("more", [[], ["--quantize"]], ids=["plain", "quantised"])
def test_diloco(more: list[str], children: Children) -> None:
    arguments = ["--rounds", 9, "--inner", 6, "--kill-at", 3, "--join-at", 6, *more]
    run = Run(start(children, "diloco.py", *arguments), "round")
    assert run.peers() == [3] * 3 + [2] * 4 + [3] * 2
    run.whole(["peer 0", "peer 1", "peer 3"], 9, 7)
    assert run.loss(slice(1)) > 3.8 and run.loss(slice(-2, None)) < 3.3
    run.says(r"^peer 2 is killed inside of round 3$")
    run.says(r"^the peer at .* has gone, 2 peers from round 4 on$")
    run.says(r"^the peer at .* has come, 3 peers from round 7 on$")
    parameters = 96 * 64 * 2 + 64 * 64 + 2 * (12 * 64 * 64 + 9 * 64) + 2 * 64  # of the GPT
    sent = float(run.says(r"^round 5: 2 peers, .*, ([\d,]+) KB sent$")[1].replace(",", ""))
    whole = 4 * parameters / 1e3  # of two peers each sends as many bytes as the weights have
    assert sent == pytest.approx(whole * (0.26 if more else 1), rel=0.03)


def test_diloco_that_does_not_wait(children: Children) -> None:
    run = Run(start(children, "diloco_async.py", "--rounds", 9, "--inner", 6, "--kill-at", 3, "--join-at", 6), "round")
    assert run.peers() == [3] * 3 + [2] * 4 + [3] * 2
    run.whole(["peer 0", "peer 1", "peer 3"], 9, 7)
    assert run.loss(slice(1)) > 3.8 and run.loss(slice(-2, None)) < 3.3
    run.says(r"^peer 2 is killed inside of round 3$")
    run.says(r"^peer 3 is started$")
    received = run.says(r"^peer 3: has received ([\d,]+) KB, and sent none$")
    assert int(received[1].replace(",", "")) > 900  # weights and moments of the outer loop
    assert len(re.findall(r"all-reduce \d+ ms of which \d+ ms waited for", run.text)) == 9


def test_diloco_between_sites_of_fsdp(children: Children) -> None:
    run = Run(start(children, "diloco_fsdp.py", "--rounds", 6, "--inner", 3, "--kill-at", 2, "--join-at", 4), "round")
    assert run.peers() == [3] * 2 + [2] * 3 + [3]
    who = [f"site {site}.{shard}" for site in (0, 1, 3) for shard in (0, 1)]
    assert [(end.who, end.first, end.last, end.again) for end in run.ends] == [(name, 5 if "3." in name else 0, 5, 0) for name in who]
    run.says(f"all 6 have the same parameters, to the bit: {run.ends[0].digest}$")
    assert run.loss(slice(1)) > 4.0 and run.loss(slice(-1, None)) < 3.6
    run.says(r"^site 2.1 is killed inside of round 2$")
    run.says(r"^site 2.0: leaves the run: ")
    run.says(r"^the peer at .* has gone, 2 sites from round 3 on$", 2)
    run.says(r"^the peer at .* has come, 3 sites from round 5 on$", 2)
