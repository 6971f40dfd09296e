#!/usr/bin/env python3
"""extract_seeds.py DOCUMENT DIRECTORY [c] - writes every C++ (or C) listing of the document into a file of its own, unchanged.

A listing with a main function becomes program_N.cpp (or .c), any other fragment_N.cpp, where a function is put around it; N
counts the listings.  #line directives make a compiler name the document and its lines.  Prints the names.
SPDX-License-Identifier: MIT
"""
import re
import sys
from pathlib import Path


def listings(text, languages):
    """(first line, text) of each fenced block of these languages."""
    start, body = None, []
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        if start is None:
            if re.fullmatch(rf"```({languages})\s*", line):
                start, body = number + 1, []
        elif line.startswith("```"):
            yield start, "".join(body)
            start = None
        else:
            body.append(line)


def main():
    document, directory = Path(sys.argv[1]), Path(sys.argv[2])
    languages, suffix = ("c", "c") if sys.argv[3:] == ["c"] else (r"c\+\+|cpp", "cpp")
    directory.mkdir(parents=True, exist_ok=True)
    for number, (line, body) in enumerate(listings(document.read_text(), languages), 1):
        place = f'#line {line} "{document.name}"\n'
        if re.search(r"^int main\(", body, re.M):
            name, text = f"program_{number}.{suffix}", place + body
        else:
            name, text = f"fragment_{number}.{suffix}", f"void fragment_{number}(void)\n{{\n{place}{body}}}\n"
        (directory / name).write_text(text)
        print(name)


if __name__ == "__main__":
    main()
