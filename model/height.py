"""The height of a store (its high-water mark), told by those who saw it: one that is lower than somebody remembers was
set back below the file system, with every file and mark that could tell.

A height only rises: the highest fence of a queue, the newest version of an owner's row, how much was appended to a log.
Each database has a random name of its own, made once and copied with it, so heights of two stores are never compared.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

#: Nothing is as high as this, whatever a clock says: the year 2255 in microseconds.
HIGHEST: Final = 1 << 53
#: Seconds for which a height is remembered that no tailer tells any more, and the most stores remembered.
KEPT: Final = 30 * 86_400.0
MOST: Final = 1_000


class Height(NamedTuple):
    """The random name of a store, and its height."""

    store: str
    highest: int


def was_set_back(now: Height, remembered: Height | None) -> bool:
    """Whether a store lacks some of the numbers that it handed out. Then it is to hold off until those are over, and
    its next numbers are to be above the remembered ones. The height of another store in its place says nothing about
    it."""
    return remembered is not None and remembered.store == now.store and now.highest < min(remembered.highest, HIGHEST)


def lacks(opened: Height, at: float, now: Height, remembered: Height) -> bool:
    """Whether a store that goes on already was set back before: it was as high as `opened` when it was opened, `at`
    that wall clock (seconds), and is as high as `now`. Fences and versions are at least the clock in microseconds, so
    what lies between its height then and that moment was given by nobody of whom it knows."""
    if was_set_back(now, remembered):
        return True
    return was_set_back(opened, remembered) and remembered.highest < int(at * 1e6)


def forgettable(told_at: Mapping[str, float], now: float) -> list[str]:
    """Which of some stores are remembered no longer: those of which nobody told for long, and the longest silent of
    too many. `told_at` has when each was last heard of, on one clock with `now`."""
    silent = sorted(told_at, key=lambda store: told_at[store])
    many = max(0, len(silent) - MOST)
    return [store for place, store in enumerate(silent) if place < many or now - told_at[store] > KEPT]
