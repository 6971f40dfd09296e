"""distant_report.py - the tables and figures that distant.py makes of what it has measured.

A call lasts from its first start to its last end; a figure of a round is the median of its warm calls but for the first two; a figure of
the table is the median over the rounds, and a ratio the median of the ratios within the rounds, with the least and the most.
SPDX-License-Identifier: MIT
"""
import json
import sys
from collections import defaultdict
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "compare"))
from compare_report import median_or_none, ratio_text, size_text, word  # noqa: E402

WARM_UPS, SMALL = 2, 65536
KINDS = {"first": "first call", "warm": "warm calls", "idle": "after idling", "optimise": "measuring the links"}


def call_times(said, world):
    """Of each kind the seconds of its calls, as far as all ranks have finished them."""
    spans = defaultdict(lambda: defaultdict(list))
    for line in said:
        if "start_s" in line:
            spans[line["kind"]][line["rank"]].append((line["start_s"], line["end_s"]))
    out = {}
    for kind, ranks in spans.items():
        whole = zip(*ranks.values()) if len(ranks) == world else ()
        out[kind] = [max(end for _, end in call) - min(start for start, _ in call) for call in whole]
    return out


class Data:
    """Of a row: times[name][field] = {round: seconds}."""

    def __init__(self, row, path):
        with open(path) as f:
            lines = [json.loads(line) for line in f]
        self.row, self.head, self.runs = row, lines[0], lines[1:]
        self.world, self.bytes = self.head["world"], self.head["bytes"]
        self.times = defaultdict(lambda: defaultdict(dict))
        self.plans, self.wrong = defaultdict(list), 0
        for record in self.runs:
            self.add(record)
        self.names = [n for n in row.names if self.times[n]]
        self.loads = [record["load"] for record in self.runs]
        self.rounds = 1 + max((record["round"] for record in self.runs), default=-1)
        self.goals = () if self.head["tried"] else row.goals

    def add(self, record):
        self.wrong += sum(line.get("wrong", 0) for line in record["said"])
        for kind, times in call_times(record["said"], self.world).items():
            if times:
                kept = times[WARM_UPS:] if len(times) > WARM_UPS else times[-1:]
                self.times[record["name"]][f"{kind}_s"][record["round"]] = median(kept) if kind == "warm" else times[0]
        self.plans[record["name"]] += [line for line in record["said"] if line["kind"] == "plan" and line["rank"] == 0]

    def seconds(self, name, field):
        return list(self.times[name][field].values()) if name in self.times else []

    def best(self, names, field, number):
        """The least of a round; None: nobody has one."""
        return min((self.times[n][field][number] for n in names if n in self.times and number in self.times[n][field]), default=None)

    def ratios(self, goal):
        out = []
        for number in range(self.rounds):
            over = self.best(goal.over, goal.field, number)
            under = self.best(goal.under, goal.under_field, number) if goal.under else 1
            if over is not None and under is not None:
                out.append(over / under)
        return out

    def lacking(self, goal):
        """Of whom a ratio is without a time in some round, though another had one: the best may have been theirs."""
        out = []
        for names, field in ((goal.over, goal.field), (goal.under, goal.under_field)):
            known = [n for n in self.row.names if n in names and n in {run["name"] for run in self.runs}]
            rounds = [number for number in range(self.rounds) if self.best(names, field, number) is not None]
            out += [n for n in known if any(number not in self.times[n][field] for number in rounds)]
        return out

    def speed(self, seconds):
        """Mb/s out of each host, of an all-reduce that moves no more than it must; of a state, into the newcomer."""
        if self.row.state:
            return self.bytes * 8e-6 / seconds
        return self.bytes * 8e-6 * 2 * (self.world - 1) / self.world / seconds


def reached(goal, ratios):
    return median(ratios) >= goal.least if goal.least is not None else median(ratios) <= goal.most


def verdict(data, goal, ratios):
    if not ratios:
        return "not measured"
    lacking = data.lacking(goal)
    return word(reached(goal, ratios)) + (f", in some rounds without {', '.join(lacking)}" if lacking else "")


def wanted(goal):
    return f"at least {goal.least:g}" if goal.least is not None else f"at most {goal.most:g}"


def spread(values, digits):
    if not values:
        return "-"
    return f"{median(values):.{digits}f}" + (f" ({min(values):.{digits}f}-{max(values):.{digits}f})" if len(values) > 1 else "")


