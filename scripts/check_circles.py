#!/usr/bin/env python3
"""check_circles.py BUILD [SOURCE] - no files of a folder call each other in a circle, and no rooms of a layer do.

Reads the library's object files in BUILD: file A is above file B if A needs a symbol that B defines.  Inside each
folder of src that order must have no circle, so that a reader can take the files from the lowest up and never needs
one that comes later.  A layer that has sub-folders, its rooms, has the same order among them, with the files of the
layer itself as one more.  Prints each circle with the calls that make it, then PASS or FAIL per folder, then
"N passed, N failed".
SPDX-License-Identifier: MIT
"""
import itertools
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

from rules import report

OBJECTS = "CMakeFiles/pccl_objects.dir/src"


def symbols(objects):
    """(what each file defines, what each file needs), by object file; names that are local to a file do not count."""
    defined, needed = defaultdict(set), defaultdict(set)
    out = subprocess.run(["nm", "-A", "-g", *map(str, objects)], check=True, capture_output=True, text=True).stdout
    for line in out.splitlines():
        file, rest = line.rsplit(":", 1)
        *_, kind, name = rest.split()
        (needed if kind in "Uwv" else defined)[Path(file)].add(name)
    return defined, needed


def graph(files, defined, needed):
    """{file: {file it calls: names}} inside one folder."""
    owner = {name: file for file in files for name in defined[file]}
    calls = {file: defaultdict(set) for file in files}
    for file in files:
        for name in needed[file]:
            if name in owner and owner[name] != file:
                calls[file][owner[name]].add(name)
    return calls


def circles(calls):
    """The strongly connected components of more than one file (Tarjan 1972), each sorted."""
    index, low, stack, on, found = {}, {}, [], set(), []

    def visit(v):
        index[v] = low[v] = len(index)
        stack.append(v)
        on.add(v)
        for w in sorted(calls[v]):
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in on:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            part = []
            while not part or part[-1] != v:
                part.append(stack.pop())
                on.remove(part[-1])
            if len(part) > 1:
                found.append(sorted(part))

    for v in sorted(calls):
        if v not in index:
            visit(v)
    return found


def told(folder, calls):
    """Each call of each circle."""
    for circle in circles(calls):
        for a in circle:
            for b in circle:
                if calls[a][b]:
                    yield f"{folder.name}/{a.stem} calls {b.stem}: {' '.join(sorted(calls[a][b]))}"


def rooms(folders, defined, needed):
    """{layer: {room: {room it calls: names}}} of the layers that have sub-folders."""
    layers = defaultdict(list)
    for folder in folders:
        if folder.parent in folders:
            layers[folder.parent].append(folder)
    for layer, inner in sorted(layers.items()):
        room_of = {file: folder for folder in [layer, *inner] for file in folders[folder]}
        calls = {folder: defaultdict(set) for folder in [layer, *inner]}
        for file, called in graph(list(room_of), defined, needed).items():
            for other, names in called.items():
                if room_of[other] != room_of[file]:
                    calls[room_of[file]][room_of[other]] |= names
        yield layer, calls


def main():
    root = Path(sys.argv[1]) / OBJECTS
    folders = defaultdict(list)
    for file in sorted(root.rglob("*.o")):
        folders[file.parent].append(file)
    if not folders:
        print(f"no object files under {root}")
        return 2
    defined, needed = symbols([file for files in folders.values() for file in files])
    files_of = ((f"no circle in {folder.relative_to(root.parent)}", told(folder, graph(files, defined, needed)))
                for folder, files in sorted(folders.items()))
    rooms_of = ((f"no circle among the rooms of {layer.relative_to(root.parent)}", told(layer, calls))
                for layer, calls in rooms(folders, defined, needed))
    return report(itertools.chain(files_of, rooms_of))


if __name__ == "__main__":
    sys.exit(main())
