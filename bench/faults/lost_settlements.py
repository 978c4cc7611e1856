"""Finds settlements that were answered and then lost: an item was known to be over, and ran again. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from .journal import FATAL, START, SUCCESS, Line
from .known_too_soon import KnownProgress
from .verdict import Finding


def known_done(ids: Iterable[str], seen: Sequence[KnownProgress]) -> dict[str, float]:
    """The time at which each item of the streams was first known as done."""
    there: dict[str, list[int]] = defaultdict(list)
    for id in ids:
        place, _, position = id.rpartition("/")
        if position.isdigit():
            there[place].append(int(position))
    for positions in there.values():
        positions.sort()
    known: dict[str, float] = {}
    reached: dict[str, int] = {}
    for at, place, done in seen:
        positions = there[place]
        below = positions[bisect_left(positions, reached.get(place, 0)) : bisect_left(positions, done.position)]
        reached[place] = max(reached.get(place, 0), done.position)
        for settled in (*below, *done.ahead):
            known.setdefault(f"{place}/{settled}", at)
    return known


def ran_again(lines: Iterable[Line], known: Mapping[str, float]) -> list[Finding]:
    """Findings about executions that began after their item was known to be over, one for each item. A stream's item
    that failed is passed too, and comes back from the delay service: only items that had ended for good by then
    count."""
    over: set[str] = set()
    found: dict[str, Finding] = {}
    for line in sorted(lines, key=lambda line: line.at):
        at = known.get(line.id)
        if at is None:
            continue
        if line.word in (SUCCESS, FATAL) and line.at <= at:
            over.add(line.id)
        elif line.word == START and line.at > at and line.id in over:
            detail = f"ran {line.at - at:.3f} s after it was known to be over"
            found.setdefault(line.id, Finding("again", line.id, line.at, detail))
    return list(found.values())
