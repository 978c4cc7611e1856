"""The member of a fleet to which a tailer's source belongs: THE rule, the same wherever it is worked out.

Rendezvous hashing (highest random weight, Thaler and Ravishankar 1998): each member has a weight for each tailer, and
the heaviest of those that are able has it. Nobody counts the others, and when a member comes or goes only what it gets,
or had, moves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import NamedTuple

#: Seconds that a member is known before anything that runs is moved to it: one that starts and dies moves nothing.
SETTLED = 10.0
#: Leases of a source for which a row that is free is left to the member to which it belongs; then anybody takes it.
PATIENCE = 2.0


class StandingMember(NamedTuple):
    """A member as another one sees it: where it is, the tailers that it is able to run, and since when it is known
    (monotonic seconds)."""

    id: str
    place: str
    able: frozenset[str]
    since: float


class BetterPlace(NamedTuple):
    """A member to which a tailer belongs, and whether what runs is to be moved there."""

    place: str
    settled: bool


def weight(tailer: str, member: str) -> bytes:
    """The weight of a member for a tailer."""
    return blake2b(f"{tailer}\0{member}".encode("utf-8", "surrogatepass"), digest_size=8).digest()


def better_places(own: StandingMember, others: Iterable[StandingMember], now: float) -> Mapping[str, BetterPlace]:
    """Of the tailers of one member those that belong to another one."""
    found: dict[str, BetterPlace] = {}
    rest = [*others]
    for tailer in own.able:
        able = [own, *(each for each in rest if tailer in each.able)]
        best = max(able, key=lambda each: (weight(tailer, each.id), each.id))
        if best is not own:
            found[tailer] = BetterPlace(best.place, now - best.since >= SETTLED)
    return found
