"""Takeover of a stream from its owner: when it is allowed (L1, L10, L11), by this host's monotonic clock.

The owner counts its lease from when it *sent* a renewal; a successor that waits counts from when the *answer* to its
read arrived. The write lies between the two, so the wait, stretched by the drift, always ends after the lease. Every
write of the row raises its version: a row that is renewed starts the wait anew, and one that changes between the last
look and the compare-and-set is not taken.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

#: Schedulers that are asked to adopt; a row that names more is waited out. A row names the schedulers between which its
#: owner changed within one lease.
ASKED = 8


class SeenRow(NamedTuple):
    """A row as last read. `since`: when this version was first read; 0 is the version of no row."""

    version: int
    holder: str
    lease: float
    since: float


def observe(former: SeenRow | None, version: int, holder: str, lease: float, now: float) -> SeenRow:
    """Takes note of a read whose answer came at `now`. An unchanged version keeps the time of its first read."""
    if former is not None and former.version == version:
        return former
    return SeenRow(version, holder, lease, now)


def free_at(seen: SeenRow, drift: float, *, adopted: bool = False) -> float:
    """The time from which the row may be taken: at once when there is none, when it was released empty, or when every
    scheduler it lists confirmed that it adopted what runs (`adopted`); else after its lease, stretched by `drift` (D of
    L1)."""
    if not seen.version or not seen.holder or adopted:
        return seen.since
    return seen.since + drift * seen.lease


def may_ask(listed: Sequence[str]) -> bool:
    """Whether the schedulers that a row lists can be asked at all. None listed: nobody knows who may have something."""
    return 0 < len(listed) <= ASKED


def adopted_by_all(listed: Sequence[str], confirmed: Collection[str]) -> bool:
    """Whether everything that runs under a row is adopted: each scheduler that it lists confirmed (L12)."""
    return may_ask(listed) and all(each in confirmed for each in listed)


def lapsed(held_until: float, sent: float) -> bool:
    """Whether a renewal sent at `sent` came too late for a lease that lasted to `held_until`: such an epoch is never
    resumed, its holder takes a new one (L10)."""
    return sent > held_until
