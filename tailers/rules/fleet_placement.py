"""Placement of a tailer's source on one member of a fleet: THE rule, with the same answer wherever it is worked out.

Rendezvous hashing (highest random weight, Thaler and Ravishankar 1998): each member has a weight for each tailer, and
the heaviest of the members that are able to run it has it. No member counts the others, and when a member comes or goes
only the tailers that it gets, or had, move.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import NamedTuple

#: Seconds that a member is known before anything that runs is moved to it: one that starts and dies moves nothing.
SETTLED = 10.0
#: Source leases for which a free row is left to the member to which it belongs; after that any member takes it.
PATIENCE = 2.0


class StandingMember(NamedTuple):
    """A member as another one sees it: its place, the tailers that it is able to run, and the time since when it is
    known (monotonic seconds)."""

    id: str
    place: str
    able: frozenset[str]
    since: float


class BetterPlace(NamedTuple):
    """A member to which a tailer belongs, and whether items that run are to be moved there."""

    place: str
    settled: bool


def weight(tailer: str, member: str) -> bytes:
    """The weight of a member for a tailer."""
    return blake2b(f"{tailer}\0{member}".encode("utf-8", "surrogatepass"), digest_size=8).digest()


def better_places(own: StandingMember, others: Iterable[StandingMember], now: float) -> Mapping[str, BetterPlace]:
    """The better place of each tailer of member `own` that belongs to another member."""
    found: dict[str, BetterPlace] = {}
    rest = [*others]
    for tailer in own.able:
        able = [own, *(each for each in rest if tailer in each.able)]
        best = max(able, key=lambda each: (weight(tailer, each.id), each.id))
        if best is not own:
            found[tailer] = BetterPlace(best.place, now - best.since >= SETTLED)
    return found
