"""Detaching of items that run long, so that they hold up no others, and the times of their guards.

An item that is out holds its stream's frontier (its low-water mark). One that is out for longer than
`window.detach_after`, while something behind it is done, gets a row and a copy in the delay service; then the frontier
passes it, and it runs on. The copy, its guard, is looked at now and then: while the item runs it is appended again for
later, so its payload never depends on what the source keeps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

#: Seconds at most between two looks at the items that are out, which are a quarter of the time until they are detached.
LONGEST_LOOK = 5.0
#: Seconds until a guard is looked at: a quarter of the time for which its item has run, within these. If its owner dies
#: and the source has forgotten the record, the item runs again when its guard is looked at, so the wait is small
#: beside the work that was lost; and an item of an hour is appended about twenty times.
FIRST_LOOK, LAST_LOOK = 60.0, 300.0


def look_every(after: float) -> float:
    """Seconds between two looks at the items that are out, where they are detached `after` so many."""
    return min(LONGEST_LOOK, after / 4)


def guard_due(now: float, first_seen: float) -> float:
    """The time at which the guard of an item is to be looked at that was first handed out at `first_seen`; both wall
    clock."""
    return now + min(LAST_LOOK, max(FIRST_LOOK, (now - first_seen) / 4))


class Ages:
    """Ages of flights, from looks at the newest one that is out: no flight needs a time of its own.

    Invariant: `_seen` rises in time; all but its first are younger than `after` as of the last look.
    """

    __slots__ = ("_after", "_seen")

    def __init__(self, after: float) -> None:
        self._after = after
        self._seen: deque[tuple[float, int]] = deque()

    def look(self, now: float, newest: int) -> int:
        """Notes the newest flight that is out, and returns the newest flight number that is old: flights up to it that
        are out were handed out at least `after` seconds ago (0: none was). `newest` is the highest number of a flight
        that is out, 0 where none is; `now` is monotonic."""
        seen = self._seen
        seen.append((now, newest))
        while len(seen) > 1 and seen[1][0] <= now - self._after:
            seen.popleft()
        return seen[0][1] if seen[0][0] <= now - self._after else 0


def holding_up(positions: Iterable[int], newest_settled: int) -> Iterator[int]:
    """The positions of old items behind which something is settled: only they are in anybody's way."""
    return (position for position in positions if position < newest_settled)
