#!/usr/bin/env python3
"""check_source.py [ROOT [RULE...]] - rules that a reader of the text can check; each rule is one test.

Prints every breach as file:line, then PASS or FAIL per rule, then "N passed, N failed".
SPDX-License-Identifier: MIT
"""
import itertools
import re
import sys
from pathlib import Path

from rules import check_tree

LAYERS = {  # a file of this directory may include headers of these
    "core": {"core"},
    "wire": {"wire", "core"},
    "net": {"net", "wire", "core"},
    "kernels": {"kernels", "wire", "core"},
    "topology": {"topology", "wire", "core"},
    "collectives": {"collectives", "kernels", "topology", "wire", "core"},
    "session": {"session", "collectives", "kernels", "topology", "wire", "core"},
    "world": {"world", "collectives", "kernels", "topology", "wire", "core"},
    "master": {"master", "world", "collectives", "kernels", "topology", "wire", "core"},
    "engine": {"engine", "session", "net", "collectives", "kernels", "topology", "wire", "core"},
    "window": {"window", "engine", "session", "net", "collectives", "kernels", "topology", "wire", "core"},
    "server": {"server", "master", "world", "net", "collectives", "kernels", "topology", "wire", "core"},
    "api": {"api", "window", "engine", "server", "session", "net", "collectives", "kernels", "topology", "wire", "core"},
}
FACES = {  # of these the API sees this much
    "engine": {"engine/comm.h", "engine/comm_calls.h", "engine/engine.h", "engine/op_queue.h", "engine/calls/await.h",
               "engine/calls/op_end.h", "engine/tables/link_table.h", "engine/threads/leaves.h"},
    "server": {"server/server.h"},
    "window": {"window/window.h"},
}
C_DIRS = ("src", "include", "apps", "bench", "examples", "tests", "fuzz")
SCRIPT_SUFFIXES = {".py", ".sh", ".cmake"}
FILE_LINES, FUNCTION_LINES, CMAKE_LINES = 600, 70, 380
FILE_LINES_OF = {"pccl.h": 1300}  # the public interface is one file
FORBIDDEN = re.compile(
    r"(?<![\w.>])(exit|_exit|_Exit|quick_exit|abort|printf|vprintf|fprintf|puts|fputs|putchar|perror|strcpy|stpcpy|"
    r"strcat|sprintf|vsprintf|gets|alloca|__builtin_alloca|signal|sigaction|system|setlocale|rand|srand|strtok)\s*\(")
SLEEP = re.compile(r"(?<![\w.>])(sleep|usleep|nanosleep|clock_nanosleep|thrd_sleep)\s*\(")


def blank_out(text):
    """The text with the insides of comments, strings and character constants blanked; line numbers are kept."""
    pattern = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
    return pattern.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


class Tree:
    def __init__(self, root):
        self.root = root
        self.c_files = sorted(f for d in C_DIRS for f in (root / d).rglob("*.[ch]") if "build" not in f.parts)
        self.src = [f for f in self.c_files if f.relative_to(root).parts[0] == "src"]
        self.cmake = [f for f in [root / "CMakeLists.txt", *sorted((root / "cmake").glob("*.cmake"))] if f.exists()]
        self.scripts = sorted(f for f in (root / "scripts").glob("*") if f.suffix in SCRIPT_SUFFIXES)
        self.text = {f: f.read_text() for f in [*self.c_files, *self.cmake, *self.scripts]}
        self.code = {f: blank_out(self.text[f]) for f in self.c_files}

    def at(self, file, line=0):
        return f"{file.relative_to(self.root)}:{line}" if line else str(file.relative_to(self.root))


def includes_point_down(tree):
    for file in tree.src:
        parts = file.relative_to(tree.root / "src").parts
        allowed = LAYERS.get(parts[0])
        if allowed is None:
            yield f"{tree.at(file)}: unknown layer {parts[0]}"
            continue
        for number, line in enumerate(tree.text[file].splitlines(), 1):
            match = re.match(r'\s*#\s*include\s+"([^"]+)"', line)
            if not match:
                continue
            target = match.group(1)
            layer = target.split("/")[0] if "/" in target else parts[0]
            if target.startswith("ccoip"):
                continue  # plain values, below everything
            public = target.removeprefix("include/") in ("pccl.h", "pccl_topology.h")
            inside = parts[0] == "api" and layer in FACES and target not in FACES[layer]
            if public and parts[0] != "api" or not public and layer not in allowed or inside:
                yield f"{tree.at(file, number)}: {parts[0]} must not include {target}"


def files_are_short(tree):
    for file, text in tree.text.items():
        most = FILE_LINES_OF.get(file.name, FILE_LINES)
        if text.count("\n") > most:
            yield f"{tree.at(file)}: {text.count(chr(10))} lines, at most {most}"


def cmake_is_short(tree):
    total = sum(tree.text[f].count("\n") for f in tree.cmake)
    if total > CMAKE_LINES:
        yield f"CMake files: {total} lines in all, at most {CMAKE_LINES}"


def functions(code):
    """(first line, last line) of each function body: from a brace at or ending a top-level line to one in column 0."""
    start = None
    header = ""
    for number, line in enumerate(code.splitlines(), 1):
        if start is None:
            if line.startswith("{") or (line[:1].strip() and line.rstrip().endswith("{") and "(" in line):
                if "(" in header + line and "=" not in (header if line.startswith("{") else line):
                    start = number
            header = line if line.strip() else ""
            if line.startswith(("}", "#")):
                header = ""
        elif line.startswith("}"):
            yield start, number
            start, header = None, ""