def troubles(data):
    """What was void, late or failed, in words."""
    repeats, left = sum(r["repeats"] for r in data.runs), [r for r in data.runs if r["void"]]
    if repeats or left:
        where = ", ".join(f"{r['name']} in round {r['round'] + 1}" for r in left)
        yield f"void and repeated: {repeats} starts; still void and left out: {where or 'none'}"
    for r in data.runs:
        if r["status"] is None:
            yield f"{r['name']} took too long in round {r['round'] + 1}"
        elif r["status"] != 0 and not r["void"]:
            yield f"{r['name']} failed in round {r['round'] + 1}: {r['error'] or r['status']}"
    if data.wrong:
        yield f"{data.wrong} wrong elements"


def row_table(out, data):
    size = size_text(data.bytes)
    out += [f"## {data.row.name}: {size}, {data.row.text}", "", f"| | {' | '.join(data.names)} |", "|---" * (len(data.names) + 1) + "|"]
    if data.bytes >= SMALL:
        speeds = [[data.speed(s) for s in data.seconds(n, "warm_s")] for n in data.names]
        out.append(f"| warm calls, Mb/s | {' | '.join(spread(s, 1 if s and median(s) < 100 else 0) for s in speeds)} |")
    for kind, text in KINDS.items():
        unit, scale, digits = ("ms", 1e3, 1) if data.bytes < SMALL else ("s", 1, 2)
        cells = [spread([scale * s for s in data.seconds(n, f"{kind}_s")], digits) for n in data.names]
        if any(cell != "-" for cell in cells):
            out.append(f"| {text}, {unit} | {' | '.join(cells)} |")
    if any(data.plans[n] for n in data.names):
        cells = [f"{data.plans[n][-1]['algorithm']}, {median(p['predicted_s'] for p in data.plans[n]):.3g}" if data.plans[n] else ""
                 for n in data.names]
        out.append(f"| plan, s predicted | {' | '.join(cells)} |")
    out.append("")
    notes = "; ".join(troubles(data))
    if notes:
        out += [f"{notes}.", ""]


def goal_table(out, data):
    out += ["## Goals", "", "| row | figure | median (least-most) | wanted | |", "|---|---|---|---|---|"]
    for d in data:
        for goal in d.goals:
            ratios = d.ratios(goal)
            out.append(f"| {d.row.name} | {goal.text} | {ratio_text(ratios)} | {wanted(goal)} | {verdict(d, goal, ratios)} |")
    out.append("")


def text(data):
    machine, loads = data[0].head["machine"], [load for d in data for load in d.loads]
    out = ["# PCCL over an emulated wide area", "",
           f"{', '.join(sorted({d.head['date'] for d in data}))}, {machine['cores']} cores ({machine['model']}), {machine['memory_gib']} GiB, "
           f"Linux {machine['kernel']}; {max(d.rounds for d in data)} rounds at most, load before each start {min(loads):.1f} to {max(loads):.1f} "
           f"(median {median(loads):.1f}).", "",
           "All-reduce of floats, sum. Raw N: N plain sockets for each pair of hosts move the bytes that an all-reduce must move, both ways "
           "at once. Mb/s: those bytes, out of each host. Medians over the rounds (least-most); ratios are taken within a round."]
    missing = sorted({what for d in data for what in d.head["missing"]})
    out += ["", *(f"Missing: {what}." for what in missing), ""] if missing else [""]
    if any(d.head["tried"] for d in data):
        out += ["Only tried, with small buffers and few calls: these figures say nothing.", ""]
    for d in data:
        row_table(out, d)
    if any(d.goals for d in data):
        goal_table(out, data)
    return "\n".join(out)


def figures(data):
    """The same for programs."""
    out = []
    for d in data:
        goals = []
        for goal in d.goals:
            ratios = d.ratios(goal)
            goals.append({"figure": goal.text, "median": median_or_none(ratios), "rounds": ratios, "least_wanted": goal.least,
                          "most_wanted": goal.most, "reached": reached(goal, ratios) if ratios else None, "lacking": d.lacking(goal)})
        out.append({"row": d.row.name, "network": d.row.network, "text": d.row.text, "bytes": d.bytes, "ranks": d.world, "tried": d.head["tried"],
                    "date": d.head["date"], "machine": d.head["machine"], "missing": d.head["missing"], "wrong": d.wrong,
                    "troubles": list(troubles(d)), "goals": goals,
                    "times": {n: {f: t for f, t in sorted(d.times[n].items()) if t} for n in d.names}})
    return {"rows": out}
