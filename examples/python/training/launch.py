"""Options and launcher of the training examples: a master and all peers by one command, or one peer in a terminal of its own.

    python digits.py                             starts all, kills one, has one join, draws loss and time per step
    python digits.py --at HOST:48148             is one peer, of the run of a ccoip_master there

Peers are forked, so that torch is imported once.  The launcher prints what they report, and checks at the end that all peers that are
left have the same bits.  If matplotlib is installed it then runs the example again without a kill and a newcomer, and draws both runs.
"""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import argparse
import multiprocessing
import multiprocessing.connection
import os
import pathlib
import signal
import socket
import sys
import threading
import time
from typing import Any, Callable, Optional

import torch
from chart import Chart, can_draw, draw
from report import Plan, Report, say

from pccl.engine.bootstrap import spawn_master

Peer = Callable[[argparse.Namespace, Report], None]
_fork = multiprocessing.get_context("fork")


def one_or_more(text: str) -> int:
    """A number of an option."""
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is below 1")
    return int(text)


def parser_of(
    text: Optional[str], unit: str, what: str, *, peers: int, steps: int, every: int, several: str = "peers"
) -> argparse.ArgumentParser:
    """The options that all examples have; `several` is what stands for peers where each of them is more than one process."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.set_defaults(unit=unit, what=what, several=several, replaces=False)
    parser.add_argument(f"--{several}", dest="peers", type=int, default=peers, help=f"to begin with ({peers})")
    parser.add_argument(f"--{unit}s", dest="steps", type=int, default=steps, help=f"in all ({steps})")
    parser.add_argument("--kill-at", type=int, metavar="N", help=f"the last of them is killed inside of {unit} N (a third); 0: none is")
    parser.add_argument("--join-at", type=int, metavar="N", help=f"another one joins at {unit} N (two thirds); 0: none does")
    parser.add_argument("--seed", type=int, default=0, help="of weights and of the order of the data (0)")
    parser.add_argument("--every", type=one_or_more, default=every, metavar="N", help=f"prints each N-th {unit} ({every})")
    plot = f"{pathlib.Path(sys.argv[0]).stem}.png"
    parser.add_argument("--plot", default=plot, metavar="FILE", help="the launcher's charts, if matplotlib is installed; empty: none")
    parser.add_argument(
        "--undisturbed", action=argparse.BooleanOptionalAction, default=True, help="run it again undisturbed for the charts (yes)"
    )
    parser.add_argument("--at", dest="master", metavar="HOST:PORT", help="be one peer of the run of that master; without it all are started here")
    return parser


def run(options: argparse.Namespace, peer: Peer, width: int = 1) -> int:
    """Calls `peer` once, or in processes that are started and killed by plan; returns the exit status.

    A peer may be a site of `width` processes that come and go together: then they have the variables that torchrun sets.
    """
    options.joins, options.number = False, None
    torch.set_num_threads(1)  # models are small, and peers may have one host
    if options.master is not None:
        peer(options, Report(options))
        return 0
    if options.kill_at is None:
        options.kill_at = options.steps // 3
    if options.join_at is None:
        options.join_at = 2 * options.steps // 3
    least = 3 if options.kill_at else 2
    if options.peers < least or min(options.kill_at, options.join_at) < 0 or max(options.kill_at, options.join_at) >= options.steps:
        say(f"--kill-at {options.kill_at} and --join-at {options.join_at} need at least {least} {options.several} of {options.peers}, "
            f"and to be below the {options.steps} {options.unit}s that there are; pass others, or 0")
        return 2
    disturbed = options.kill_at != 0 or options.join_at != 0
    charts = _Charts(options.unit)
    status = _launch(options, peer, width, charts.run("disturbed" if disturbed else "run"))
    drawn = options.plot != "" and can_draw()
    if status == 0 and drawn and options.undisturbed and disturbed:
        say("the same again, undisturbed, for the chart")
        options.kill_at = options.join_at = 0
        status = _launch(options, peer, width, charts.run("undisturbed"))
    if status == 0 and drawn:
        draw(options.plot, [charts.loss, charts.time])
        say(f"loss and time per {options.unit} are in {options.plot}")
    return status


def _launch(options: argparse.Namespace, peer: Peer, width: int, charts: _RunCharts) -> int:
    launcher = _Launcher(options, peer, width, charts)
    try:
        return launcher.run()
    except KeyboardInterrupt:
        return 130
    finally:
        launcher.end_all()  # processes that have ended do not notice; the others would be waited for


class _Charts:
    """What is drawn of all runs: the loss, and the time from one step to the next."""

    def __init__(self, unit: str) -> None:
        self.loss = Chart(f"loss over {unit}s", unit, "loss")
        self.time = Chart(f"time per {unit}", unit, "seconds", log=True)

    def run(self, name: str) -> _RunCharts:
        return _RunCharts(self, name)


class _RunCharts:
    """One run's curves of these charts; `own` has the loss of this run alone."""

    def __init__(self, charts: _Charts, name: str) -> None:
        self.charts = charts
        self.name = name
        self.own = Chart(charts.loss.title, charts.loss.x_name, charts.loss.y_name)
        self.last: Optional[float] = None

    def step(self, step: int, loss: float) -> None:
        now = time.monotonic()
        self.own.point("loss", step, loss)
        self.charts.loss.point(self.name, step, loss)
        if self.last is not None:
            self.charts.time.point(self.name, step, now - self.last)
        self.last = now

    def mark(self, step: int, text: str) -> None:
        for chart in (self.own, self.charts.loss, self.charts.time):
            chart.mark(step, text)


