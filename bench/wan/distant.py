#!/usr/bin/env python3
"""distant.py BUILD [--rounds N] [--rows NAME,...] [--try] [--report] - sums over an emulated wide area: ours beside plain sockets,
Gloo and Open MPI over TCP, each host under `pccl wan run` (distant_rows.py lists the rows).

A round of a row starts each implementation once, in an order that turns from round to round: a first call, then warm ones, of which the
first two are left out, and in some rows a call after a minute of rest.  A call lasts from its first start to its last end, by the clock
that all hosts share.  What the emulator calls void, since the machine was too busy, is repeated, twice at most.  All results are checked.

Needs BUILD/bin/pccl and BUILD/bench/distant_sums, distant_state and distant_sockets; builds the MPI program and gets torch as compare.py does.
Writes into BUILD/bench-wan what was said (JSON lines, a file per row), tables (Markdown, which it prints) and figures (JSON).
--try: each row small and short, which shows that it works and judges nothing.  --report: only writes tables and figures again.
SPDX-License-Identifier: MIT
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "compare"))
import compare  # noqa: E402
import distant_report  # noqa: E402
from distant_rows import FORCED, GLOO, MPI, OURS, RAW, ROWS  # noqa: E402

VOID, REPEATS, SLOTS, GRACE_S = 75, 2, 65, 10
TRY_BYTES, TRY_IDLE_S = 1 << 20, 2


def say(text):
    print(f"bench-wan: {text}", flush=True)


def tried(row):
    return replace(row, bytes=min(row.bytes, TRY_BYTES), calls=min(row.calls, 3), budget_s=5, idle_s=min(row.idle_s, TRY_IDLE_S), goals=())


def words_of(row):
    return [str(row.bytes), str(row.calls), str(row.budget_s), str(row.idle_s)]


class Lab:
    """Where things are, and what starts them."""

    def __init__(self, build, folder, python, mpi, congestion):
        self.build, self.folder, self.python, self.mpi, self.congestion = build, folder, python, mpi, congestion

    def has(self, name):
        return not (name == GLOO and self.python is None) and not (name == MPI and self.mpi is None)

    def network(self, row):
        return str(HERE / f"{row.network}.ini")

    def addresses(self, row):
        said = subprocess.run([self.build / "bin/pccl", "wan", "check", self.network(row)], capture_output=True, text=True, check=True).stdout
        lines = (line.split(": ", 1) for line in said.splitlines())
        return [rest.split(",")[0] for head, rest in lines if " to " not in head]

    def command(self, row, name):
        """The words that run on each host, and what their environment has."""
        preload = {"LD_PRELOAD": str(self.congestion)}
        if name in RAW:
            return [self.build / "bench/distant_sockets", *words_of(row), name.split()[1], row.congestion, str(row.turns), *self.addresses(row)], {}
        if name == GLOO:
            return ["env", *(f"{k}={v}" for k, v in preload.items()), self.python, HERE / "distant_gloo.py", *words_of(row)], {}
        if name == MPI:
            return [HERE / "distant_mpi.sh", "host", *self.addresses(row), "--", self.mpi, *words_of(row)], {
                "DISTANT_PRELOAD": str(self.congestion), "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        if row.state:
            return [self.build / "bench/distant_state", *words_of(row)], {}
        environment = {"PCCL_ALGO": f"allreduce:{name.split()[1]}"} if name in FORCED else {}
        if row.congestion != "bbr":
            environment["PCCL_TCP_CONGESTION"] = row.congestion
        return [self.build / "bench/distant_sums", *words_of(row), "1" if row.optimise else "0"], environment

    def once(self, row, name, limit_s):
        """What the ranks said, the emulator's report, the exit status (None: took too long) and the last words of an error."""
        with tempfile.TemporaryDirectory(prefix="bench-wan-") as meeting, tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
            meet, report = Path(meeting) / "meet", Path(meeting) / "report"
            meet.write_bytes(bytes(SLOTS))
            words, more = self.command(row, name)
            environment = {k: v for k, v in os.environ.items() if not k.startswith("PCCL_")}
            environment |= {"DISTANT_MEET": str(meet), "DISTANT_FOLDER": meeting, "COMPARE_CONGESTION": row.congestion, **more}
            command = [self.build / "bin/pccl", "wan", "run", self.network(row), "--json", report, "--", *words]
            child = subprocess.Popen([str(w) for w in command], env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err)
            status = ended(child, limit_s)
            out.seek(0)
            err.seek(0)
            lines = [line.split("] ", 1)[-1] for line in out.read().splitlines()]
            emulator = json.loads(report.read_text()) if report.exists() and report.stat().st_size > 0 else {}
            return [json.loads(line) for line in lines if line.startswith("{") and line.endswith("}")], emulator, status, complaint(err.read())


def ended(child, limit_s):
    """Its status; None: it took too long, and was ended."""
    try:
        return child.wait(timeout=limit_s)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if child.poll() is None:
            child.terminate()
            try:
                child.wait(timeout=GRACE_S)
            except subprocess.TimeoutExpired:
                child.kill()  # which leaves no host behind
                child.wait()


def complaint(text):
    """The last line that a host has said, or the emulator."""
    lines = [line for line in reversed(text.splitlines()) if line.startswith(("[", "pccl wan: ")) and not line.endswith("---")]
    return next((line for line in lines if line.startswith("[")), lines[0] if lines else "")[:300]


