"""compare_report.py - the table and the picture that compare.py makes of what it has measured.

A figure is the median over the rounds; a ratio is ours to the best rival's in each round, then the median of these, with
the least and the most.  SPDX-License-Identifier: MIT
"""
import json
import math
from collections import defaultdict
from statistics import median

OURS = "pccl"
SHOWN = [4, 4096, 16384, 65536, 262144, 1 << 20, 4 << 20, 16 << 20, 64 << 20, 256 << 20]
COLOURS = {"pccl": "#d62728", "Open MPI": "#1f77b4", "MPICH": "#2ca02c", "Gloo": "#9467bd", "plain links": "#999999"}


def size_text(size):
    for unit, name in ((1 << 30, "GB"), (1 << 20, "MB"), (1 << 10, "KB")):
        if size >= unit:
            return f"{size // unit} {name}"
    return f"{size} B"


class Data:
    """cell[collective, transport, ranks, size][name] = {round: result}, the better of in place and out of place."""

    def __init__(self, path):
        with open(path) as f:
            lines = [json.loads(line) for line in f]
        self.head, self.runs = lines[0], lines[1:]
        self.cell = defaultdict(lambda: defaultdict(dict))
        self.placed = defaultdict(dict)  # the same, ours only, by placement
        for run in self.runs:
            for r in run["results"]:
                self.add(run, r)
        self.names = [n for n in COLOURS if any(run["name"] == n for run in self.runs)]
        self.ranks = sorted({run["ranks"] for run in self.runs})
        self.loads = [run["load"] for run in self.runs]
        self.rounds = 1 + max(run["round"] for run in self.runs)
        self.wrong = sum(r["wrong"] or 0 for run in self.runs for r in run["results"])

    def add(self, run, r):
        collective = r["collective"].removesuffix("_in_place")
        size = self.nearest(r["size"])
        key = (collective, run["transport"], run["ranks"], size)
        if run["name"] == OURS:
            self.placed[key + (r["collective"] != collective,)][run["round"]] = r
        known = self.cell[key][run["name"]].get(run["round"])
        if known is None or r["time_us"] < known["time_us"]:
            self.cell[key][run["name"]][run["round"]] = r

    @staticmethod
    def nearest(size):
        """A size that was rounded down to whole elements, as it was asked for."""
        return min((4 << (2 * i) for i in range(16)), key=lambda s: abs(s - size))

    def times(self, key, name, field="time_us"):
        return [r[field] for r in self.cell[key].get(name, {}).values() if r.get(field) is not None]

    def ratios(self, key):
        """Ours to the best rival, in speed, round by round; and that rival's name most of the time."""
        out, best = [], defaultdict(int)
        for number, ours in self.cell[key].get(OURS, {}).items():
            there = [(r[number]["time_us"], name) for name, r in self.cell[key].items() if name != OURS and number in r]
            if there:
                out.append(min(there)[0] / ours["time_us"])
                best[min(there)[1]] += 1
        return out, max(best, key=best.get) if best else ""

    def best_ratio(self, key):
        """Ours to the best rival's, of the fastest round of each: a host that is slow for a minute is slow for one of them."""
        ours, rivals = self.times(key, OURS), [t for name in self.cell[key] if name != OURS for t in self.times(key, name)]
        return min(rivals) / min(ours) if ours and rivals else None

    def share(self, key):
        """Of plain links, in the same runs; None: there are none."""
        shares = self.times(key, OURS, "limit_share")
        return median(shares) if shares else None


def figure(size, us):
    if us is None:
        return "-"
    if size < 65536:
        return f"{us:.1f} us" if us < 1000 else f"{us / 1000:.1f} ms"
    speed = size / 1e3 / us
    return f"{speed:.2f}" if speed >= 0.095 else f"{speed:.3f}"


def median_or_none(values):
    return median(values) if values else None


def ratio_text(ratios):
    return f"{median(ratios):.2f} ({min(ratios):.2f}-{max(ratios):.2f})" if ratios else "-"


# What is wanted: us at most for 4 B; from the size on that ratio to the best rival at least.  Where the share of plain links is
# 90 %, the ratio counts as reached; over TCP with 2 processes that share is wanted from 1 MB on.
MOST_US = {("tcp", 2): 14, ("tcp", 4): 40, ("shm", 2): 4}
RATIOS = {("tcp", 2): [(64 << 10, 0.9), (4 << 20, 1.3)], ("tcp", 4): [(4 << 10, 1.0), (4 << 20, 1.25)],
          ("shm", 2): [(64 << 10, 1.0), (64 << 20, 2.7)], ("shm", 4): [(64 << 10, 1.0), (16 << 20, 1.5)]}
SHARE, SHARE_FROM = 0.9, 1 << 20
# In place at least that part of the speed out of place, from that size on; and whose processor time ours has to stay below.
IN_PLACE, IN_PLACE_FROM = 0.85, 16 << 20
CPU_RIVAL = "Gloo"


def word(reached):
    return "reached" if reached else "missed"


