#!/usr/bin/env python3
"""compare.py BUILD [--rounds N] [--other-rounds N] [--ranks 2,4] [--limit-s N] [--report] - ours beside Gloo, Open MPI, MPICH.

Each round starts every implementation once for each transport and number of processes, in an order that turns from round to
round; a figure is the median over the rounds, with the least and the most, and a ratio the median of the ratios within
the rounds: what other work on the machine takes, it takes from all of them.  All collectives are float, sum; sizes
count what the larger of input and output holds.  Rivals get TCP with cubic (compare_cubic.c), as ours takes it itself.

Needs BUILD/bin/pccl; builds the rivals' programs and gets torch into BUILD/bench-compare, where it also writes what was
said (raw.jsonl), a table (Markdown) and a plot (SVG).  What is not there is left out, and named.  --report: only writes
table and plot again from what was said.
SPDX-License-Identifier: MIT
"""
import argparse
import json
import os
import platform
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import compare_report

HERE = Path(__file__).resolve().parent
TORCH = "torch==2.13.0"
BUDGET_MS = 100
REDUCE_SIZES = [4 << (2 * i) for i in range(14)]            # 4 B to 256 MB
OTHER_SIZES = [65536 << (2 * i) for i in range(6)]          # 64 KB to 64 MB
OTHERS = ["broadcast", "reduce", "all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"]


def say(text):
    print(f"bench-compare: {text}", flush=True)


def build(folder, compiler, source, *flags):
    """The program or library, or None."""
    target = folder / flags[flags.index("-o") + 1]
    flags = [str(target) if f == target.name else f for f in flags]
    done = subprocess.run([compiler, "-O3", "-march=native", *flags, str(HERE / source)], capture_output=True, text=True)
    if done.returncode != 0:
        say(f"{compiler} {source}: {done.stderr.strip()}")
        return None
    return target


def get_torch(folder):
    """A Python that has torch, or None."""
    python = folder / "venv/bin/python"
    if subprocess.run([str(python), "-c", "import torch"], capture_output=True).returncode == 0 if python.exists() else False:
        return python
    say(f"getting {TORCH} into {folder}/venv: some hundred MB")
    for command in ([sys.executable, "-m", "venv", str(folder / "venv")],
                    [str(python), "-m", "pip", "install", "--quiet", TORCH, "numpy"]):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            say(f"{' '.join(command)}: {(done.stderr or done.stdout).strip()[-400:]}")
            return None
    return python


class Runner:
    """One implementation: how it is started; the lines of JSON that it says."""

    def __init__(self, name, transports, run):
        self.name, self.transports, self.run = name, transports, run


