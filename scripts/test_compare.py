#!/usr/bin/env python3
"""test_compare.py - what bench/compare makes of measurements: medians, ratios within rounds, goals, what is missing.

Prints what differs, PASS or FAIL per test, then "N passed, N failed".
SPDX-License-Identifier: MIT
"""
import json
import sys
import tempfile
import xml.etree.ElementTree
from pathlib import Path

from rules import report

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench/compare"))
import compare_report  # noqa: E402

MB = 1 << 20


def result(us, size=MB, collective="all_reduce", **more):
    return {"collective": collective, "size": size, "time_us": us, "min_us": us / 2, "cpu_s_per_gb": 0.5, "wrong": 0, **more}


def written(runs, missing=()):
    """Table and picture of runs, each (round, name, results) or, not over TCP, (round, name, results, transport)."""
    with tempfile.TemporaryDirectory() as folder:
        raw, table, plot = (Path(folder) / n for n in ("raw", "table", "plot"))
        head = {"machine": {"model": "m", "cores": 2, "kernel": "6", "memory_gib": 1}, "date": "d", "missing": list(missing)}
        lines = [head] + [{"round": number, "part": "all_reduce", "transport": (*transport, "tcp")[0], "ranks": 2, "name": name,
                           "load": number, "timely": True, "results": results} for number, name, results, *transport in runs]
        raw.write_text("\n".join(json.dumps(line) for line in lines))
        compare_report.write(raw, table, plot)
        return table.read_text(), plot.read_text()


def row(table, name):
    """The cells of the first row of that name."""
    return next(([c.strip() for c in line.split("|")[2:-1]] for line in table.splitlines() if line.startswith(f"| {name} |")), None)


def ours(us, **more):
    return result(us, in_place=False, limit_share=0.5, limit_us=us / 2, **more)


def expect(found, wanted):
    if found != wanted:
        yield f"{found!r}, expected {wanted!r}"


def figures_are_medians_in_the_unit_of_their_size():
    runs = [(n, "pccl", [ours(us), ours(20 * us / 1000, size=4)]) for n, us in enumerate((1000, 3000, 500))]
    table, _ = written(runs)
    yield from expect(row(table, "4 B")[0], "20.0 us")
    yield from expect(row(table, "1 MB")[0], "1.05")


def ratio_is_taken_within_a_round_to_the_best_of_it():
    """Not of the medians: what a round has taken from all of them must not count."""
    table, _ = written([(0, "pccl", [ours(100)]), (0, "MPICH", [result(50)]), (0, "Gloo", [result(80)]),
                        (1, "pccl", [ours(1000)]), (1, "MPICH", [result(3000)]), (1, "Gloo", [result(2000)]),
                        (2, "pccl", [ours(400)]), (2, "MPICH", [result(400)]), (2, "Gloo", [result(800)])])
    yield from expect(row(table, "1 MB"), ["2.62", "**2.62**", "1.31", "1.00 (0.50-2.00)", "0.50", "50%", "0.9, 90%",
                                           "missed"])


def better_of_both_placements_counts():
    table, _ = written([(0, "pccl", [ours(100), {**ours(125), "collective": "all_reduce_in_place", "in_place": True}]),
                        (0, "Open MPI", [result(400), result(200, collective="all_reduce_in_place")])])
    yield from expect(row(table, "1 MB")[2], "2.00 (2.00-2.00)")
    yield from expect(row(table, "in place / out of place"), ["0.80"])
    yield from expect(row(table, "median / least"), ["2.00"])


def what_is_missing_is_said_and_left_out():
    table, _ = written([(0, "pccl", [ours(100), ours(900, size=4 * MB)]), (0, "Gloo", [result(100)])], ["MPICH (get it)"])
    yield from expect("Missing: MPICH (get it)." in table, True)
    yield from expect(row(table, "1 MB")[:3], ["10.49", "**10.49**", "1.00 (1.00-1.00)"])
    yield from expect(row(table, "4 MB")[:3], ["4.66", "-", "-"])
    yield from expect("| size | pccl | Gloo | ratio |" in table, True)