def functions_are_short(tree):
    for file, code in tree.code.items():
        for first, last in functions(code):
            if last - first + 1 > FUNCTION_LINES:
                yield f"{tree.at(file, first)}: function of {last - first + 1} lines, at most {FUNCTION_LINES}"


def functions_have_no_conditional_compilation(tree):
    for file in tree.src:
        lines = tree.code[file].splitlines()
        for first, last in functions(tree.code[file]):
            for number in range(first, last):
                if re.match(r"\s*#\s*(if|ifdef|ifndef|elif|else)\b", lines[number - 1]):
                    yield f"{tree.at(file, number)}: conditional compilation inside a function"


def basenames_are_unique(tree):
    seen = {}
    for file in tree.c_files:
        if file.name in seen:
            yield f"{tree.at(file)}: same name as {tree.at(seen[file.name])}"
        seen.setdefault(file.name, file)


def one_letter_apart(a, b):
    """Whether a letter put in, left out or changed makes one of the other."""
    if len(a) > len(b):
        a, b = b, a
    if len(a) == len(b):
        return sum(x != y for x, y in zip(a, b)) == 1
    return len(a) + 1 == len(b) and any(b[:i] + b[i + 1:] == a for i in range(len(b)))


def names_differ_by_more_than_a_letter(tree):
    """Wherever they are: a name says what the file decides, and nobody mistakes one for another."""
    first = {}  # of each name without its suffix
    for file in tree.c_files:
        first.setdefault(file.stem, file)
    for a, b in itertools.combinations(sorted(first), 2):
        if one_letter_apart(a, b):
            yield f"{tree.at(first[b])}: a letter away from {tree.at(first[a])}"


OWNED = re.compile(r"/\*(?:(?!\*/).)*?Written by (\w+\.c(?: and \w+\.c)*)\b(?:(?!\*/).)*\*/\nstruct (\w+) \{", re.S)
CHANGES = (r"list_(?:append|insert|remove|pop|init)|atomic_(?:store|init|exchange|fetch_\w+)|memset|memcpy|memmove|snprintf|"
           r"heap_set|heap_use|bitset_add|bitset_remove")


def owners_alone_write(tree):
    """A struct whose comment says "Written by FILE.c" (and FILE.c), as a part of others: set and changed there only.

    Of a table, whose entries are at[], it is the table that has one writer.
    """
    headers = "\n".join(tree.text[f] for f in tree.src if f.suffix == ".h")
    for header in (f for f in tree.src if f.suffix == ".h"):
        layer = header.relative_to(tree.root / "src").parts[0]
        readers = (layer, "api") if layer in FACES else (layer,)
        folder = [f for f in tree.src if f.suffix == ".c" and f.relative_to(tree.root / "src").parts[0] in readers]
        for owner, kind in OWNED.findall(tree.text[header]):
            owners = owner.split(" and ")
            for name in owners:
                if not any(f.name == name for f in folder):
                    yield f"{tree.at(header)}: struct {kind} is written by {name}, which is not there"
            for member in re.findall(rf"^    struct {kind} (\w+);", headers, re.M):
                field = rf"\w+(?:->|\.){member}\.(?!at\[[^]]*\]\.)\w+(?:\.\w+|\[[^]]*\])*(?![\w[])(?!->)"
                write = re.compile(rf"{field}\s*(?:[-+|&^]?=(?!=)|\+\+|--)|(?:\+\+|--){field}|"
                                   rf"(?:{CHANGES})\w*\(&?{field}|^(?!\s*const\b).*= &\w+->{member};")
                for file in folder:
                    for number, line in enumerate(tree.code[file].splitlines(), 1):
                        if file.name not in owners and write.search(line):
                            yield f"{tree.at(file, number)}: {member} is written by {owner} only"


def library_calls_nothing_forbidden(tree):
    for file in tree.src:
        for number, line in enumerate(tree.code[file].splitlines(), 1):
            match = FORBIDDEN.search(line)
            if match:
                yield f"{tree.at(file, number)}: call of {match.group(1)}"


def nothing_sleeps(tree):
    for file in tree.c_files:
        if file.relative_to(tree.root).parts[0] not in ("src", "tests"):
            continue
        for number, line in enumerate(tree.code[file].splitlines(), 1):
            match = SLEEP.search(line)
            if match:
                yield f"{tree.at(file, number)}: call of {match.group(1)}"


def licence_is_named(tree):
    for file, text in tree.text.items():
        if text.count("SPDX-License-Identifier: MIT") < 1:
            yield f"{tree.at(file)}: no line 'SPDX-License-Identifier: MIT'"


def nothing_is_left_to_do(tree):
    for file in tree.c_files:
        for number, line in enumerate(tree.text[file].splitlines(), 1):
            if re.search(r"\b(TODO|FIXME|XXX)\b", line):
                yield f"{tree.at(file, number)}: {line.strip()}"


RULES = [includes_point_down, files_are_short, cmake_is_short, functions_are_short,
         functions_have_no_conditional_compilation, basenames_are_unique, names_differ_by_more_than_a_letter,
         owners_alone_write, library_calls_nothing_forbidden, nothing_sleeps, licence_is_named, nothing_is_left_to_do]


if __name__ == "__main__":
    sys.exit(check_tree(Tree, RULES))
