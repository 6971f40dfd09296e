#!/usr/bin/env python3
"""pictures.py [--check] - draws the pictures of docs/pictures from data, or checks that those there are what the data gives.

    layers.svg      the folders of src, an arrow where one includes another's headers; from the includes themselves
    allreduce.svg   a ring all-reduce of four ranks, step by step; from a computation, whose sums are checked
    kill.svg        a time line from a kill to the result of the retry; from docs/pictures/kill.json: what `pccl bench --json` wrote, and the machine

An arrow that follows from others is left out.  Each picture is one test with --check, and so is what its data must satisfy.
SPDX-License-Identifier: MIT
"""
import json
import random
import re
import sys

from written import ROOT, write_or_check

PICTURES = ROOT / "docs" / "pictures"
STYLE = """<style>
text{font:14px sans-serif;fill:#1f2328}.small{font-size:12px}.quiet{fill:#59636e}.title{font-size:16px;font-weight:bold}
.box{fill:#ddf4ff;stroke:#0969da}.done{fill:#dafbe1;stroke:#1a7f37}.lost{fill:#ffebe9;stroke:#cf222e}.wait{fill:#fff8c5;stroke:#9a6700}
.arrow{stroke:#59636e;fill:none;stroke-width:1.3}.head{fill:#59636e}.axis{stroke:#59636e;fill:none}
@media (prefers-color-scheme:dark){text{fill:#f0f6fc}.quiet{fill:#9198a1}
.box{fill:#0c2d6b;stroke:#4493f8}.done{fill:#033a16;stroke:#3fb950}.lost{fill:#67060c;stroke:#f85149}.wait{fill:#4b2900;stroke:#d29922}
.arrow,.axis{stroke:#9198a1}.head{fill:#9198a1}}
</style>
<defs><marker id="h" markerWidth="8" markerHeight="8" refX="7" refY="4" orient="auto"><path class="head" d="M0 0 L8 4 L0 8 z"/></marker></defs>
"""


def text(x, y, words, kind="", anchor="middle"):
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{f" class={chr(34)}{kind}{chr(34)}" if kind else ""}>{words}</text>\n'


def box(x, y, width, height, kind="box"):
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5"/>\n'


def arrow(x, y, to_x, to_y):
    return f'<path class="arrow" marker-end="url(#h)" d="M{x:g} {y:g} L{to_x:g} {to_y:g}"/>\n'


def picture(width, height, what, body):
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img">\n'
            f"<title>{what}</title>\n{STYLE}{body}</svg>\n")


# ---- the layers ----

def includes():
    """Which folder of src includes headers of which others."""
    folders = sorted(path.name for path in (ROOT / "src").iterdir() if path.is_dir())
    found = {name: set() for name in folders}
    for file in (ROOT / "src").rglob("*.[ch]"):
        layer = file.relative_to(ROOT / "src").parts[0]
        for other in re.findall(r'^#include "(\w+)/', file.read_text(), re.M):
            if other in found and other != layer:
                found[layer].add(other)
    return found


def reach(graph, name):
    seen, todo = set(), list(graph[name])
    while todo:
        other = todo.pop()
        if other not in seen:
            seen.add(other)
            todo += graph[other]
    return seen


