"""Numbers of flights taken over at several schedulers: whose is which, and which of two hand-outs counts (L12).

A scheduler numbers the flights that it gives to an heir by itself, and another one gives the same numbers. So the
flights of each session have a space of numbers of their own here: 0 is that of the tailer's own session, from 1 on
those of its sides, second sessions with other schedulers (tailers/takeover/side_sessions.py). A session speaks of its
own flights alone, with its scheduler's numbers.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...model.item_key import ItemKey
from ...model.workload import INDEX_BITS

#: The space of the tailer's own session.
OWN = 0
#: Bits of a scheduler's own number of a flight; it counts adopted flights from 2 ** 48 on.
FLIGHT_BITS = 56


def flight_here(side: int, flight: int) -> int:
    """The number here of the flight that a side's scheduler calls `flight`."""
    return side << FLIGHT_BITS | flight


def ref_here(side: int, ref: int) -> int:
    """The number here of the item of a flight that a side's scheduler calls `ref`."""
    return side << (FLIGHT_BITS + INDEX_BITS) | ref


def side_of(ref: int) -> int:
    """The side that an item belongs to, by its number here."""
    return ref >> (FLIGHT_BITS + INDEX_BITS)


def flights_of(side: int, refs: Iterable[int]) -> list[int]:
    """The flights of a side among these items, rising, as its scheduler numbers them: the flights that it renews."""
    flights = {ref >> INDEX_BITS for ref in refs if side_of(ref) == side}
    return sorted(flight ^ side << FLIGHT_BITS for flight in flights)


def refs_of(side: int, refs: Iterable[int]) -> list[int]:
    """The items of a side among these, as its scheduler numbers them."""
    return [ref ^ side << (FLIGHT_BITS + INDEX_BITS) for ref in refs if side_of(ref) == side]


def newest(hand_outs: Iterable[tuple[ItemKey, int]]) -> dict[ItemKey, int]:
    """The highest fence of each position. A hand-out with a lower fence was over before that one was made: a scheduler
    that was left may know of it still, but its outcome counts for nothing."""
    fences: dict[ItemKey, int] = {}
    for key, fence in hand_outs:
        fences[key] = max(fence, fences.get(key, fence))
    return fences
