"""The lists of a split: checks of one list, and whether a group's members have passed the same; all ranks get the error of a mistake."""
# SPDX-License-Identifier: MIT
from __future__ import annotations

import hashlib
import struct
from typing import Mapping, Sequence

_FORM = "=qqq8s"  # mistake, ranks of the group, its lowest, digest of the list
_MISTAKES = ("", "Invalid rank", "Duplicate ranks", "is not included in the provided ranks list")


def said(ranks: Sequence[int], rank: int, size: int, hints: Mapping[str, str]) -> tuple[bytes, list[int]]:
    """The message of this rank about its list to the others, and its group, [] if it is in none."""
    mistake, mine = _mistake(ranks, rank, size, hints)
    digest = hashlib.sha256(struct.pack(f"={len(mine)}q", *mine)).digest()[:8] if mine else bytes(8)
    return struct.pack(_FORM, mistake, len(mine), min(mine, default=-1), digest), mine


def _mistake(ranks: Sequence[int], rank: int, size: int, hints: Mapping[str, str]) -> tuple[int, list[int]]:
    """An index of `_MISTAKES`."""
    mine = [r for r in ranks if isinstance(r, int) and 0 <= r < size]
    if len(mine) != len(ranks):
        return 1, []
    if len(set(mine)) != len(mine):
        return 2, []
    if mine and rank not in mine:
        return (0, []) if hints.get("non_members", "").strip().lower() == "none" else (3, [])
    return 0, mine


def check(heard: bytes, ranks: Sequence[int], rank: int) -> None:
    """RuntimeError, on all ranks: a rank has passed a wrong list, or members of one group different ones."""
    told = list(struct.iter_unpack(_FORM, heard))
    for other, (mistake, *_) in enumerate(told):
        own = f" {list(ranks)}" if other == rank else ""
        if mistake == 3:
            raise RuntimeError(f"split: rank {other} {_MISTAKES[3]}{own}; pass [] to take no part")
        if mistake:
            raise RuntimeError(f"split: {_MISTAKES[mistake]} in the list of rank {other}{own}")
    members: dict[tuple[int, int, bytes], int] = {}
    for _, count, first, digest in told:
        if count:
            members[count, first, digest] = members.get((count, first, digest), 0) + 1
    for (count, first, _), called in members.items():
        if called != count:
            raise RuntimeError(
                f"split: the group of {count} ranks that begins at rank {first} was passed by {called} of them; all of a group pass the "
                "same list"
            )
