#!/usr/bin/env python3
"""draw_charts.py [--check] - draws the charts of docs/pictures from the tables of docs/internals/MEASUREMENTS.md.

    bandwidth.svg   all-reduce beside Gloo, Open MPI and MPICH: speed over size
    recovery.svg    from the loss of a rank to the result of the retry

The pictures carry both their light and their dark colours, and a viewer takes those of its surroundings.  With --check nothing is
written, and a picture that differs from its table is reported.  The last line is then "N passed, N failed".
SPDX-License-Identifier: MIT
"""
import math
import re
import sys

from written import ROOT, write_or_check

TABLES = ROOT / "docs/internals/MEASUREMENTS.md"
STYLE = """<style>
text { font: 13px sans-serif; fill: #24292f } .small { font-size: 11px } .title { font-weight: bold }
.grid { stroke: #d0d7de; stroke-width: 1 } .axis { stroke: #57606a; stroke-width: 1 }
.s0 { stroke: #0969da; fill: #0969da } .s1 { stroke: #bc4c00; fill: #bc4c00 }
.s2 { stroke: #1a7f37; fill: #1a7f37 } .s3 { stroke: #8250df; fill: #8250df }
.line { fill: none; stroke-width: 2 } .line.s0 { stroke-width: 3 } .bar { stroke: none } .faint { opacity: 0.45 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .grid { stroke: #30363d } .axis { stroke: #8b949e }
.s0 { stroke: #58a6ff; fill: #58a6ff } .s1 { stroke: #f0883e; fill: #f0883e }
.s2 { stroke: #56d364; fill: #56d364 } .s3 { stroke: #d2a8ff; fill: #d2a8ff }
.line { fill: none } .bar { stroke: none }
}
</style>"""
DASHES = ["", "8 4", "2 4", "10 3 2 3"]  # a legend that does without colours


def table(heading):
    """Rows of the first table below a heading: (header cells, [cells])."""
    text = TABLES.read_text()
    found = re.search(rf"^#+ {re.escape(heading)}\n.*?(^\|.*?)(?:\n\n|\Z)", text, re.M | re.S)
    rows = [[cell.strip().strip("*") for cell in line.strip("|").split("|")] for line in found.group(1).splitlines()]
    return rows[0], rows[2:]


def size_of(text):
    """Bytes of '4 KB' or '64 MB'."""
    number, unit = text.split()
    return float(number) * {"B": 1, "KB": 1 << 10, "MB": 1 << 20}[unit]


def speed_of(text, size):
    """GB/s of a cell of the comparison: a speed, or for small sizes a time in us or ms; None without a figure."""
    match = re.match(r"([\d.]+)( us| ms)?$", text)
    if match is None:
        return None
    value = float(match.group(1))
    return {" us": size / value / 1e3, " ms": size / value / 1e6, None: value}[match.group(2)]


def element(kind, body=None, **attributes):
    said = " ".join(f'{name.rstrip("_").replace("_", "-")}="{value}"' for name, value in attributes.items())
    return f"<{kind} {said}/>" if body is None else f"<{kind} {said}>{body}</{kind}>"


def number(value):
    return f"{value:.1f}".removesuffix(".0")


class Panel:
    """Axes of one chart, logarithmic both ways, at a place of the picture."""

    def __init__(self, left, top, width, height, across, up):
        self.left, self.top, self.width, self.height = left, top, width, height
        self.across, self.up = across, up  # (least, most)

    def x(self, value):
        low, high = (math.log(v) for v in self.across)
        return self.left + self.width * (math.log(value) - low) / (high - low)

    def y(self, value):
        low, high = (math.log(v) for v in self.up)
        return self.top + self.height * (1 - (math.log(value) - low) / (high - low))

    def frame(self, title, sizes, speeds, unit):
        out = [element("text", title, x=self.left, y=self.top - 12, class_="title")]
        for value in speeds:
            out.append(element("line", x1=self.left, y1=number(self.y(value)), x2=self.left + self.width, y2=number(self.y(value)), class_="grid"))
            out.append(element("text", f"{value:g}", x=self.left - 6, y=number(self.y(value) + 4), text_anchor="end", class_="small"))
        for value, name in sizes:
            out.append(element("text", name, x=number(self.x(value)), y=self.top + self.height + 18, text_anchor="middle", class_="small"))
        bottom = self.top + self.height
        out.append(element("line", x1=self.left, y1=bottom, x2=self.left + self.width, y2=bottom, class_="axis"))
        out.append(element("text", unit, x=self.left - 40, y=self.top - 12, class_="small"))
        return out

    def line(self, points, series):
        path = " ".join(f"{number(self.x(x))},{number(self.y(y))}" for x, y in points)
        dots = [element("circle", cx=number(self.x(x)), cy=number(self.y(y)), r=2.5, class_=f"s{series}") for x, y in points]
        return [element("polyline", points=path, class_=f"line s{series}", stroke_dasharray=DASHES[series] or "none"), *dots]