def goal(key):
    """("us", most), ("ratio", least), or None."""
    collective, transport, ranks, size = key
    if collective != "all_reduce":
        return ("ratio", 1.0) if size >= 64 << 10 else None
    if size == 4:
        return ("us", MOST_US[transport, ranks]) if (transport, ranks) in MOST_US else None
    wanted = [ratio for least, ratio in RATIOS.get((transport, ranks), []) if size >= least]
    return ("ratio", wanted[-1]) if wanted else None


def verdict(data, key):
    """What is wanted, and whether it is so."""
    wanted, share = goal(key), data.share(key)
    us, (ratios, _) = median_or_none(data.times(key, OURS)), data.ratios(key)
    if wanted is None or us is None:
        return "", ""
    if wanted[0] == "us":
        return f"{wanted[1]} us", word(us <= wanted[1])
    if not ratios:
        return f"{wanted[1]}", ""
    near = share is not None and share >= SHARE
    only_near = key[:3] == ("all_reduce", "tcp", 2) and key[3] >= SHARE_FROM and share is not None
    reached = near if only_near else near or median(ratios) >= wanted[1]
    return f"{wanted[1]}{', 90%' if only_near else ''}", word(reached)


def row_of(data, key, names):
    best = data.ratios(key)[1]
    cells = []
    for name in names:
        text = figure(key[3], median_or_none(data.times(key, name)))
        cells.append(f"**{text}**" if name == best and text != "-" else text)
    share, fastest = data.share(key), data.best_ratio(key)
    return cells + [ratio_text(data.ratios(key)[0]), "-" if fastest is None else f"{fastest:.2f}", "-" if share is None else f"{share:.0%}", *verdict(data, key)]


def table(out, data, keys, first, label):
    """A row for each key: every implementation, the best rival in bold, the ratio to it, the share of plain links, the goal."""
    names = [n for n in data.names if any(data.times(key, n) for key in keys)]
    heads = [first, *names, "ratio", "fastest", "of plain links", "goal", ""]
    out.append(f"| {' | '.join(heads)} |".replace("|  |", "| |"))
    out.append("|---" * len(heads) + "|")
    for key in keys:
        out.append(f"| {' | '.join([label(key), *row_of(data, key, names)])} |")
    out.append("")


def cpu_ratios(data, transport, ranks, size):
    """Our processor time to Gloo's, round by round; where Gloo has no such transport, to that of its TCP, the one it has."""
    ours = data.cell["all_reduce", transport, ranks, size].get(OURS, {})
    theirs = next((cell for t in (transport, "tcp") if (cell := data.cell["all_reduce", t, ranks, size].get(CPU_RIVAL))), {})
    return [r["cpu_s_per_gb"] / theirs[n]["cpu_s_per_gb"] for n, r in ours.items() if n in theirs and theirs[n].get("cpu_s_per_gb")]


def cpu_table(out, data, transport, ranks):
    """Of each implementation, and the verdict on ours: less than Gloo's from 1 MB on."""
    sizes = [s for s in SHOWN if s >= 1 << 20]
    out.append("| CPU s/GB | " + " | ".join(size_text(s) for s in sizes) + " |")
    out.append("|---" * (len(sizes) + 1) + "|")
    for name in data.names:
        values = [median_or_none(data.times(("all_reduce", transport, ranks, s), name, "cpu_s_per_gb")) for s in sizes]
        if any(v is not None for v in values):
            out.append(f"| {name} | " + " | ".join("-" if v is None else f"{v:.2f}" for v in values) + " |")
    ratios = [median_or_none(cpu_ratios(data, transport, ranks, s)) for s in sizes]
    out.append(f"| to {CPU_RIVAL}'s, below 1 | " + " | ".join("-" if r is None else f"{r:.2f} {word(r < 1)}" for r in ratios) + " |")
    out.append("")


def placement_table(out, data, transport, ranks):
    """In place beside out of place, with the verdict, and the median beside the least."""
    sizes = [s for s in SHOWN if ("all_reduce", transport, ranks, s, True) in data.placed]
    out.append("| ours | " + " | ".join(size_text(s) for s in sizes) + " |")
    out.append("|---" * (len(sizes) + 1) + "|")
    rows = {"in place / out of place": [], "median / least": []}  # speeds; times
    for s in sizes:
        apart, inside = (data.placed["all_reduce", transport, ranks, s, p] for p in (False, True))
        both = [apart[n]["time_us"] / inside[n]["time_us"] for n in apart if n in inside]
        judged = f" {word(median(both) >= IN_PLACE)}" if both and s >= IN_PLACE_FROM else ""
        rows["in place / out of place"].append(f"{median(both):.2f}{judged}" if both else "-")
        rows["median / least"].append(f"{median(r['time_us'] / r['min_us'] for r in apart.values()):.2f}")
    for name, cells in rows.items():
        out.append(f"| {name} | " + " | ".join(cells) + " |")
    out.append("")


NAMES = {"tcp": "TCP", "shm": "Shared memory"}


