"""Trims of a rung, which forget the records that it moved on: seldom while it moves, at once when it rests."""

from __future__ import annotations

from tailrace.delay_service.config import DelayConfig
from tailrace.delay_service.mover import TRIM_EVERY, Rung
from tailrace.stores.log.log import Log
from tailrace.testing.clock import ManualClock

CONFIG = DelayConfig(max_items=1600)  # a sixteenth of it is trimmed at once


class Trims(Log):
    """Streams that note their trims."""

    def __init__(self) -> None:
        self.before: list[int] = []

    async def trim(self, stream: str, partition: int, before: int) -> None:
        self.before.append(before)


async def test_a_rung_that_goes_on_moving_trims_once_a_second_and_one_that_rests_at_once() -> None:
    clock, log = ManualClock(), Trims()
    rung = Rung("delay.1s", 1.0, 10, log, CONFIG, CONFIG.ladder(), clock)
    assert not rung.to_trim(None)  # nothing is left to forget
    # Given a move whose next head is near: the first one trims, the next one only a second later
    rung.position = 20
    assert rung.to_trim(0.1) and not rung.to_trim(0.0)
    await rung.trim()
    rung.position = 30
    assert not rung.to_trim(0.1)
    clock.advance(TRIM_EVERY)
    assert rung.to_trim(0.1)
    await rung.trim()
    # When much has moved, or nothing is left, or the next head is far, it does not wait
    rung.position = 129
    assert not rung.to_trim(0.1)
    assert rung.to_trim(None) and rung.to_trim(TRIM_EVERY * 2)
    rung.position = 130
    assert rung.to_trim(0.1) and rung.to_trim(0.0)
    await rung.trim()
    assert log.before == [20, 30, 130]
