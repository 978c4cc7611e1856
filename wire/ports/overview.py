"""The port for the state of the platform: backlogs, alerts, failures."""

from __future__ import annotations

from typing import Protocol

from ...model.overview import Overview


class OverviewPort(Protocol):
    """The state of the platform: asked by people and scrapers, and told by parts that run apart."""

    async def overview(self) -> Overview:
        """The present backlogs of queue, tailers and delay streams, and the alerts."""

    async def tell_failure(self, part: str, why: str, times: int) -> None:
        """Reports that a part, such as "worker host:4711", was opened again after a failure, for the `times`-th time
        since its process began."""

    async def tell_start_delays(self, scheduler: str, rows: list[tuple[str, str, list[int]]]) -> None:
        """Reports a scheduler's start delays since it began: for each function and priority the count in each
        bucket."""