def head(out, data):
    m = data.head["machine"]
    out.append("# PCCL beside Gloo, Open MPI and MPICH")
    out.append("")
    out.append(f"{data.head['date']}, {m['cores']} cores ({m['model']}), {m['memory_gib']} GiB, Linux {m['kernel']}; {data.rounds} "
               f"round{'s' if data.rounds > 1 else ''}, load before each start {min(data.loads):.1f} to {max(data.loads):.1f} (median {median(data.loads):.1f}); "
               f"{data.wrong} wrong elements.")
    out.append("")
    out.append("Medians over the rounds: us below 64 KB, GB/s (size / time) from there on; the better of in place and out of "
               "place; the best rival in bold. Ratios to it are of speeds, within a round: median (least-most), and of the fastest round of each. "
               f"Processor time is to be below {CPU_RIVAL}'s from 1 MB on, in place at least {IN_PLACE} of the speed out of place from "
               f"{size_text(IN_PLACE_FROM)} on: medians of the ratios within rounds.")
    for what in data.head["missing"]:
        out.append(f"\nMissing: {what}.")
    out.append("")


def write_table(data, path):
    out = []
    head(out, data)
    collectives = sorted({key[0] for key in data.cell} - {"all_reduce"})
    for transport in ("tcp", "shm"):
        for ranks in data.ranks:
            keys = [k for k in (("all_reduce", transport, ranks, s) for s in SHOWN) if k in data.cell]
            others = sorted(k for k in data.cell if k[0] in collectives and k[1:3] == (transport, ranks))
            if keys:
                out += [f"## All-reduce: {NAMES[transport]}, {ranks} processes", ""]
                table(out, data, keys, "size", lambda key: size_text(key[3]))
                cpu_table(out, data, transport, ranks)
                placement_table(out, data, transport, ranks)
            if others:
                out += [f"## Others: {NAMES[transport]}, {ranks} processes", ""]
                table(out, data, others, "collective", lambda key: f"{key[0]} {size_text(key[3])}")
    path.write_text("\n".join(out))


# ---- the picture ----------------------------------------------------------------------------------------------------

PANEL, GAP, MARGIN = (420, 300), 60, 60


def curve(points, colour, dash=""):
    path = " ".join(f"{'M' if i == 0 else 'L'}{x:.1f} {y:.1f}" for i, (x, y) in enumerate(points))
    return f'<path fill="none" stroke="{colour}" stroke-width="2" {dash} d="{path}"/>'


def panel(data, transport, ranks, left, top):
    """Speed of all-reduce over size, both axes logarithmic: 4 B to 256 MB, 10^-4 to 100 GB/s."""
    width, height = PANEL

    def place(size, us):
        x = left + (math.log2(size) - 2) / 26 * width
        y = top + height - (math.log10(size / 1e3 / us) + 4) / 6 * height
        return x, min(max(y, top), top + height)
    out = [f'<text x="{left}" y="{top - 10}" font-size="14">{NAMES[transport]}, {ranks} processes</text>']
    for power in range(2, 29, 4):
        x = place(2 ** power, 1)[0]
        out.append(f'<path stroke="#ddd" d="M{x:.1f} {top} V{top + height}"/><text x="{x:.1f}" y="{top + height + 16}" '
                   f'text-anchor="middle">{size_text(2 ** power)}</text>')
    for power in range(-4, 3):
        y = top + height - (power + 4) / 6 * height
        out.append(f'<path stroke="#ddd" d="M{left} {y:.1f} H{left + width}"/><text x="{left - 6}" y="{y + 4:.1f}" '
                   f'text-anchor="end">{10.0 ** power:g}</text>')
    sizes = sorted(k[3] for k in data.cell if k[:3] == ("all_reduce", transport, ranks))
    for name in data.names + ["plain links"]:
        field = ("limit_us", OURS) if name == "plain links" else ("time_us", name)
        points = [(s, median_or_none(data.times(("all_reduce", transport, ranks, s), field[1], field[0]))) for s in sizes]
        points = [place(s, us) for s, us in points if us]
        if points:
            out.append(curve(points, COLOURS[name], 'stroke-dasharray="4 4"' if name == "plain links" else ""))
    return out


def write_plot(data, path):
    width = MARGIN * 2 + len(data.ranks) * PANEL[0] + (len(data.ranks) - 1) * GAP
    height = MARGIN * 2 + 2 * PANEL[1] + GAP + 40
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
           'font-family="sans-serif" font-size="11">', '<rect width="100%" height="100%" fill="white"/>',
           f'<text x="{MARGIN}" y="24" font-size="16">all-reduce, float sum: GB/s over size, {data.head["date"]}</text>']
    for row, transport in enumerate(("tcp", "shm")):
        for column, ranks in enumerate(data.ranks):
            out += panel(data, transport, ranks, MARGIN + column * (PANEL[0] + GAP), MARGIN + row * (PANEL[1] + GAP))
    for i, name in enumerate(data.names + ["plain links"]):
        out.append(f'<text x="{MARGIN + 110 * i}" y="{height - 20}" font-size="13" fill="{COLOURS[name]}">{name}</text>')
    out.append("</svg>\n")
    path.write_text("\n".join(out))


def write(raw, table_path, plot_path):
    data = Data(raw)
    write_table(data, table_path)
    write_plot(data, plot_path)
