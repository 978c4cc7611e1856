"""A ticker whose clock was ahead for a moment sets schedules back at its next turn, not minutes later."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, cast

from tailrace.model.schedule import Schedule, ScheduleRow
from tailrace.stores.schedules.firing import begun
from tailrace.tailers.sources.schedule import LOOK_BACK_EVERY, Ticker
from tailrace.testing.clock import ManualClock


@dataclass
class Store:
    """The part of a store of schedules that a look back needs."""

    row: ScheduleRow
    looks: int = 0
    kept: list[ScheduleRow] = field(default_factory=list)

    async def list(self, limit: int) -> Any:
        self.looks += 1
        return [self.row]

    async def put(self, row: ScheduleRow, version: int) -> bool:
        self.row = row
        self.kept.append(row)
        return True


async def test_a_schedule_is_set_back_at_the_turn_after_the_clock_was() -> None:
    clock = ManualClock()
    store = Store(begun(Schedule("s", "f", every=1.0), clock.wall()))
    ticker = Ticker(cast(Any, store), clock)
    await ticker.look_back()
    # Given an hour that a clock which was ahead has decided, and turns by it
    clock.jump(3600)
    store.row = store.row._replace(decided=clock.wall())
    for _ in range(3):
        clock.advance(1)
        await ticker.look_back()
    assert store.kept == []
    # When the clock is right again, then the schedule goes on from now
    clock.jump(-3600)
    clock.advance(1)
    await ticker.look_back()
    assert [row.decided for row in store.kept] == [clock.wall()]
    # And nothing more is looked at before its time
    looks = store.looks
    clock.advance(LOOK_BACK_EVERY - 10)
    await ticker.look_back()
    assert store.looks == looks
