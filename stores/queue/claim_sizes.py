"""The size of claims on PostgreSQL while somebody submits more urgent work: THE rule.

A submission waits for the claim that is under way and for its own claim, which take longer the more items they have,
and for the settlements of the items claimed with it. So while somebody submits, a claim that may also take less urgent
items takes only a few. Less urgent work loses some of its pace, and no submission waits for a thousand items.

SQLite has its own numbers, in `sqlite/claim.py`: there submissions and claims share one writer, so a claim delays
submissions of any priority. So its claims are smaller, but for a shorter time, because every claim is limited.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...model.workload import FLIGHT_ITEMS

#: Seconds after a submission within which the next one is likely to come.
SOON = 0.1
#: Most items of a claim during that time: a tenth of the usual number.
BESIDE = 128


class ClaimSizes:
    """The recent submissions of one process. `now` is monotonic seconds."""

    def __init__(self) -> None:
        self._last: dict[int, float] = {}  # priority → when something of it was submitted last

    def submitted(self, priorities: Iterable[int], now: float) -> None:
        """Notes that items of these priorities are being submitted."""
        for priority in priorities:
            self._last[priority] = now

    def most(self, priorities: Iterable[int], now: float) -> int:
        """The most items of a claim that may take items of these priorities."""
        urgent = min((each for each, at in self._last.items() if now - at < SOON), default=None)
        return BESIDE if urgent is not None and any(each > urgent for each in priorities) else FLIGHT_ITEMS
