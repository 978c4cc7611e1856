"""Torn logs: what a power cut in the middle of a commit leaves of a write-ahead log, as much of it as chance has it."""

from __future__ import annotations

from collections.abc import Callable


def torn(before: bytes, after: bytes, chance: Callable[[int, int], int]) -> bytes:
    """The log as it is found. `before` was synced; `after` is what the commit made of it, which may be there up to any
    byte. Behind that is what was there before, or nothing, or room without content. `chance` draws from a range."""
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
