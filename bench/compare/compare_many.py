#!/usr/bin/env python3
"""compare_many.py BUILD [--rounds N] [--ranks 2,4] - a thousand tensors at once: ours (bench_many.c) beside Gloo (many_gloo.py).

Each round starts each implementation once for each number of processes, in turns; a figure is the median over the rounds of what a
start says, which is a median itself, and a ratio the median of those within the rounds.  The limit of buckets is what their copies take
alone and what plain links take for as many bytes, which `pccl bench` measures in the same round.  Needs BUILD/bench/bench_many,
BUILD/bin/pccl and what compare.py has put into BUILD/bench-compare.  Prints a table (Markdown).
SPDX-License-Identifier: MIT
"""
import argparse
import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median

import compare

HERE = Path(__file__).resolve().parent
TIMES = 5  # in a start
LIMIT_S = 600  # Gloo among four on two cores has taken minutes
COPIES = "bucketed, copies alone"
OURS, OTHER = (("TCP", "tcp"), ("memory", "shm")), "Gloo"
LIMIT = "plain links and copies"
# Ours and what it is beside: who has many tensors gives Gloo buckets of them, and us all in one call.
PAIRS = (("each", "each"), ("bulk", "each"), ("bulk", "bucketed"), ("bucketed", "bucketed"), ("each, 4 KB", "each, 4 KB"),
         ("bulk, 4 KB", "each, 4 KB"))


def run(command, **environment):
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, env={**os.environ, **environment})
    if done.returncode != 0:
        sys.exit(f"compare_many: {' '.join(command)}: {done.stderr.strip()}")
    return done.stdout


def run_ours(build, ranks, transport):
    disable = "1" if transport == "tcp" else "0"
    output = run([str(build / "bench/bench_many"), str(ranks), str(TIMES)], PCCL_SHM_DISABLE=disable)
    results = {result["mode"]: result for result in map(json.loads, output.splitlines())}
    size = str(results["bucketed"]["bytes"])
    plain = json.loads(run([str(build / "bin/pccl"), "bench", "-n", str(ranks), "-b", size, "-e", size, "--transport", transport,
                            "--bind", "0", "--json", "-"]))
    least = min(result["limit_us"] for result in plain["results"]) + results[COPIES]["us"]
    results[LIMIT] = {"mode": LIMIT, "us": least, "wrong": plain["wrong"]}
    return list(results.values())


def run_gloo(python, cubic, ranks):
    port = compare.free_port()
    commands = [[str(python), str(HERE / "many_gloo.py"), str(r), str(ranks), str(port), str(TIMES)] for r in range(ranks)]
    lines, timely = compare.lines_of(commands, {"LD_PRELOAD": str(cubic)}, LIMIT_S)
    if not timely or not lines:
        sys.exit(f"compare_many: Gloo with {ranks} processes {'said nothing' if timely else f'took more than {LIMIT_S} s'}")
    return lines


def table(said, ranks):
    """said[ranks][who][mode] = [result, by round]"""
    print("| processes | tensors | ours, TCP | ours, memory | Gloo | TCP to Gloo | memory to Gloo | launch, TCP / memory / Gloo |")
    print("|---" * 8 + "|")
    notes = []
    for n in ranks:
        for mode, rival in PAIRS:
            ours = [said[n][who][mode] for who, _ in OURS]
            gloo = said[n][OTHER][rival]
            ms = [median(r["us"] for r in results) / 1e3 for results in (*ours, gloo)]
            ratios = [median(g["us"] / o["us"] for o, g in zip(results, gloo)) for results in ours]
            launches = [median(r["launch_us"] for r in results) for results in (*ours, gloo)]
            text = " / ".join(f"{us:.1f}" for us in launches) + " us" if min(launches) > 0 else ""
            name = f"{mode}, beside {rival}" if (mode, rival) == ("bulk", "bucketed") else mode
            cells = [str(n), name, *(f"{x:.4g} ms" for x in ms), *(f"{x:.1f}" for x in ratios), text]
            print(f"| {' | '.join(cells)} |".replace("|  |", "| |"))
        for who, _ in OURS:
            copies, least = (median(r["us"] for r in said[n][who][mode]) / 1e3 for mode in (COPIES, LIMIT))
            share = median(a["us"] / b["us"] for a, b in zip(said[n][who][LIMIT], said[n][who]["bucketed"]))
            most = median(g["us"] / a["us"] for a, g in zip(said[n][who][LIMIT], said[n][OTHER]["bucketed"]))
            notes.append(f"{n} processes, {who}: copies into and out of buckets {copies:.4g} ms, and plain links for as many bytes "
                         f"{least - copies:.4g} ms: bucketed is at {share:.0%} of both, which would be {most:.1f} times Gloo.")
    print("\n" + "\n".join(notes))


def main():
    parser = argparse.ArgumentParser(description="a thousand tensors at once, ours beside Gloo")
    parser.add_argument("build", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--ranks", default="2,4")
    options = parser.parse_args()
    build, ranks = options.build.resolve(), [int(n) for n in options.ranks.split(",")]
    folder = build / "bench-compare"
    folder.mkdir(parents=True, exist_ok=True)
    python = compare.get_torch(folder)
    cubic = compare.build(folder, "cc", "compare_cubic.c", "-shared", "-fPIC", "-o", "compare_cubic.so")
    if python is None or cubic is None:
        sys.exit("compare_many: there is nothing to compare with")
    said = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for number in range(options.rounds):
        for n in ranks:
            starts = [(who, lambda t=transport: run_ours(build, n, t)) for who, transport in OURS]
            starts.append((OTHER, lambda: run_gloo(python, cubic, n)))
            turn = number % len(starts)
            for who, start in starts[turn:] + starts[:turn]:
                for result in start():
                    said[n][who][result["mode"]].append(result)
                compare.say(f"round {number + 1} of {options.rounds}: a thousand tensors, {n} processes: {who}")
    wrong = sum(r["wrong"] for n in said.values() for who in n.values() for mode in who.values() for r in mode)
    table(said, ranks)
    print(f"\nWrong elements: {wrong}.")
    return wrong != 0


if __name__ == "__main__":
    sys.exit(main())
