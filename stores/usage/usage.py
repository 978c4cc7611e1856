"""The usage store's protocol: who used how much, by the hour, as schedulers report it."""

from __future__ import annotations

from typing import Protocol

from ...model.usage import UsageReport, UsageRow


class Usage(Protocol):
    """Durable when a method returns. Invariant: an hour has at most as many rows as `model/usage.py` allows; what is
    beyond them is in its sums."""

    async def add(self, report: UsageReport, below: int) -> bool:
        """Counts a report, whole, unless one of this scheduler with this number or a later one was; whether it did.
        Hours below `below` are forgotten, with what schedulers reported last then."""

    async def hours(self) -> list[int]:
        """The hours of which anything is kept, in their order."""

    async def of_hour(self, hour: int) -> list[UsageRow]:
        """All of one hour, by function, tenant and downstreams."""


__all__ = ["Usage", "UsageReport", "UsageRow"]
