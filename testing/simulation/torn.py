"""Torn logs: the part of a write-ahead log that a power cut in the middle of a commit leaves, by chance."""

from __future__ import annotations

from collections.abc import Callable


def torn(before: bytes, after: bytes, chance: Callable[[int, int], int]) -> bytes:
    """The log as it is found after the cut. `before` was synced; `after` is the log with the commit, which may be there
    up to any byte. Behind that are the former bytes, or nothing, or room without content. `chance` draws from a
    range."""
    first, behind = 0, min(len(before), len(after))  # the first byte that differs is in between, or there is none
    while first < behind:
        middle = (first + behind + 1) // 2
        if before[first:middle] == after[first:middle]:
            first = middle
        else:
            behind = middle - 1
    cut = chance(first, len(after))
    room = chance(0, 1) * max(0, len(after) - max(cut, len(before)))
    return after[:cut] + before[cut:] + bytes(room)
