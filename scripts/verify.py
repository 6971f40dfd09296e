#!/usr/bin/env python3
"""verify.py [-j N] [TEXT] - runs the models in verify/ with spin: every line under "Must hold" and "Must be caught".

The lists are read from the models' own headers, so that they cannot differ from what is run.  A line that must hold
passes if the search ends without error and is complete; one that must be caught passes if an error is found.
With TEXT only lines that contain it.
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
HOLD, CAUGHT = "Must hold:", "Must be caught:"


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
    """(must hold, must be caught) of a model's header comment; lists stand side by side or one below the other."""
    lines = model.read_text().split("*/")[0].splitlines()
    lines = [re.sub(r"^ \*", "  ", line) for line in lines]
    start = next(i for i, line in enumerate(lines) if HOLD in line)
    column = lines[start].find(CAUGHT)
    if column >= 0:  # side by side; entries of the right column start at its heading or up to two places further
        body = lines[start + 1:]
        return column_entries(line[:column] for line in body), column_entries(line[column:] for line in body)
    middle = next(i for i, line in enumerate(lines) if CAUGHT in line)
    hold = []
    for line in lines[start + 1:middle]:
        hold += [cell.strip() for cell in re.split(r"\s{3,}", line) if cell.strip().startswith("-D")]
    return hold, column_entries(lines[middle + 1:])


def run_one(job):
    model, options, must_hold = job
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as work:
        def run(*command):
            return subprocess.run(command, cwd=work, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True).stdout
        run("spin", *options.split(), "-a", str(model))
        run("gcc", "-O2", "-w", "-DSAFETY", "-DCOLLAPSE", f"-DMEMLIM={LIMIT_MB}", "-o", "pan", "pan.c")
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
    parser.add_argument("text", nargs="?", default="")
    args = parser.parse_args()
    jobs = []
    for model in sorted((ROOT / "verify").glob("*.pml")):
        hold, caught = read_lists(model)
        jobs += [(model, options, True) for options in hold] + [(model, options, False) for options in caught]
    jobs = [job for job in jobs if args.text in job[0].name + " " + job[1]]
    if args.list:
        for model, options, must_hold in jobs:
            print(model.name, "holds " if must_hold else "caught", options)
        return 0
    with ThreadPoolExecutor(args.j) as pool:
        results = list(pool.map(run_one, jobs))
    passed = sum(results)
    print(f"{passed} passed, {len(results) - passed} failed")
    return passed != len(results) or not results


if __name__ == "__main__":
    sys.exit(main())
