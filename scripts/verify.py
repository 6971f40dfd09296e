#!/usr/bin/env python3
"""verify.py [-j N] [--quick] [TEXT] - runs the models in verify/ with spin: every line under "Must hold" and "Must be caught".

The lists are read from the models' own headers, so that they cannot differ from what is run.  A line that must hold
passes if the search ends without error and is complete; one that must be caught passes if an error is found.
With TEXT only lines that contain it; with --quick all that must be caught and of those that must hold the first of each list,
which is one of a small search: a minute on two cores.  What is left out is named.
SPDX-License-Identifier: MIT
"""
import argparse
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DEPTH = 400000  # of the search, in steps
LIMIT_MB = 6000  # of memory for one search
HOLD, CAUGHT = "Must hold", "Must be caught"


def column_entries(lines):
    """The options of each entry of a column; an entry indented deeper than the first continues the one before."""
    entries, indent = [], None
    for line in lines:
        cell = re.match(r"\s*(-D\S+(?: -D\S+)*)", line)
        if not cell:
            continue
        depth = len(line) - len(line.lstrip())
        indent = depth if indent is None else indent
        if depth > indent and entries:
            entries[-1] += " " + cell.group(1)
        else:
            entries.append(cell.group(1))
    return entries


def read_lists(model):
    """(must hold, must be caught, the first of each list that must hold) of a model's header comment; it may have several lists.

    A list begins at its heading and ends at the next one.  Two whose headings share a line stand side by side; a list
    that must hold and stands alone has entries in any number of columns, one that must be caught an entry on each line.
    """
    lines = model.read_text().split("*/")[0].splitlines()
    lines = [re.sub(r"^ \*", "  ", line) for line in lines]
    heads = [i for i, line in enumerate(lines) if HOLD in line or CAUGHT in line] + [len(lines)]
    hold, caught, first = [], [], []
    for head, end in zip(heads, heads[1:]):
        body, column, held = lines[head + 1:end], lines[head].find(CAUGHT), len(hold)
        if HOLD not in lines[head]:
            caught += column_entries(body)
        elif column >= 0:  # entries of the right column start at its heading or up to two places further
            hold += column_entries(line[:column] for line in body)
            caught += column_entries(line[column:] for line in body)
        else:
            for line in body:
                hold += [cell.strip() for cell in re.split(r"\s{3,}", line) if cell.strip().startswith("-D")]
        first += hold[held:held + 1]
    return hold, caught, first


def quick_compiler():
    """Of small searches the compiler is what takes the time: clang needs half of gcc's."""
    found = subprocess.run([ROOT / "scripts/clang.sh"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return [found.stdout.strip() if found.returncode == 0 else "gcc", "-O0"]


def run_one(job, small):
    model, options, must_hold, quick = job
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as work:
        def run(*command):
            return subprocess.run(command, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
        run("spin", *options.split(), "-a", str(model))
        run(*(small if quick else ("gcc", "-O2")), "-w", "-DSAFETY", "-DCOLLAPSE", f"-DMEMLIM={LIMIT_MB}", "-o", "pan", "pan.c")
        out = run("./pan", f"-m{DEPTH}")
    errors = re.search(r"errors: (\d+)", out)
    complete = "Search not completed" not in out and "max search depth too small" not in out
    if errors is None:
        result = "did not run: " + out.strip()[-300:]
    elif int(errors.group(1)):
        result = "caught"
    else:
        result = "holds" if complete else "search not complete"
    good = result == ("holds" if must_hold else "caught")
    print(f"{'PASS' if good else 'FAIL'} {model.name:16} {result:8} {time.monotonic() - begin:6.1f} s  {options}", flush=True)
    return good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("-j", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="print the lines, run nothing")
    parser.add_argument("--quick", action="store_true", help="run what is over soon, name the rest")
    parser.add_argument("text", nargs="?", default="")
    args = parser.parse_args()
    jobs = []
    for model in sorted((ROOT / "verify").glob("*.pml")):
        hold, caught, first = read_lists(model)
        jobs += [(model, options, True, options in first) for options in hold] + [(model, options, False, True) for options in caught]
    jobs = [job for job in jobs if args.text in job[0].name + " " + job[1]]
    left_out = [job for job in jobs if args.quick and not job[3]]
    jobs = [job for job in jobs if job not in left_out]
    if args.list:
        for model, options, must_hold, _ in jobs:
            print(model.name, "holds " if must_hold else "caught", options)
        return 0
    for model, options, *_ in left_out:
        print(f"NOT RUN {model.name:13} {options}")
    small = quick_compiler()
    with ThreadPoolExecutor(args.j) as pool:
        results = list(pool.map(lambda job: run_one(job, small), jobs))
    passed = sum(results)
    print(f"{passed} passed, {len(results) - passed} failed")
    return passed != len(results) or not results


if __name__ == "__main__":
    sys.exit(main())
