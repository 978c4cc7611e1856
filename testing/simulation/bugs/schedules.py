"""Mistakes with schedules, which run work by the clock."""

from __future__ import annotations

from typing import Any

from ....stores.schedules import firing as firing_
from ....stores.schedules.sqlite import SqliteSchedules
from ....tailers.ordering import Ordering
from ..planting import Bug, bug, instead


@bug
def _a_firing_compares_what_was_decided_by_then() -> Bug:
    real = SqliteSchedules.fire

    async def fire(self: SqliteSchedules, name: str, version: int, decided: float, step: Any, at: float) -> bool:
        row = await self.get(name)
        return row is not None and await real(self, name, row.version, row.decided, step, at)

    return instead(SqliteSchedules, "fire", fire)


@bug
def _all_that_was_missed_is_run() -> Bug:
    return instead(firing_, "_chosen", lambda schedule, instants, missed: instants)


@bug
def _a_run_fires_before_its_instant() -> Bug:
    return instead(firing_, "due_at", lambda schedule, instant: instant - 1.0)


@bug
def _a_run_that_is_to_wait_is_skipped() -> Bug:
    def skips(self: Ordering, part: Any, batch: Any, index: int) -> bool:
        return not part.is_troubled(batch.positions[index : index + 1])

    return instead(Ordering, "_skips", skips)


@bug
def _a_run_that_is_to_be_skipped_goes_beside_the_other() -> Bug:
    return instead(Ordering, "_key", lambda self, mapped, index: None)
