"""Gathering: THE rule of what the one item of a job that gathers is given. A list of all results where it fits one
payload; else their jobs with counts, whose results its run reads by pages.

Counters answer first: a result has a byte and a comma, so of a million nothing is read to know that they do not fit.
"""

from __future__ import annotations

from collections.abc import Iterable

from ....model.gathered import GatheredJob, GatheredResults
from .feeding import list_of


def room_for(prefix: bytes, suffix: bytes, most: int) -> int:
    """The bytes that results may have in a payload of so many, each with a comma behind it."""
    return most - len(prefix) - len(suffix) - 1


def within(results: Iterable[bytes], succeeded: int, room: int) -> list[bytes] | None:
    """All of so many results, which are read no further than there is room; None: they do not fit."""
    if succeeded * 2 > room:
        return None
    found: list[bytes] = []
    for each in results:
        room -= len(each) + 1
        if room < 0:
            return None
        found.append(each)
    return found


def payload_of(
    prefix: bytes, suffix: bytes, results: list[bytes] | None, tree: str, jobs: Iterable[GatheredJob]
) -> bytes:
    """The payload. That which names jobs is held to no bound: it has a few bytes for each of them."""
    if results is None:
        return GatheredResults(tree, tuple(jobs), prefix, suffix).encode()
    return prefix + list_of(results) + suffix
