"""Compares progress that was reported while everything broke with the items that were done by the journal. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .journal import CRASH, FATAL, RETRY, SUCCESS, Line
from .verdict import Finding

#: After these words an item is done, or (a retry) waits in the delay service: its position may be passed. A crash is
#: written by a function that is about to end its process, and is a failure like others.
_MAY_PASS = frozenset({SUCCESS, FATAL, RETRY, CRASH})


class JournaledProgress(NamedTuple):
    """The known progress of one stream: all positions below `position` are done, and these above it."""

    position: int
    ahead: frozenset[int] = frozenset()


class KnownProgress(NamedTuple):
    """Known progress at a time of the machine's monotonic clock. `place`: an id of the stream's items without its
    position."""

    at: float
    place: str
    done: JournaledProgress


def known_too_soon(ids: Iterable[str], lines: Iterable[Line], seen: Sequence[KnownProgress]) -> list[Finding]:
    """Findings about items of the streams that were known as done although, by the journal, they were neither done nor
    had failed by then, each once; and about progress that went back."""
    over: dict[str, float] = {}
    for line in lines:
        if line.word in _MAY_PASS:
            over[line.id] = min(line.at, over.get(line.id, line.at))
    there: dict[str, list[int]] = defaultdict(list)
    for id in ids:
        place, _, position = id.rpartition("/")
        if position.isdigit():  # of a stream
            there[place].append(int(position))
    for positions in there.values():
        positions.sort()
    found: list[Finding] = []
    known: dict[str, int] = {}
    looked: set[str] = set()
    for at, place, done in seen:
        before, positions = known.get(place, 0), there[place]
        if done.position < before:
            detail = f"{place} was known as done up to {before}, and then up to {done.position}"
            found.append(Finding("backwards", "", at, detail))
        below = positions[bisect_left(positions, before) : bisect_left(positions, done.position)]
        for id in (f"{place}/{position}" for position in (*below, *sorted(done.ahead))):
            if id not in looked and over.get(id, float("inf")) > at:
                found.append(Finding("passed", id, at, f"known as done (up to {done.position}) before it was over"))
            looked.add(id)
        known[place] = max(before, done.position)
    return found
