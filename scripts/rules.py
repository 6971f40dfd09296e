"""rules.py - how the checks written in Python tell what they have found.

A rule is a function of a tree that yields its breaches, each as "file:line: what is wrong".
SPDX-License-Identifier: MIT
"""
import sys
from pathlib import Path


def report(results):
    """Prints each breach of (name, breaches), then PASS or FAIL with the name, at last "N passed, N failed"; the exit status."""
    passed = failed = 0
    for name, breaches in results:
        breaches = list(breaches)
        for breach in breaches:
            print(breach)
        print("FAIL" if breaches else "PASS", name)
        failed += bool(breaches)
        passed += not breaches
    print(f"{passed} passed, {failed} failed")
    return int(failed != 0)


def check_tree(tree_of, rules):
    """The command `CHECK [ROOT [RULE...]]`: these rules, or all of them, on the tree that `tree_of` reads under ROOT."""
    tree = tree_of(Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve())
    named = {rule.__name__: rule for rule in rules}
    return report((name, named[name](tree)) for name in sys.argv[2:] or named)
