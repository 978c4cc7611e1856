"""Deaths and cuts, one case each that no other file has (the table is in docs/leases.md)."""

from __future__ import annotations

from typing import Any

from tailrace.model.errors import Unavailable
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended
from tailrace.stores.log.log import Record

LOG = {"kind": "log", "stream": "s"}


async def test_while_the_delay_service_is_away_parks_wait_and_the_window_fills(
    stores: Any, scheduler: Any, parking: Any, start: Any, eventually: Any
) -> None:
    # Given a log of which everything fails, and a delay service that is away
    await stores.log.append("s", 0, [Record(b"%d" % n) for n in range(50)])
    scheduler.decide = lambda flight, index: Ended(Outcome.RETRY, "no")
    scheduler.allow("f")
    park, away = parking.park, True

    async def refuse(items: Any) -> None:
        if away:
            raise Unavailable("the delay service is away")
        await park(items)

    parking.park = refuse
    tailer = await start(source=LOG, function="f", window={"items": 20})
    # Then the tailer stops at its window, says why, and its checkpoint passes nothing
    await eventually(lambda: len(scheduler.ids) == 20 and "away" in tailer.overview().detail)
    assert tailer.overview().state == "clogged" and tailer.overview().parked == 0
    assert not any(mark.position for mark in (await stores.checkpoints.load("t")).values())
    # And when it is back, everything is parked once
    away = False
    await eventually(lambda: tailer.overview().parked == 50)
    assert sorted(item.payload for item in parking.items) == sorted(b"%d" % n for n in range(50))
    assert len(scheduler.ids) == 50
