#!/usr/bin/env python3
"""extract_seeds.py DOCUMENT DIRECTORY - writes every C++ listing of the document into a file of its own, unchanged.

A listing with a main function becomes program_N.cpp, any other fragment_N.cpp, where a function is put around it; N
counts the listings.  #line directives make a compiler name the document and its lines.  Prints the names.
SPDX-License-Identifier: MIT
"""
import re
import sys
from pathlib import Path


def listings(text):
    """(first line, text) of each fenced C++ block."""
    start, body = None, []
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        if start is None:
            if re.fullmatch(r"```(c\+\+|cpp)\s*", line):
                start, body = number + 1, []
        elif line.startswith("```"):
            yield start, "".join(body)
            start = None
        else:
            body.append(line)


def main():
    document, directory = Path(sys.argv[1]), Path(sys.argv[2])
    directory.mkdir(parents=True, exist_ok=True)
    for number, (line, body) in enumerate(listings(document.read_text()), 1):
        place = f'#line {line} "{document.name}"\n'
        if re.search(r"^int main\(", body, re.M):
            name, text = f"program_{number}.cpp", place + body
        else:
            name, text = f"fragment_{number}.cpp", f"void fragment_{number}()\n{{\n{place}{body}}}\n"
        (directory / name).write_text(text)
        print(name)


if __name__ == "__main__":
    main()