def run(lab, row, name, limit_s):
    """One implementation, repeated while the emulator calls it void; what it says for the record."""
    for repeat in range(REPEATS + 1):
        load = os.getloadavg()[0]
        said, emulator, status, error = lab.once(row, name, limit_s)
        if status != VOID:
            break
    return {"name": name, "load": load, "repeats": repeat, "status": status, "void": status == VOID, "late_percent": emulator.get("late_percent"),
            "error": "" if status in (0, VOID) else error, "said": [] if status == VOID else said}


def outcome(record):
    if record["void"]:
        return f"void {record['repeats'] + 1} times: left out"
    if record["status"] is None:
        return "took too long: only whole calls count"
    again = f", {record['repeats']} times void before" if record["repeats"] > 0 else ""
    return f"{'done' if record['status'] == 0 else 'FAILED: ' + (record['error'] or str(record['status']))}{again}"


def measure(lab, row, rounds, limit_s, head, path):
    names = [n for n in row.names if lab.has(n)]
    with open(path, "w") as raw:
        raw.write(json.dumps(head) + "\n")
        for number in range(rounds):
            turn = number % len(names)
            for name in names[turn:] + names[:turn]:
                begin = time.time()
                record = run(lab, row, name, limit_s)
                raw.write(json.dumps({"round": number, **record}) + "\n")
                raw.flush()
                say(f"{row.name}: round {number + 1} of {rounds}: {name}: {time.time() - begin:.0f} s, {outcome(record)}")


def try_emulator(build):
    done = subprocess.run([build / "bin/pccl", "wan", "run", HERE / "pair.ini", "--", "true"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode not in (0, VOID):
        sys.exit(f"bench-wan: there can be no emulator: {complaint(done.stderr)}")


def get_lab(build):
    """The lab, and what is missing for it."""
    try_emulator(build)
    folder, rivals, missing = build / "bench-wan", build / "bench-compare", []
    folder.mkdir(parents=True, exist_ok=True)
    rivals.mkdir(parents=True, exist_ok=True)
    congestion = compare.build(rivals, "cc", "compare_cubic.c", "-shared", "-fPIC", "-o", "compare_cubic.so")
    mpi = compare.build(folder, "mpicc.openmpi", HERE / "distant_mpi.c", "-o", "distant_mpi") \
        if shutil.which("mpicc.openmpi") and shutil.which("mpirun.openmpi") else None
    if mpi is None:
        missing.append(f"{MPI} (apt-get install openmpi-bin libopenmpi-dev)")
    python = compare.get_torch(rivals)
    if python is None:
        missing.append(f"{GLOO} (pip install {compare.TORCH})")
    return Lab(build, folder, python, mpi, congestion), missing


def chosen(text):
    """The rows of those names; all without names."""
    known = {row.name: row for row in ROWS}
    names = text.split(",") if text else list(known)
    for name in names:
        if name not in known:
            sys.exit(f"bench-wan: there is no row '{name}': give some of {','.join(known)}")
    return [known[name] for name in names]


def left_out(text):
    """The implementations of those names, which are not measured."""
    names = [name for name in text.split(",") if name]
    known = sorted({name for row in ROWS for name in row.names if name != OURS})
    for name in names:
        if name not in known:
            sys.exit(f"bench-wan: --without: there is no '{name}': give some of {','.join(known)}")
    return names


def duration(seconds):
    return f"{seconds / 60:.0f} minutes" if seconds < 7200 else f"{seconds / 3600:.1f} hours"


def main():
    parser = argparse.ArgumentParser(description="sums over an emulated wide area: ours beside plain sockets, Gloo and Open MPI")
    parser.add_argument("build", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", default="", help=f"of {', '.join(row.name for row in ROWS)}; all by default")
    parser.add_argument("--without", default="", help="implementations that are not measured, such as 'raw 64,Gloo'")
    parser.add_argument("--limit-s", type=float, default=300, help="for one start of an implementation")
    parser.add_argument("--try", dest="short", action="store_true", help="each row small and short: whether it works")
    parser.add_argument("--report", action="store_true", help="write tables and figures again from what was measured")
    options = parser.parse_args()
    if options.rounds < 1:
        sys.exit(f"bench-wan: --rounds {options.rounds}: give 1 or more")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # and what was started ends, too
    rows, build, without = chosen(options.rows), options.build.resolve(), left_out(options.without)
    folder = build / "bench-wan"
    if not options.report:
        lab, missing = get_lab(build)
        for what in missing:
            say(f"missing: {what}: it is left out")
        seconds = sum(10 * len(row.names) if options.short else row.seconds for row in rows) * options.rounds
        say(f"{len(rows)} rows, {options.rounds} rounds: about {duration(seconds)}")
        head = {"machine": compare.machine(), "date": time.strftime("%Y-%m-%d"), "missing": missing, "tried": options.short}
        for row in rows:
            used = tried(row) if options.short else row
            used = replace(used, names=tuple(name for name in used.names if name not in without))
            more = {"world": len(lab.addresses(row)), "bytes": used.bytes}
            measure(lab, used, options.rounds, options.limit_s, head | more, folder / f"{row.name}.jsonl")
    rows = [row for row in rows if (folder / f"{row.name}.jsonl").exists()]
    if not rows:
        sys.exit("bench-wan: nothing was measured yet: run it without --report")
    data = [distant_report.Data(row, folder / f"{row.name}.jsonl") for row in rows]
    text = distant_report.text(data)
    tables, figures = (folder / "distant").with_suffix(".md"), folder / "distant.json"
    tables.write_text(text)
    figures.write_text(json.dumps(distant_report.figures(data), indent=1) + "\n")
    print(text)
    say(f"written: {tables} {figures}")


if __name__ == "__main__":
    main()