def places(graph, height, width):
    """Where each box stands in its row, so that arrows pass no box and rarely cross: the best of many small moves, always the same."""
    dice = random.Random(1)
    columns = range(80, width - 79, 20)
    arrows = [(name, other) for name in graph for other in graph[name]]

    def cost(x):
        def passes(name, other, row):
            return x[name] + (x[other] - x[name]) * (height[name] - row) / (height[name] - height[other])

        boxes = sum(130 > abs(x[n] - x[m]) for n in graph for m in graph if n < m and height[n] == height[m])
        hit = sum(abs(passes(name, other, height[n]) - x[n]) < 76
                  for name, other in arrows for n in graph if height[other] < height[n] < height[name])
        crossed = 0
        for i, (a, b) in enumerate(arrows):
            for c, d in arrows[:i]:
                low, high = max(height[b], height[d]), min(height[a], height[c])
                crossed += low < high and (passes(a, b, low) - passes(c, d, low)) * (passes(a, b, high) - passes(c, d, high)) < 0
        return 1000 * boxes + 100 * hit + 20 * crossed + sum(abs(x[name] - x[other]) for name, other in arrows) / 100

    best, least = None, None
    for _ in range(6):
        x = {name: dice.choice(columns) for name in graph}
        now = cost(x)
        for _ in range(1500):
            name = dice.choice(sorted(graph))
            fresh = {**x, name: dice.choice(columns)}
            then = cost(fresh)
            if then <= now:
                x, now = fresh, then
        if least is None or now < least:
            best, least = x, now
    return best


def draw_layers():
    graph = includes()
    beyond = {name: reach(graph, name) for name in graph}
    assert not any(name in beyond[name] for name in graph), "the layers include each other in a circle"
    direct = {name: sorted(o for o in graph[name] if not any(o in beyond[p] for p in graph[name])) for name in graph}
    # What the arrows drawn lead to is what the includes lead to: nothing is lost with those left out.
    assert all(reach(direct, name) == beyond[name] for name in graph)
    height = {name: 0 for name in graph}
    for _ in graph:
        for name in graph:
            height[name] = max([height[other] + 1 for other in graph[name]], default=0)
    width, step = 760, 74
    bottom = 60 + step * (max(height.values()) + 1)
    at = {name: (x, bottom - step * (height[name] + 1)) for name, x in places(direct, height, width).items()}
    body = text(width / 2, 28, "The folders of src: an arrow leads to what a folder includes", "title")
    for name in graph:
        for other in direct[name]:
            body += arrow(at[name][0], at[name][1] + 17, at[other][0], at[other][1] - 18)
    for name, (x, y) in at.items():
        body += box(x - 60, y - 17, 120, 34) + text(x, y + 5, name)
    return picture(width, bottom - 40, "The layers of the library", body)


# ---- one all-reduce ----

WORLD = 4


def ring_all_reduce():
    """The state after each step: for each rank and part the ranks whose values are in it; as src/collectives/ring.c orders them."""
    held = [[frozenset({rank}) for _ in range(WORLD)] for rank in range(WORLD)]
    states, moves = [held], []
    for step in range(2 * (WORLD - 1)):
        adds = step < WORLD - 1
        fresh, sent = [list(parts) for parts in held], []
        for rank in range(WORLD):
            to, part = (rank + 1) % WORLD, (rank - step - 1) % WORLD
            fresh[to][part] = held[rank][part] | held[to][part] if adds else held[rank][part]
            sent.append((rank, to, part))
        held = fresh
        states.append(held)
        moves.append(sent)
    assert all(part == frozenset(range(WORLD)) for parts in held for part in parts), "an element lacks a contribution"
    assert all(states[WORLD - 1][rank][rank] == frozenset(range(WORLD)) for rank in range(WORLD)), "rank r does not own part r"
    return states, moves