class _Process:
    """One that was started: which peer it is of, its end of the pipe, and what it said in the end."""

    def __init__(self, launcher: "_Launcher", peer: int, part: int, plan: Plan, joins: bool, environment: dict[str, str]) -> None:
        self.peer = peer
        self.plan = plan
        self.name = f"{launcher.options.several.removesuffix('s')} {peer}" + (f".{part}" if launcher.width > 1 else "")
        self.pipe, there = _fork.Pipe()
        self.expected = 0  # its exit status
        self.said: Optional[tuple[Any, ...]] = None
        self.process = _fork.Process(target=self._body, args=(launcher, there, plan, joins, environment))
        self.process.start()
        there.close()

    def _body(self, launcher: "_Launcher", pipe: Any, plan: Plan, joins: bool, environment: dict[str, str]) -> None:
        for other in launcher.processes:
            other.pipe.close()
        self.pipe.close()
        os.environ.update(environment)
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the launcher's
        threading.Thread(target=_end_with_the_launcher, args=(pipe,), daemon=True).start()
        options = launcher.options
        options.joins = joins
        options.number = self.peer
        launcher.peer(options, Report(options, pipe, plan))


class _Launcher:
    def __init__(self, options: argparse.Namespace, peer: Peer, width: int, charts: _RunCharts) -> None:
        self.options = options
        self.peer = peer
        self.width = width
        self.charts = charts
        self.processes: list[_Process] = []
        self.seen = -1        # the last step that somebody was through with
        self.joined = False
        self.said: set[str] = set()  # of what all peers say alike
        self.status = 0

    def run(self) -> int:
        options = self.options
        options.master = spawn_master("127.0.0.1")
        began = time.monotonic()
        for number in range(options.peers):
            self.start(number, Plan(options.kill_at if number == options.peers - 1 else 0, options.join_at))
        open_pipes = {process.pipe: process for process in self.processes}
        while open_pipes:
            for pipe in multiprocessing.connection.wait(list(open_pipes)):
                process = open_pipes[pipe]
                try:
                    self.hear(process, *process.pipe.recv())
                except (EOFError, ConnectionResetError):
                    del open_pipes[pipe]
                    self.ended(process)
                else:
                    open_pipes.update({new.pipe: new for new in self.processes if not new.pipe.closed and new.pipe not in open_pipes})
        return self.conclude(time.monotonic() - began)

    def start(self, number: int, plan: Plan, joins: bool = False) -> None:
        """A peer, with all of its processes."""
        environments: list[dict[str, str]] = [{}]
        if self.width > 1:
            port = _free_port()
            common = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(self.width), "PCCL_MASTER": self.options.master}
            environments = [{**common, "RANK": str(rank)} for rank in range(self.width)]
        for part, environment in enumerate(environments):
            victim = plan.kill_at if part == self.width - 1 else 0
            self.processes.append(_Process(self, number, part, Plan(victim, plan.join_at), joins, environment))

    def hear(self, process: _Process, kind: str, *news: Any) -> None:
        getattr(self, f"hear_{kind}")(process, *news)

    def hear_victim(self, process: _Process, step: int) -> None:
        """It is inside of the step in which it is to be killed."""
        self.tell(step, f"{process.name} is killed inside of {self.options.unit} {step}")
        for each in self.processes:
            if each.peer == process.peer:
                each.expected = -signal.SIGKILL if each is process else 1
        process.process.kill()

    def hear_host(self, process: _Process, step: int) -> None:
        """It waits for a newcomer."""
        options = self.options
        if not self.joined:
            self.joined = True
            number = options.peers - options.replaces
            self.tell(step, f"{options.several.removesuffix('s')} {number}{' (new)' if options.replaces else ''} is started")
            self.start(number, Plan(), joins=True)

    def hear_event(self, process: _Process, step: int, text: str, all_say_so: bool) -> None:
        if not all_say_so:
            say(f"{process.name}: {text}")
        elif text not in self.said:
            self.said.add(text)
            say(text)

    def hear_step(self, process: _Process, step: int, peers: int, loss: float, line: str) -> None:
        if step <= self.seen:
            return  # another one has said so
        self.seen = step
        self.charts.step(step, loss)
        if step % self.options.every == 0 or step == self.options.steps - 1:
            say(line)

    def hear_end(self, process: _Process, *news: Any) -> None:
        process.said = news

    def tell(self, step: int, text: str) -> None:
        say(text)
        self.charts.mark(step, text)

    def ended(self, process: _Process) -> None:
        process.process.join()
        process.pipe.close()
        if process.process.exitcode != process.expected and not self.status:
            say(f"{process.name}: exit status {process.process.exitcode}")
            self.status = 1
            self.end_all()  # they might wait for it

    def end_all(self) -> None:
        for process in self.processes:
            process.process.terminate()

    def conclude(self, seconds: float) -> int:
        done = [process for process in self.processes if process.said is not None]
        for process in done:
            say(f"{process.name}: {process.said[3]}")
        if not done or self.status:
            say("FAILED: not all peers came to the end")
            return 1
        text = done[0].said[4]
        if text:
            say(text)
        say(self.charts.own.text())
        digits = {process.said[2] for process in done}
        if len(digits) > 1 or len({process.said[1] for process in done}) > 1:
            say(f"FAILED: parameters or {self.options.unit}s differ")
            return 1
        say(f"{self.options.steps} {self.options.unit}s in {seconds:.1f} s; all {len(done)} have the same parameters, to the bit: {digits.pop()}")
        return 0


def _end_with_the_launcher(pipe: Any) -> None:
    """Nothing is ever sent to a peer."""
    try:
        pipe.recv()
    except (EOFError, OSError):
        os._exit(1)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
