#!/usr/bin/env python3
"""solver_oracle.py SHARES_MAIN [NETWORKS] - the best shares of drawn networks, by the library and by scipy's linprog.

The linear programme is written down here a second time.  Objectives must agree within 1e-6 of each other, and the shares
that the library tells must take the time that it tells.  Prints what differs, PASS or FAIL per kind of network, then
"N passed, N failed".
SPDX-License-Identifier: MIT
"""
import subprocess
import sys

import numpy
from scipy.optimize import linprog

from rules import report

KINDS = ["links", "pairs", "sites", "pairs_and_sites", "degenerate", "disconnected", "all_leaves", "wide"]
WITHIN = 1e-6


def draw(kind, rng):
    """A network as a dictionary; rates span three orders of magnitude."""
    n = int(rng.integers(2, 33 if kind == "wide" else 17))
    links = numpy.exp(rng.normal(0, 1, (n, 2)))
    path = numpy.full((n, n), numpy.inf)
    leaf = rng.random(n) < rng.choice([0, 0.3])
    sites = 0
    if kind in ("pairs", "pairs_and_sites", "wide"):
        path = numpy.exp(rng.normal(-1, 1.2, (n, n)))
    if kind == "degenerate":  # few different rates: many vertices are one point
        links = rng.integers(1, 3, (n, 2)).astype(float)
        path = rng.choice([0.5, 1.0, numpy.inf], (n, n))
    if kind == "disconnected":
        path = numpy.where(rng.random((n, n)) < 0.1, 0, numpy.exp(rng.normal(0, 1, (n, n))))
    if kind == "all_leaves":
        leaf[:] = True
    if kind in ("sites", "pairs_and_sites"):
        sites = int(rng.integers(1, 6))
    return {"n": n, "sites": sites, "links": links, "path": path, "leaf": leaf, "site": rng.integers(0, max(sites, 1), n),
            "site_links": numpy.exp(rng.normal(0, 1, (sites, 2)))}


def text(net):
    rows = [f"{net['n']} {net['sites']}"]
    rows += [f"{up:.17g} {down:.17g} {int(leaf)} {site}"
             for (up, down), leaf, site in zip(net["links"], net["leaf"], net["site"])]
    rows += [" ".join(f"{rate:.17g}" for rate in row) for row in net["path"]]
    rows += [f"{up:.17g} {down:.17g}" for up, down in net["site_links"]]
    return "\n".join(rows)


def inequalities(net):
    """Rows (a, rate, load): a x + load <= T rate; and who may own."""
    n, path = net["n"], numpy.minimum(net["path"], net["path"].T)
    linked = (path > 0) & ~numpy.outer(net["leaf"], net["leaf"])
    owns = [not net["leaf"][i] and all(linked[i, j] for j in range(n) if j != i) for i in range(n)]
    rows = [((n - 2) * numpy.eye(n)[i], net["links"][i].min(), 1) for i in range(n)]
    for i in range(n):
        rows += [(numpy.eye(n)[i] + numpy.eye(n)[j], path[i, j], 0) for j in range(i) if linked[i, j]]
    for site in range(net["sites"]):
        inside = net["site"] == site
        members = inside.sum()
        if 0 < members < n:
            rows.append(((n - 2 * members) * inside.astype(float), net["site_links"][site].min(), members))
    return [row for row in rows if numpy.isfinite(row[1])], owns


def wanted(net):
    """The least time, or None if nobody may own."""
    rows, owns = inequalities(net)
    if not any(owns):
        return None
    a = numpy.array([numpy.append(row, -rate) for row, rate, _ in rows])
    scale = numpy.abs(a).max(axis=1)
    answer = linprog([0] * net["n"] + [1], A_ub=a / scale[:, None], b_ub=[-load / s for (_, _, load), s in zip(rows, scale)],
                     A_eq=[[1] * net["n"] + [0]], b_eq=[1], bounds=[(0, None if o else 0) for o in owns] + [(0, None)])
    if not answer.success:
        raise SystemExit(f"solver_oracle: linprog failed: {answer.message}")
    return answer.x[-1]


def differences(net, line):
    want = wanted(net)
    if want is None or line == "none":
        if (want is None) != (line == "none"):
            yield f"{line}, expected {want}\n{text(net)}"
        return
    told, *share = map(float, line.split())
    share = numpy.array(share)
    rows, owns = inequalities(net)
    takes = max((row @ share + load) / rate for row, rate, load in rows)
    if abs(told - want) > WITHIN * want:
        yield f"time {told}, expected {want}\n{text(net)}"
    if abs(takes - told) > WITHIN * told or abs(share.sum() - 1) > WITHIN or share.min() < 0:
        yield f"shares take {takes}, told {told}, sum {share.sum()}\n{text(net)}"
    if any(s > 0 and not o for s, o in zip(share, owns)):
        yield f"somebody owns who may not: {share}\n{text(net)}"


def of_kind(program, kind, count):
    rng = numpy.random.default_rng(KINDS.index(kind) + 1)
    nets = [draw(kind, rng) for _ in range(count)]
    answer = subprocess.run([program], input="\n".join(map(text, nets)) + "\n", capture_output=True, text=True, check=True)
    lines = answer.stdout.splitlines()
    if len(lines) != count:
        yield f"{len(lines)} answers to {count} networks"
    for net, line in zip(nets, lines):
        yield from differences(net, line)


if __name__ == "__main__":
    networks = int(sys.argv[2]) if len(sys.argv) > 2 else 2000
    each = -(-networks // len(KINDS))
    sys.exit(report((f"shares_are_those_of_linprog: {each} networks, {kind}", of_kind(sys.argv[1], kind, each)) for kind in KINDS))