def goals_are_reached_by_time_by_ratio_or_beside_plain_links():
    small = [ours(14, size=4), ours(100, size=65536), {**ours(100, size=262144), "limit_share": 0.95}]
    table, _ = written([(0, "pccl", small), (0, "Gloo", [result(91, size=65536), result(10, size=262144)])])
    yield from expect(row(table, "4 B")[-2:], ["14 us", "reached"])
    yield from expect(row(table, "64 KB")[-2:], ["0.9", "reached"])
    yield from expect(row(table, "256 KB")[-2:], ["0.9", "reached"])  # 0.1 of the rival, but what links can do
    table, _ = written([(0, "pccl", [ours(14.1, size=4), ours(100, size=65536)]), (0, "Gloo", [result(89, size=65536)])])
    yield from expect(row(table, "4 B")[-1], "missed")
    yield from expect(row(table, "64 KB")[-1], "missed")


def processor_time_is_judged_beside_gloos():
    """By the ratios within rounds, from 1 MB on; in memory beside Gloo's TCP, which has nothing else."""
    runs = []
    for number, (mine, gloo) in enumerate(((0.3, 0.4), (0.9, 1.0), (0.5, 0.4))):
        for transport in ("tcp", "shm"):
            runs.append((number, "pccl", [{**ours(100), "cpu_s_per_gb": mine if transport == "tcp" else 4 * mine},
                                          ours(100, size=65536), ours(100, size=4 * MB)], transport))
        runs.append((number, "Gloo", [{**result(100), "cpu_s_per_gb": gloo}, result(100, size=4 * MB)]))
    table, _ = written(runs)
    tcp, shm = table.split("Shared memory")
    yield from expect(row(tcp, "to Gloo's, below 1")[:3], ["0.90 reached", "1.00 missed", "-"])
    yield from expect(row(shm, "to Gloo's, below 1")[:3], ["3.60 missed", "1.00 missed", "-"])
    table, _ = written([(0, "pccl", [ours(100)])])
    yield from expect(row(table, "to Gloo's, below 1")[:1], ["-"])


def in_place_is_judged_from_16_mb_on():
    def placed(size, us):
        return [ours(100, size=size), {**ours(us, size=size), "collective": "all_reduce_in_place", "in_place": True}]
    table, _ = written([(0, "pccl", placed(4 * MB, 200) + placed(16 * MB, 117) + placed(64 * MB, 118))])
    yield from expect(row(table, "in place / out of place"), ["0.50", "0.85 reached", "0.85 missed"])


def wrong_elements_are_told():
    table, _ = written([(0, "pccl", [ours(100)]), (0, "Gloo", [{**result(100), "wrong": 7}])])
    yield from expect("; 7 wrong elements." in table, True)


def picture_has_a_curve_for_each():
    _, plot = written([(0, "pccl", [ours(100), ours(900, size=4 * MB)]), (0, "Gloo", [result(100)])])
    tree = xml.etree.ElementTree.fromstring(plot)
    curves = [e.get("stroke") for e in tree.iter() if e.tag.endswith("path") and e.get("fill") == "none"]
    yield from expect(sorted(curves), sorted(compare_report.COLOURS[n] for n in ("pccl", "Gloo", "plain links")))


TESTS = [figures_are_medians_in_the_unit_of_their_size, ratio_is_taken_within_a_round_to_the_best_of_it,
         better_of_both_placements_counts, goals_are_reached_by_time_by_ratio_or_beside_plain_links, what_is_missing_is_said_and_left_out,
         processor_time_is_judged_beside_gloos, in_place_is_judged_from_16_mb_on, wrong_elements_are_told,
         picture_has_a_curve_for_each]

if __name__ == "__main__":
    sys.exit(report((test.__name__, test()) for test in TESTS))
