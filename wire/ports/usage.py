"""The port for usage: told by schedulers, asked by operators."""

from __future__ import annotations

from typing import Protocol

from ...model.usage import UsageReport, UsageSum


class UsagePort(Protocol):
    """Usage: who used how much, by the hour. Both raise InvalidRequest where this gateway keeps nothing of it."""

    async def tell_usage(self, report: UsageReport) -> bool:
        """Counts a report once, however often it is told; whether it did now."""

    async def usage(
        self, since: int, until: int, by: list[str], function: str = "", tenant: str = "", downstream: str = ""
    ) -> list[UsageSum]:
        """Sums over the hours from `since` to before `until`, at most a day of them, by these columns (`hour`,
        `function`, `tenant`, `downstream`), of one function, tenant or downstream, or of all ("")."""
