"""The port for usage: reported by schedulers, read by operators."""

from __future__ import annotations

from typing import Protocol

from ...model.usage import UsageReport, UsageSum


class UsagePort(Protocol):
    """Calls about usage, the amounts used by the hour. Both raise InvalidRequest where this gateway keeps no usage."""

    async def tell_usage(self, report: UsageReport) -> bool:
        """Counts a report once, however often it comes; returns False for a repeat."""

    async def usage(
        self, since: int, until: int, by: list[str], function: str = "", tenant: str = "", downstream: str = ""
    ) -> list[UsageSum]:
        """Sums over the hours from `since` to before `until`, at most a day of them, by these columns (`hour`,
        `function`, `tenant`, `downstream`), of one function, tenant or downstream, or of all ("")."""