def draw_allreduce():
    states, moves = ring_all_reduce()
    left, top, cell, across, down = 96, 92, 30, 150, 62
    width, height = left + across * len(states), top + down * WORLD + 74
    body = text(width / 2, 28, "A ring all-reduce of four ranks: each part travels around once to be summed, and once more as the sum", "title")
    for rank in range(WORLD):
        body += text(left - 16, top + down * rank + 20, f"rank {rank}", anchor="end")
    for number, state in enumerate(states):
        x = left + across * number
        name = "input" if number == 0 else f"step {number}: " + ("sums" if number < WORLD else "copies")
        body += text(x + 2 * cell, top - 18, name, "small quiet")
        for rank in range(WORLD):
            for part in range(WORLD):
                whole = len(state[rank][part]) == WORLD
                body += box(x + cell * part, top + down * rank, cell - 2, cell, "done" if whole else "wait" if len(state[rank][part]) > 1 else "box")
                body += text(x + cell * part + cell / 2 - 1, top + down * rank + 20, str(len(state[rank][part])), "small")
        for rank, to, part in moves[number] if number < len(moves) else []:
            target = x + across + cell * part + cell / 2 - 1
            if to:
                body += arrow(x + cell * part + cell / 2 - 1, top + down * rank + cell + 1, target, top + down * to - 2)
    y = top + down * WORLD + 8
    body += text(left, y, "Each square is a quarter of the buffer; its number says how many ranks' values are in it. Rank 3 sends to rank 0 (not drawn).",
                 "small", "start")
    body += text(left, y + 22, f"Each rank sends {2 * (WORLD - 1)} quarters: 2 (n - 1) / n = {2 * (WORLD - 1) / WORLD:g} times the buffer.", "small", "start")
    return picture(width, height, "A ring all-reduce", body)


# ---- a kill ----

def kill():
    """The round whose retry took the median time, and the run that it is of."""
    run = json.loads((PICTURES / "kill.json").read_text())
    rounds = sorted(run["recoveries"], key=lambda one: one["retried_ms"] - one["error_ms"])
    assert rounds and all(one["wrong"] == 0 for one in rounds), "a round gave wrong values"
    return run, rounds[len(rounds) // 2]


def draw_kill():
    run, one = kill()
    closed, error, retried = one["closed_ms"], one["error_ms"], one["retried_ms"]
    assert 0 <= closed and 0 < error < retried
    width, left, right, top, down = 860, 110, 40, 78, 44
    end = retried * 1.08

    def at(ms):
        return left + (width - left - right) * ms / end

    body = text(width / 2, 28, f"Rank {one['killed']} of {run['ranks']} is killed inside an all-reduce of {one['size'] >> 20} MiB", "title")
    for rank in range(run["ranks"]):
        y = top + down * rank
        body += text(left - 14, y + 19, f"rank {rank}", anchor="end")
        if rank == one["killed"]:
            body += box(at(0), y, at(closed) - at(0), 28, "lost")
            body += text(at(closed) + 8, y + 19, "killed at 0; its connections are closed here", "small", "start")
            continue
        body += box(at(0), y, at(error) - at(0), 28, "wait") + box(at(error), y, at(retried) - at(error), 28, "done")
        body += text((at(error) + at(retried)) / 2, y + 19, "the retry", "small")
    y = top + down * run["ranks"] + 4
    body += f'<path class="axis" d="M{left} {y} H{width - right}"/>\n'
    ends = [(0, "kill", 40), (closed, f"connections closed, {closed:.1f} ms", 60), (error, f"last error, {error:.1f} ms", 80),
            (retried, f"last result of the retry, {retried:.1f} ms", 40)]
    for ms, words, below in ends:
        body += f'<path class="axis" d="M{at(ms):.1f} {top - 6} V{y + below - 14}"/>\n'
        body += text(at(ms) + 4 if ms < retried / 2 else at(ms) - 4, y + below - 16, words, "small", "start" if ms < retried / 2 else "end")
    body += text(left, y + 92, f"pccl bench {run['version']}, {run['ranks']} ranks of one host, data over {run['transport']}; the same all-reduce among the "
                 f"survivors takes {one['after_ms']:.1f} ms", "small quiet", "start")
    body += text(left, y + 110, run["machine"], "small quiet", "start")
    return picture(width, y + 126, "A kill as a time line", body)


DRAWN = {"layers.svg": draw_layers, "allreduce.svg": draw_allreduce, "kill.svg": draw_kill}


if __name__ == "__main__":
    sys.exit(write_or_check([(f"docs/pictures/{name} is what its data gives", PICTURES / name, draw()) for name, draw in DRAWN.items()]))
