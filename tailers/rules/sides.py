"""Numbers of flights taken over at several schedulers: whose is which, and which of two hand-outs counts (L12).

A scheduler numbers what it gives to an heir by itself, and another one gives the same numbers. So the flights of each
session have a space of numbers of their own here: 0 is that of the tailer's own session, from 1 on those of its sides
(tailers/takeover/sides.py). A session speaks of its own flights alone, with its scheduler's numbers.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...model.item_key import ItemKey
from ...model.workload import INDEX_BITS

#: The space of the tailer's own session.
OWN = 0
#: Bits of a scheduler's own number of a flight; it counts what was adopted from 2 ** 48 on.
FLIGHT_BITS = 56


def flight_here(side: int, flight: int) -> int:
    """The number here of what a side's scheduler calls by this one."""
    return side << FLIGHT_BITS | flight


def ref_here(side: int, ref: int) -> int:
    """The same for one item of a flight."""
    return side << (FLIGHT_BITS + INDEX_BITS) | ref


def side_of(ref: int) -> int:
    """Whose item this is, by its number here."""
    return ref >> (FLIGHT_BITS + INDEX_BITS)


def flights_of(side: int, refs: Iterable[int]) -> list[int]:
    """The flights of a side among these items, rising, as its scheduler numbers them: those that it renews."""
    flights = {ref >> INDEX_BITS for ref in refs if side_of(ref) == side}
    return sorted(flight ^ side << FLIGHT_BITS for flight in flights)


def refs_of(side: int, refs: Iterable[int]) -> list[int]:
    """The items of a side among these, as its scheduler numbers them."""
    return [ref ^ side << (FLIGHT_BITS + INDEX_BITS) for ref in refs if side_of(ref) == side]


def newest(hand_outs: Iterable[tuple[ItemKey, int]]) -> dict[ItemKey, int]:
    """The highest fence of each position. What has a lower one was over before that was handed out: a scheduler that
    was left may know of it still, and how it ended counts for nothing."""
    fences: dict[ItemKey, int] = {}
    for key, fence in hand_outs:
        fences[key] = max(fence, fences.get(key, fence))
    return fences