def lines_of(commands, environment, limit_s):
    """Runs the commands side by side; what the first says on standard output, whole lines only, until all end or time is up."""
    children, said = [], tempfile.TemporaryFile("w+")
    for i, command in enumerate(commands):
        children.append(subprocess.Popen(command, env={**os.environ, **environment}, text=True, start_new_session=True,
                                         stdout=said if i == 0 else subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    timely = False
    try:
        children[0].wait(timeout=limit_s)
        timely = True
    except subprocess.TimeoutExpired:
        pass
    finally:
        for child in children:
            if not timely:
                os.killpg(child.pid, signal.SIGKILL)  # the group is its own: started here
            child.wait()
    out = []
    said.seek(0)
    for line in said.read().splitlines():
        if line.startswith("{") and line.endswith("}"):
            out.append(json.loads(line))
    return out, timely


def jobs(part, in_place):
    if part == "all_reduce":
        names = ["all_reduce", "all_reduce_in_place"] if in_place else ["all_reduce"]
        return [f"{n}:{s}" for s in REDUCE_SIZES for n in names]
    return [f"{n}:{s}" for n in OTHERS for s in OTHER_SIZES]


def run_ours(build_folder):
    def run(part, transport, ranks, limit_s):
        sizes, calls = (REDUCE_SIZES, ["all_reduce"]) if part == "all_reduce" else (OTHER_SIZES, OTHERS)
        command = [str(build_folder / "bin/pccl"), "bench", *calls, "-n", str(ranks), "--transport", transport, "-b", str(sizes[0]),
                   "-e", str(sizes[-1]), "-f", "4", "--budget", str(BUDGET_MS), "-w", "3", "-a", "3", "--json", "-"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=20 * limit_s)
        if done.returncode != 0:
            say(f"ours failed: {done.stderr.strip()}")
            return [], True
        results = json.loads(done.stdout)["results"]
        for r in results:
            r["collective"] += "_in_place" if r["in_place"] else ""
        return results, True
    return run


def run_openmpi(program, cubic):
    def run(part, transport, ranks, limit_s):
        link = ["--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo", "-x", f"LD_PRELOAD={cubic}"] \
            if transport == "tcp" else ["--mca", "btl", "vader,self"]
        command = ["mpirun.openmpi", "-n", str(ranks), "--oversubscribe", "--mca", "pml", "ob1", *link, str(program),
                   str(BUDGET_MS), *jobs(part, True)]
        return lines_of([command], {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}, limit_s)
    return run


def run_mpich(program, cubic):
    def run(part, transport, ranks, limit_s):
        environment = {"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo", "LD_PRELOAD": str(cubic)} \
            if transport == "tcp" else {}
        command = ["mpirun.mpich", "-n", str(ranks), str(program), str(BUDGET_MS), *jobs(part, True)]
        return lines_of([command], environment, limit_s)
    return run


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run_gloo(python, cubic):
    def run(part, _transport, ranks, limit_s):
        port = free_port()
        commands = [[str(python), str(HERE / "compare_gloo.py"), str(r), str(ranks), str(port), str(BUDGET_MS), *jobs(part, False)]
                    for r in range(ranks)]
        return lines_of(commands, {"LD_PRELOAD": str(cubic)}, limit_s)
    return run


def implementations(build_folder, folder):
    """Those that are there; ours first."""
    out, missing = [Runner("pccl", ("tcp", "shm"), run_ours(build_folder))], []
    cubic = build(folder, "cc", "compare_cubic.c", "-shared", "-fPIC", "-o", "compare_cubic.so")
    for name, compiler, run, package in (("Open MPI", "mpicc.openmpi", run_openmpi, "openmpi-bin libopenmpi-dev"),
                                         ("MPICH", "mpicc.mpich", run_mpich, "mpich libmpich-dev")):
        program = build(folder, compiler, "compare_mpi.c", "-o", compiler[6:]) if shutil.which(compiler) else None
        if program is None:
            missing.append(f"{name} (apt-get install {package})")
        else:
            out.append(Runner(name, ("tcp", "shm"), run(program, cubic)))
    python = get_torch(folder)
    if python is None:
        missing.append(f"Gloo (pip install {TORCH})")
    else:
        out.append(Runner("Gloo", ("tcp",), run_gloo(python, cubic)))
    return out, missing


def machine():
    model = next((line.split(":", 1)[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.machine())
    return {"model": model, "cores": os.cpu_count(), "kernel": platform.release().split("-")[0],
            "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)}


def measure(runners, rounds, ranks, limit_s, raw):
    """rounds: of each part."""
    begin = time.time()
    for number in range(max(rounds.values())):
        for part in (p for p in rounds if number < rounds[p]):
            for transport in ("tcp", "shm"):
                for n in ranks:
                    here = [r for r in runners if transport in r.transports]
                    turn = number % len(here)
                    for runner in here[turn:] + here[:turn]:
                        load = os.getloadavg()[0]
                        results, timely = runner.run(part, transport, n, limit_s)
                        raw.write(json.dumps({"round": number, "part": part, "transport": transport, "ranks": n,
                                              "name": runner.name, "load": load, "timely": timely, "results": results}) + "\n")
                        raw.flush()
                        say(f"{time.time() - begin:5.0f} s: round {number + 1} of {rounds[part]}: {part}, {transport}, {n} processes: "
                            f"{runner.name}{'' if timely else ' took too long: the rest is left out'}")


def main():
    parser = argparse.ArgumentParser(description="ours beside Gloo, Open MPI and MPICH")
    parser.add_argument("build", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--other-rounds", type=int, default=3, help="of the collectives other than all-reduce")
    parser.add_argument("--ranks", default="2,4")
    parser.add_argument("--limit-s", type=float, default=60, help="for one start of a rival; what is missing then is left out")
    parser.add_argument("--report", action="store_true", help="write table and plot again from what was measured")
    options = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # and what was started ends, too
    folder = options.build.resolve() / "bench-compare"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "raw.jsonl"
    if not options.report:
        runners, missing = implementations(options.build.resolve(), folder)
        for what in missing:
            say(f"missing: {what}: the best rival is then the best of the others")
        with open(path, "w") as raw:
            raw.write(json.dumps({"machine": machine(), "date": time.strftime("%Y-%m-%d"), "missing": missing}) + "\n")
            measure(runners, {"all_reduce": options.rounds, "others": options.other_rounds}, [int(n) for n in options.ranks.split(",")], options.limit_s, raw)
    table, plot = (folder / "compare").with_suffix(".md"), folder / "compare.svg"
    compare_report.write(path, table, plot)
    say(f"written: {table} {plot}")


if __name__ == "__main__":
    main()
