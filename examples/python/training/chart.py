"""Charts of curves over steps, with marks where something happened: as text for any terminal, and as a PNG if matplotlib is installed."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import importlib.util
import math

_SIGNS = "*+ox"  # of curves, by their order


class Chart:
    """Curves of points (x, y), and marks at an x with what happened there; both are drawn in the order in which they come.

    `log`: the vertical axis of the PNG is logarithmic."""

    def __init__(self, title: str, x_name: str, y_name: str, log: bool = False) -> None:
        self.title = title
        self.x_name = x_name
        self.y_name = y_name
        self.log = log
        self.curves: dict[str, list[tuple[float, float]]] = {}
        self.marks: list[tuple[float, str]] = []

    def point(self, curve: str, x: float, y: float) -> None:
        """Adds one; what is not finite is left out."""
        if math.isfinite(y):
            self.curves.setdefault(curve, []).append((x, y))

    def mark(self, x: float, text: str) -> None:
        """Something happened at x."""
        self.marks.append((x, text))

    def text(self, width: int = 72, height: int = 12) -> str:
        """The chart in so many columns and lines, and below it what the letters of its marks stand for; "" without any point."""
        points = [point for curve in self.curves.values() for point in curve]
        if not points:
            return ""
        left, right = min(x for x, _ in points), max(x for x, _ in points)
        low, high = min(y for _, y in points), max(y for _, y in points)
        columns = width - 10

        def column(x: float) -> int:
            return round((x - left) / ((right - left) or 1.0) * (columns - 1))

        rows = [[" "] * columns for _ in range(height)]
        letters = [" "] * columns
        for number, (x, _) in enumerate(self.marks):
            at = min(max(column(x), 0), columns - 1)
            letters[at] = chr(ord("a") + number % 26)
            for row in rows:
                row[at] = ":"
        for sign, curve in zip(_SIGNS, self.curves.values()):
            for x, y in curve:
                rows[height - 1 - round((y - low) / ((high - low) or 1.0) * (height - 1))][column(x)] = sign
        names = ", ".join(f"{sign} {name}" for sign, name in zip(_SIGNS, self.curves))
        lines = [f"{self.title}: {names}"]
        for number, row in enumerate(rows):
            scale = {0: f"{high:9.4g}", height - 1: f"{low:9.4g}"}.get(number, " " * 9)
            lines.append(f"{scale}|{''.join(row)}".rstrip())
        lines.append(" " * 9 + "+" + "-" * columns)
        if self.marks:
            lines.append((" " * 10 + "".join(letters)).rstrip())
        lines.append(f"{left:10g}{self.x_name:^{max(0, columns - 6)}}{right:6g}")
        lines += [f"  {chr(ord('a') + number % 26)}: {text}" for number, (_, text) in enumerate(self.marks)]
        return "\n".join(lines)


def can_draw() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def draw(path: str, charts: list[Chart]) -> None:
    """Writes the charts one below the other as a file of the kind that its name says, PNG without one.  matplotlib must be installed."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 1 + 3.2 * len(charts)), layout="constrained")
    FigureCanvasAgg(figure)
    for row, chart in enumerate(charts, start=1):
        axes = figure.add_subplot(len(charts), 1, row, title=chart.title, xlabel=chart.x_name, ylabel=chart.y_name)
        for number, (name, curve) in enumerate(chart.curves.items()):
            style = {"linestyle": "--", "color": "grey"} if number else {}
            axes.plot([x for x, _ in curve], [y for _, y in curve], label=name, **style)
        for x, text in chart.marks:
            axes.axvline(x, color="grey", linestyle=":")
            axes.annotate(text, (x, 0.98), xycoords=("data", "axes fraction"), rotation=90, ha="right", va="top", fontsize=7)
        if chart.log:
            axes.set_yscale("log")
        axes.legend()
    figure.savefig(path, dpi=120)