def picture(width, height, name, parts):
    body = "\n".join([STYLE, element("title", name), *parts])
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">\n{body}\n</svg>\n'


def bandwidth():
    names = ["PCCL", "Open MPI", "MPICH", "Gloo"]
    parts = []
    for place, (heading, title) in enumerate([("TCP, 2 processes", "2 processes, TCP"), ("Shared memory, 2 processes", "2 processes, one host's memory")]):
        header, rows = table(heading)
        panel = Panel(60 + 390 * place, 50, 310, 220, (1 << 12, 1 << 28), (0.005, 20))
        ticks = [(1 << 12, "4 KB"), (1 << 16, "64 KB"), (1 << 20, "1 MB"), (1 << 24, "16 MB"), (1 << 28, "256 MB")]
        parts += panel.frame(title, ticks, [0.01, 0.1, 1, 10], "GB/s")
        for series, name in enumerate(names):
            column = header.index(name.replace("PCCL", "pccl")) if name.replace("PCCL", "pccl") in header else None
            points = [(size_of(row[0]), speed_of(row[column], size_of(row[0]))) for row in rows if column]
            points = [(size, speed) for size, speed in points if size >= 1 << 12 and speed]
            parts += panel.line(points, series) if points else []
    for series, name in enumerate(names):
        left = 60 + 130 * series
        parts.append(element("line", x1=left, y1=316, x2=left + 34, y2=316, class_=f"line s{series}", stroke_dasharray=DASHES[series] or "none"))
        parts.append(element("text", name, x=left + 42, y=320))
    parts.append(element("text", "higher is better", x=790, y=320, text_anchor="end", class_="small"))
    return picture(800, 335, "All-reduce: speed over size, beside Open MPI, MPICH and Gloo", parts)


def recovery():
    _, rows = table("Recovery")
    rows = [row for row in rows if row[0][0].isdigit() or row[0].endswith("MiB")]
    ranks, bars = "", []
    for row in rows:
        ranks, size = row[0].split(", ") if ", " in row[0] else (ranks, row[0])
        bars.append((f"{ranks}, {size}", *(float(row[column].split()[0]) for column in (1, 4))))
    most = max(bar[1] + bar[2] for bar in bars)
    parts = [element("text", "A rank is killed during an all-reduce over TCP: milliseconds until the survivors have", x=20, y=24, class_="title")]
    for place, (name, error, retry) in enumerate(bars):
        top, scale = 44 + 30 * place, 520 / most
        parts.append(element("text", name, x=130, y=top + 15, text_anchor="end"))
        parts.append(element("rect", x=140, y=top, width=number(max(2, error * scale)), height=20, class_="bar s1"))
        parts.append(element("rect", x=number(140 + max(2, error * scale)), y=top, width=number(retry * scale), height=20, class_="bar s0"))
        parts.append(element("text", f"{error:g} + {retry:g} ms", x=number(150 + (error + retry) * scale), y=top + 15, class_="small"))
    bottom = 44 + 30 * len(bars) + 16
    for series, left, name in ((1, 140, "the error"), (0, 250, "then the result of the retry")):
        parts.append(element("rect", x=left, y=bottom - 10, width=14, height=12, class_=f"bar s{series}"))
        parts.append(element("text", name, x=left + 22, y=bottom))
    return picture(800, bottom + 16, "From the loss of a rank to the error and to the result of the retry", parts)


PICTURES = {"bandwidth.svg": bandwidth, "recovery.svg": recovery}


if __name__ == "__main__":
    sys.exit(write_or_check([(f"{name} is its table's", ROOT / "docs/pictures" / name, draw()) for name, draw in PICTURES.items()]))
