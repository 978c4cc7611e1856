"""The usage store's protocol: items, slot time and units by function, tenant and downstream, hour by hour, as
schedulers report them."""

from __future__ import annotations

from typing import Protocol

from ...model.usage import UsageReport, UsageRow


class Usage(Protocol):
    """Usage by the hour. A change is durable when its method returns. Invariant: an hour has at most as many rows as
    `model/usage.py` allows; the usage beyond them is in its sums."""

    async def add(self, report: UsageReport, below: int) -> bool:
        """Counts a report, whole. False: one of this scheduler with this number or a later one was counted before, and
        nothing was changed. Hours below `below` are forgotten, with the numbers of reports from then."""

    async def hours(self) -> list[int]:
        """The hours of which anything is kept, in their order."""

    async def of_hour(self, hour: int) -> list[UsageRow]:
        """All rows of one hour, by function, tenant and downstreams."""


__all__ = ["Usage", "UsageReport", "UsageRow"]
