#!/usr/bin/env python3
"""rules_table.py [--check] - the table of all rules in docs/internals/RULE_TABLE.md: what keeps each, which tests and mutants show it.

The rows come from the pages themselves: "Kept in", "Shown by", "Mutants" and "Mutations" of docs/internals/RULES.md, and the entries of
docs/internals/TESTING.md for the guarantees and the behaviours.  So both pages share one table, and nothing is written twice by hand.
With --check nothing is written, and a table that differs is reported.  The last line is then "N passed, N failed".
SPDX-License-Identifier: MIT
"""
import re
import sys

from written import ROOT, write_or_check

FOLDER = ROOT / "docs/internals"
HEAD = """# Rules, tests and mutants

Every rule of [RULES](RULES.md) and every guarantee of [TESTING](TESTING.md#guarantees), with the files that
keep it, the tests that show it, and the planted mistakes (mutants of the code, mutations of a model) that
these tests find. `scripts/rules_table.py` writes this page from those two.

| Rule | Title | Kept in | Shown by | Mutants and mutations |
|---|---|---|---|---|
"""
NAME = re.compile(r"\b[A-Z][A-Z_0-9]{2,}\b")
PLANTED = set(re.findall(r"X\(([A-Z_]+)\)", (ROOT / "src/core/mutant.h").read_text()))
PLANTED |= {name for model in (ROOT / "verify").glob("*.pml") for name in re.findall(r"-D([A-Z_]+)", model.read_text())}


def cell(items):
    return "<br>".join(dict.fromkeys(items))


def spans(text):
    return [re.sub(r"\s+", " ", span) for span in re.findall(r"`([^`]+)`", text)]


def programs(text):
    """The test programs that a text names, without the names of single tests."""
    return [f"`{span.split(': ')[0]}`" for span in spans(text) if re.match(r"(?:tests/)?\w+/test_\w+|tests/sim|make verify$", span)]


def planted(text):
    return [name for name in NAME.findall(text) if name in PLANTED]


def after(text, words):
    """What follows one of these words, up to the end of its sentence."""
    return " ".join(re.findall(rf"\b(?:{words}):?\s+([^.]*(?:\.[a-z][^.]*)*)\.", text))


def rows():
    rules, testing = ((FOLDER / name).read_text() for name in ("RULES.md", "TESTING.md"))
    for match in re.finditer(r"^\* \*\*(G\d+)\*\* \*([^*]+)\*(.*?)(?=^\* \*\*|^#|\Z)", rules, re.M | re.S):
        entry = re.search(rf"^\* \*\*{match.group(1)}\*\*(.*?)(?=^\* \*\*|^#|\n\n|\Z)", testing, re.M | re.S)
        text = entry.group(1) if entry else ""
        yield match.group(1), match.group(2).rstrip("."), "", cell(programs(text)), cell(planted(text))
    for section in re.split(r"^### ", rules, flags=re.M)[1:]:
        title, _, text = section.partition("\n")
        text = re.split(r"^#+ ", text, flags=re.M)[0]
        kept = re.search(r"Kept\s+in\s+((?:`[^`]+`(?:,\s*|\s+and\s+)?)+)", text)
        if kept is None:
            continue
        name, _, words = title.partition(" ") if re.match(r"[PMWBO]\d+ ", title) else ("", "", title)
        found = planted(after(text, "Mutants?|Mutations?"))
        yield name, words, cell(f"`{span}`" for span in spans(kept.group(1))), cell(programs(text[kept.end():])), cell(found)


def table():
    return HEAD + "".join(f"| {' | '.join(row)} |\n" for row in rows())


if __name__ == "__main__":
    sys.exit(write_or_check([("the table of rules is that of the pages", FOLDER / "RULE_TABLE.md", table())]))
