"""Gathering: THE rule of the payload for the one item of a job that gathers. It is a list of all results if that fits
one payload; otherwise the jobs with their counts, and the run reads the results by pages.

Counters decide first: each result takes at least a byte and a comma, so a million results need not be read to see that
they do not fit.
"""

from __future__ import annotations

from collections.abc import Iterable

from ....model.gathered import GatheredJob, GatheredResults
from .feeding import list_of


def room_for(prefix: bytes, suffix: bytes, most: int) -> int:
    """Bytes for results in a payload of at most `most`, each with a comma after it."""
    return most - len(prefix) - len(suffix) - 1


def within(results: Iterable[bytes], succeeded: int, room: int) -> list[bytes] | None:
    """All of `succeeded` results, read only as far as there is room; None: they do not fit."""
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
    """The payload of the gathering item. A payload that names jobs has no bound: it takes a few bytes for each."""
    if results is None:
        return GatheredResults(tree, tuple(jobs), prefix, suffix).encode()
    return prefix + list_of(results) + suffix
