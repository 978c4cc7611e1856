"""Claims beside submissions, on PostgreSQL: THE rule of how many items a claim takes while somebody submits what is
more urgent.

What is submitted waits for the claim that is under way and for its own, which take as long as they have items, and for
the settlements of what they took along. So while somebody submits, a claim that may also take what is less urgent takes
few of it; what takes long by itself loses some of its pace, and nobody waits for a thousand of its items.

SQLite's is in sqlite/lease.py, with numbers of its own: there submissions and claims share one writer, so a claim is in
the way of a submission of any priority. Hence fewer items, and for less long, since all claims are held to it.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...model.workload import FLIGHT_ITEMS

#: Seconds after a submission in which the next one is likely to come.
SOON = 0.1
#: Items of a claim meanwhile: a tenth of what it takes else.
BESIDE = 128


class BesideSubmissions:
    """The submissions of one process. `now` is monotonic seconds."""

    def __init__(self) -> None:
        self._last: dict[int, float] = {}  # priority → when something of it was submitted last

    def submitted(self, priorities: Iterable[int], now: float) -> None:
        """Something of these priorities is submitted."""
        for priority in priorities:
            self._last[priority] = now

    def most(self, priorities: Iterable[int], now: float) -> int:
        """Items of a claim that may take what is of these priorities."""
        urgent = min((each for each, at in self._last.items() if now - at < SOON), default=None)
        return BESIDE if urgent is not None and any(each > urgent for each in priorities) else FLIGHT_ITEMS
