#!/usr/bin/env python3
"""test_distant.py - what bench/wan makes of measurements: times of calls, medians, ratios within rounds, goals, what is void or missing.

Prints what differs, PASS or FAIL per test, then "N passed, N failed".
SPDX-License-Identifier: MIT
"""
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from rules import report

BENCH = Path(__file__).resolve().parent.parent / "bench/wan"
sys.path.insert(0, str(BENCH))
import distant  # noqa: E402
import distant_report  # noqa: E402
from distant_rows import FORCED, RAW, ROWS, Goal, Row  # noqa: E402

MB = 1 << 20
FASTER = Goal("speed to best raw", RAW, ("pccl",), least=0.7)
ROW = Row("one", "2 peers", "pair", 100 * MB, ("pccl", *RAW, "Gloo"), (FASTER,), 1)
HEAD = {"machine": {"model": "m", "cores": 2, "kernel": "6", "memory_gib": 1}, "date": "d", "missing": [], "tried": False, "world": 2,
        "bytes": 100 * MB}


def calls(*seconds, kind="warm", rank=0, begin=0.0, wrong=0):
    return [{"kind": kind, "rank": rank, "start_s": begin + 100 * i, "end_s": begin + 100 * i + s, "wrong": wrong} for i, s in enumerate(seconds)]


def both(*seconds, **more):
    return calls(*seconds, **more) + calls(*seconds, rank=1, **more)


def record(number, name, said, **more):
    return {"round": number, "name": name, "load": 1.0, "repeats": 0, "status": 0, "void": False, "error": "", "said": said, **more}


def data_of(records, row=ROW, **head):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "raw"
        path.write_text("\n".join(distant.json.dumps(line) for line in ({**HEAD, **head}, *records)))
        return distant_report.Data(row, path)


def goals_of(text):
    """The cells of the goals' rows, but for the row's name."""
    rows = text.partition("## Goals")[2].splitlines()
    return [[c.strip() for c in line.split("|")[2:-1]] for line in rows if line.startswith("| one ")]


def cells(text, name):
    return next(([c.strip() for c in line.split("|")[2:-1]] for line in text.splitlines() if line.startswith(f"| {name} |")), None)


def expect(found, wanted):
    if found != wanted:
        yield f"{found!r}, expected {wanted!r}"


def a_call_lasts_from_its_first_start_to_its_last_end():
    said = calls(2.0, begin=1) + calls(2.0, rank=1, begin=1.5)
    yield from expect(distant_report.call_times(said, 2), {"warm": [2.5]})


def a_call_that_a_rank_has_not_finished_does_not_count():
    """A start that took too long ends anywhere: what the other ranks say of its last call is no time of it."""
    yield from expect(distant_report.call_times(calls(1.0, 1.0) + calls(1.0, rank=1), 2), {"warm": [1.0]})
    yield from expect(distant_report.call_times(calls(1.0), 2), {"warm": []})


def the_first_two_warm_calls_are_left_out():
    yield from expect(data_of([record(0, "pccl", both(9, 8, 1, 2, 4))]).seconds("pccl", "warm_s"), [2])
    yield from expect(data_of([record(0, "pccl", both(9, 8))]).seconds("pccl", "warm_s"), [8])


def speed_counts_the_bytes_that_an_all_reduce_must_move():
    two, four = data_of([record(0, "pccl", both(1))]), data_of([record(0, "pccl", both(1))], world=4)
    yield from expect((round(two.speed(2)), round(four.speed(2))), (419, 629))


def a_ratio_is_taken_within_a_round_to_the_best_of_it():
    """Not of the medians: what a round has taken from all of them must not count."""
    times = ((1.0, 0.9, 0.8), (10.0, 20.0, 9.0), (2.0, 1.0, 4.0))
    records = [record(n, name, both(s)) for n, row in enumerate(times) for name, s in zip(("pccl", "raw 1", "raw 64"), row)]
    yield from expect(data_of(records).ratios(FASTER), [0.8, 0.9, 0.5])
    yield from expect(goals_of(distant_report.text([data_of(records)])), [["speed to best raw", "0.80 (0.50-0.90)", "at least 0.7", "reached"]])


def goals_are_reached_missed_or_not_measured():
    cases = ((FASTER, "missed"), (replace(FASTER, least=0.5), "reached"), (Goal("seconds", ("pccl",), most=2.0), "reached"),
             (Goal("seconds", ("pccl",), most=1.9), "missed"), (Goal("to Gloo", ("Gloo",), ("pccl",), least=1), "not measured"),
             (Goal("first", ("pccl",), RAW, "first_s", "first_s", most=1.3), "reached"),
             (Goal("idle", ("pccl",), ("pccl",), "idle_s", "warm_s", most=1.2), "missed"))
    said = both(2) + both(2.6, kind="first") + both(2.5, kind="idle")
    records = [record(0, "pccl", said), record(0, "raw 4", both(1) + both(2, kind="first"))]
    data = data_of(records, replace(ROW, goals=tuple(goal for goal, _ in cases)))
    yield from expect([row[-1] for row in goals_of(distant_report.text([data]))], [verdict for _, verdict in cases])
    wanted = [{"reached": True, "missed": False}.get(verdict) for _, verdict in cases]
    yield from expect([goal["reached"] for goal in distant_report.figures([data])["rows"][0]["goals"]], wanted)


