"""The port for how the platform is: what rests where, what should be looked at, what failed."""

from __future__ import annotations

from typing import Protocol

from ...model.overview import Overview


class OverviewPort(Protocol):
    """The state of the platform: asked by people and scrapers, and told by parts that run apart."""

    async def overview(self) -> Overview:
        """What rests where now, and what is to be looked at."""

    async def tell_failure(self, part: str, why: str, times: int) -> None:
        """A part, such as "worker host:4711", was opened again after a failure, so many times since its process
        began."""

    async def tell_start_delays(self, scheduler: str, rows: list[tuple[str, str, list[int]]]) -> None:
        """A scheduler's start delays since it began: of each function and priority how many in each bucket."""