def a_ratio_to_the_best_of_those_left_is_not_said_to_be_one_to_all():
    """The one that is void may have been the best: 16 sockets are no limit where 64 are faster."""
    said = [record(n, name, both(1)) for n in (0, 1) for name in ("pccl", "raw 1", "raw 64")]
    said[5] |= {"said": [], "void": True, "status": 75}
    yield from expect(goals_of(distant_report.text([data_of(said)]))[0][-1], "reached, in some rounds without raw 64")
    yield from expect(goals_of(distant_report.text([data_of(said[:3])]))[0][-1], "reached")


def what_is_void_late_failed_or_wrong_is_said():
    records = [record(0, "pccl", both(1, wrong=3), repeats=1), record(0, "raw 1", [], repeats=2, status=75, void=True),
               record(0, "Gloo", [], status=None), record(1, "Gloo", [], status=1, error="[a] no memory")]
    text = distant_report.text([data_of(records)])
    for part in ("void and repeated: 3 starts; still void and left out: raw 1 in round 1;", "Gloo took too long in round 1;",
                 "Gloo failed in round 2: [a] no memory;", "6 wrong elements."):
        yield from expect((part, part in text), (part, True))


def what_is_missing_is_said_and_left_out():
    text = distant_report.text([data_of([record(0, "pccl", both(1))], missing=["Gloo (get it)"])])
    yield from expect("Missing: Gloo (get it)." in text, True)
    yield from expect("| | pccl |" in text, True)


def figures_are_in_the_unit_of_their_size():
    text = distant_report.text([data_of([record(n, "pccl", both(s)) for n, s in enumerate((0.5, 0.25, 1))])])
    yield from expect(cells(text, "warm calls, s"), ["0.50 (0.25-1.00)"])
    yield from expect(cells(text, "warm calls, Mb/s"), ["1678 (839-3355)"])
    text = distant_report.text([data_of([record(0, "pccl", both(0.1005))], bytes=4)])
    yield from expect((cells(text, "warm calls, ms"), cells(text, "warm calls, Mb/s")), (["100.5"], None))


def what_was_only_tried_is_not_judged():
    data = data_of([record(0, "pccl", both(1)), record(0, "raw 1", both(1))], tried=True)
    yield from expect((goals_of(distant_report.text([data])), distant_report.figures([data])["rows"][0]["goals"]), ([], []))


class Emulator:
    """A lab that is too busy so many times."""

    def __init__(self, busy):
        self.busy, self.starts = busy, 0

    def once(self, _row, _name, _limit_s):
        self.starts += 1
        return both(1), {"late_percent": 1.0}, distant.VOID if self.starts <= self.busy else 0, ""


def a_void_start_is_repeated_twice_at_most():
    for busy, starts, void in ((0, 1, False), (2, 3, False), (9, 3, True)):
        lab = Emulator(busy)
        said = distant.run(lab, ROW, "pccl", 1)
        yield from expect((lab.starts, said["repeats"], said["void"], said["said"] == []), (starts, starts - 1, void, void))


def every_row_can_be_measured_and_judged():
    """A goal that names an implementation which its row does not start could never be judged."""
    yield from expect(len({row.name for row in ROWS}), len(ROWS))
    for row in ROWS:
        yield from expect((row.name, (BENCH / f"{row.network}.ini").exists()), (row.name, True))
        for goal in row.goals:
            started = [any(n in row.names for n in names) for names in (goal.over, goal.under) if names]
            yield from expect((row.name, goal.text, all(started)), (row.name, goal.text, True))
            yield from expect((row.name, goal.text, (goal.least is None) != (goal.most is None)), (row.name, goal.text, True))
            yield from expect((row.name, "idle_s" in (goal.field, goal.under_field) and row.idle_s == 0), (row.name, False))
    yield from expect([f for f in FORCED if f.split()[0] != "pccl"], [])


TESTS = [a_call_lasts_from_its_first_start_to_its_last_end, a_call_that_a_rank_has_not_finished_does_not_count,
         the_first_two_warm_calls_are_left_out, speed_counts_the_bytes_that_an_all_reduce_must_move,
         a_ratio_is_taken_within_a_round_to_the_best_of_it, goals_are_reached_missed_or_not_measured,
         a_ratio_to_the_best_of_those_left_is_not_said_to_be_one_to_all,
         what_is_void_late_failed_or_wrong_is_said, what_is_missing_is_said_and_left_out, figures_are_in_the_unit_of_their_size,
         what_was_only_tried_is_not_judged, a_void_start_is_repeated_twice_at_most, every_row_can_be_measured_and_judged]

if __name__ == "__main__":
    sys.exit(report((test.__name__, test()) for test in TESTS))
