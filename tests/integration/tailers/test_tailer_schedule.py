"""Schedules through a tailer, against real embedded stores and a scheduler that does as it is told."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.model.lease import LeaseSizes
from tailrace.model.outcome import Outcome
from tailrace.model.schedule import CatchUp, Overlap, Schedule
from tailrace.model.workload import Ended
from tailrace.stores.log.log import Record
from tailrace.stores.schedules.firing import begun
from tailrace.tailers.config import TailerConfig
from tailrace.tailers.sources import schedule
from tailrace.tailers.sources.schedule import Ticker
from tailrace.tailers.supervisor import SCHEDULES, Tailers
from tailrace.testing.clock import ManualClock

NOW = ManualClock().wall()
EVERY = Schedule("s", "f", b"payload", every=10.0, created_at=NOW)
SUCCESS = Ended(Outcome.SUCCESS)


def keys():
    return {name: value for name, value in SCHEDULES.items() if name != "name"}


async def keep(stores, schedule, now=NOW):
    row = await stores.schedules.put(begun(schedule, now), 0)
    assert row is not None
    return row


async def runs(stores, count, schedule=EVERY):
    """Makes `count` runs of a schedule, at once: by hand, since the stream knows no difference."""
    if await stores.schedules.get(schedule.name) is None:
        await keep(stores, replace(schedule, every=86400.0))
    for n in range(count):
        bounds = await stores.schedules.bounds()
        assert await stores.schedules.run(schedule.name, NOW + bounds.end + n / 1000, NOW)


async def test_of_many_tickers_one_fires_each_run_and_none_early(stores):
    # Given copies that look at the same schedules, each with a clock of its own that is a little off
    clocks = [ManualClock(NOW + off) for off in (0.0, -0.4, 0.3)]
    tickers = [Ticker(stores.schedules, clock) for clock in clocks]
    await keep(stores, EVERY)
    await keep(stores, replace(EVERY, name="jittery", jitter=5.0))
    # When they all tick through a hundred seconds at once
    for _ in range(101):
        await asyncio.gather(*(ticker.look() for ticker in tickers))
        for clock in clocks:
            clock.advance(1.0)
    # Then each instant ran once
    found = (await stores.schedules.read(0, 1000, 1 << 20)).runs
    for name in ("s", "jittery"):
        mine = [run for run in found if run.schedule == name]
        assert [run.instant for run in mine] == [NOW + 10 * n for n in range(1, len(mine) + 1)]
        assert len(mine) in (9, 10) and all(run.fired_at >= run.instant for run in mine)


async def test_after_an_absence_the_catch_up_says_what_runs_and_the_rest_is_counted(stores):
    await keep(stores, replace(EVERY, name="skip"))
    await keep(stores, replace(EVERY, name="latest", catch_up=CatchUp.LATEST))
    await keep(stores, replace(EVERY, name="all", catch_up=CatchUp.ALL, catch_up_max=50, overlap=Overlap.QUEUE))
    assert await Ticker(stores.schedules, ManualClock(NOW + 3605)).look() == NOW + 3610
    rows = {row.schedule.name: (row.runs, row.passed_over) for row in await stores.schedules.list(9)}
    assert rows == {"skip": (6, 354), "latest": (1, 359), "all": (50, 310)}


async def test_nothing_is_fired_into_a_stream_that_nobody_reads(stores, monkeypatch):
    monkeypatch.setattr("tailrace.tailers.sources.schedule.MOST_WAITING", 3)
    ticker = Ticker(stores.schedules, clock := ManualClock(NOW))
    await keep(stores, EVERY)
    for _ in range(6):
        clock.advance(10)
        await ticker.look()
    assert (await stores.schedules.bounds()).end == 3
    ticker.settled = 3
    await ticker.look()
    assert (await stores.schedules.bounds()).end == 6, "what waited within the grace is not lost"


async def test_a_schedule_that_cannot_be_read_keeps_no_other_from_firing(stores):
    bad = replace(EVERY, name="bad", every=0.0, cron="* * * * *", timezone="Mars/Base")
    await stores.schedules.put(begun(EVERY, NOW)._replace(schedule=bad), 0)
    await keep(stores, EVERY)
    ticker = Ticker(stores.schedules, ManualClock(NOW + 15))
    await ticker.look()
    assert [run.schedule for run in (await stores.schedules.read(0, 9, 1 << 20)).runs] == ["s"]


async def test_a_schedule_that_fails_as_nobody_foresaw_keeps_no_other_from_firing(stores, monkeypatch):
    await keep(stores, replace(EVERY, name="a-bad-one"))
    await keep(stores, EVERY)
    step = schedule.firing

    def fails(row, now):
        if row.schedule.name == "a-bad-one":
            raise OverflowError("planted")
        return step(row, now)

    monkeypatch.setattr(schedule, "firing", fails)
    ticker = Ticker(stores.schedules, ManualClock(NOW + 15))
    for _ in range(2):
        await ticker.look()
    assert [run.schedule for run in (await stores.schedules.read(0, 9, 1 << 20)).runs] == ["s"]


async def test_a_ticker_that_fails_is_begun_again_with_its_source(stores, scheduler, start, eventually, monkeypatch):
    # Given a ticker that fails as nobody foresaw, once
    look, planted = Ticker.look, iter([True])

    async def fails(ticker):
        if next(planted, False):
            raise ValueError("planted")
        return await look(ticker)

    monkeypatch.setattr(Ticker, "look", fails)
    now = SYSTEM_CLOCK.wall()
    await keep(stores, Schedule("s", "f", b"payload", every=1.0, created_at=now), now)
    scheduler.allow("f")
    # When its tailer runs, Then what is due fires all the same
    await start(**keys())
    await eventually(lambda: scheduler.ids)


async def test_a_run_is_what_its_schedule_says(stores, scheduler, start, eventually):
    schedule = replace(EVERY, priority="interactive", collection="c", tenant="t", overlap=Overlap.QUEUE)
    scheduler.allow("f", priority=0)
    await runs(stores, 1, schedule)
    tailer = await start(**keys())
    await eventually(lambda: tailer.overview().settled == 1)
    [flight] = scheduler.flights
    assert (flight.kinds[0], flight.payloads) == (("f", 0, "c", "t"), [b"payload"])
    assert dict(flight.extras[0].headers) == {"schedule": "s", "instant": "2023-11-14T22:13:20Z"}
    assert flight.extras[0].key == "s"


async def test_a_run_that_meets_one_that_is_not_over_is_skipped(stores, scheduler, start, eventually):
    # Given a run that is out, when more come, then they are passed, and counted as filtered
    scheduler.decide = lambda flight, index: None
    scheduler.allow("f")
    await runs(stores, 1)
    tailer = await start(**keys())
    await eventually(lambda: len(scheduler.ids) == 1)
    await runs(stores, 3)
    await eventually(lambda: tailer.overview().classes.get("filtered") == 3)
    # And once it is over, the next one runs
    scheduler.session.end(scheduler.flights[0], 0, SUCCESS)
    await eventually(lambda: tailer.overview().classes.get("succeeded") == 1)
    await runs(stores, 1)
    await eventually(lambda: scheduler.ids == ["t/0/0", "t/0/4"])
    await tailer.stop()
    assert (await stores.checkpoints.load("t"))["0"].position == 4, "what was skipped holds no checkpoint up"


async def test_a_run_that_waits_for_its_retry_is_not_over(stores, scheduler, start, eventually):
    scheduler.decide = lambda flight, index: Ended(Outcome.RETRY, "flaky", after=3600.0)
    scheduler.allow("f")
    await runs(stores, 1)
    tailer = await start(**keys())
    await eventually(lambda: tailer.overview().held == 1)
    await runs(stores, 2)
    await eventually(lambda: tailer.overview().classes.get("filtered") == 2)
    assert (scheduler.ids, tailer.overview().parked) == (["t/0/0"], 0)


async def test_runs_queue_and_one_that_failed_is_tried_again_before_the_next(stores, scheduler, start, eventually):
    fails = iter([True, True])
    scheduler.decide = lambda flight, index: Ended(Outcome.RETRY, "flaky") if next(fails, False) else SUCCESS
    scheduler.allow("f")
    await runs(stores, 3, replace(EVERY, overlap=Overlap.QUEUE))
    tailer = await start(retry={"backoff": "list", "delays": ["0s"], "jitter": 0}, **keys())
    await eventually(lambda: tailer.overview().settled == 3)
    assert scheduler.ids == ["t/0/0", "t/0/0", "t/0/0", "t/0/1", "t/0/2"]


async def test_runs_that_may_overlap_are_out_together_and_park_what_fails(
    stores, scheduler, parking, start, eventually
):
    scheduler.decide = lambda flight, index: Ended(Outcome.RETRY, "flaky") if flight.ids[index] == "t/0/1" else None
    scheduler.allow("f")
    await runs(stores, 3, replace(EVERY, overlap=Overlap.ALLOW))
    tailer = await start(**keys())
    await eventually(lambda: (tailer.overview().in_flight, tailer.overview().parked) == (2, 1))
    assert [item.id for item in parking.items] == ["t/0/1"]


async def test_after_a_takeover_a_run_that_was_out_still_keeps_others_from_running(
    stores, scheduler, start, eventually
):
    # Given a run that is out, of a tailer that ends
    scheduler.decide = lambda flight, index: None
    scheduler.allow("f")
    await runs(stores, 1)
    first = await start(**keys())
    await eventually(lambda: len(scheduler.ids) == 1)
    await first.stop()
    # When more runs come and another one goes on, then it runs again, and they are passed
    await runs(stores, 2)
    second = await start(**keys())
    await eventually(lambda: second.overview().classes.get("filtered") == 2)
    await eventually(lambda: scheduler.ids == ["t/0/0", "t/0/0"])


async def test_any_stream_may_skip_what_finds_its_key_busy(stores, scheduler, start, eventually):
    scheduler.decide = lambda flight, index: None if flight.payloads[index] == b"slow" else SUCCESS
    scheduler.allow("f")
    records = [Record(payload, key=key) for key, payload in (("a", b"slow"), ("b", b""), ("a", b""), ("", b""))]
    await stores.log.append("s", 0, records)
    log = {"kind": "log", "stream": "s"}
    tailer = await start(source=log, function="f", order="key", key={"record": True}, overlap="skip")
    await eventually(lambda: tailer.overview().classes == {"succeeded": 2, "filtered": 1, "in flight": 1})


def test_to_skip_needs_an_order():
    with pytest.raises(ValueError, match="overlap"):
        TailerConfig.model_validate(
            {"name": "t", "source": {"kind": "log", "stream": "s"}, "function": "f", "overlap": "skip"}
        )


async def test_the_first_schedule_brings_a_tailer_and_its_clock(stores, environment, scheduler, parking, eventually):
    # Given tailers without a schedule
    tailers = Tailers([], environment, scheduler.address, parking, LeaseSizes.of_heartbeat(0.1))
    scheduler.allow("f")
    await tailers.start()
    try:
        assert tailers.overviews() == []
        # When there is one, a second from now, then it runs, and once
        now = environment.clock.wall()
        await keep(stores, Schedule("soon", "f", b"!", at=now + 1.0), now)
        await eventually(lambda: scheduler.ids == ["schedules/0/0"])
        [run] = await stores.schedules.last("soon", 9)
        assert (run.instant, run.fired_at >= run.instant) == (now + 1.0, True)
        row = await stores.schedules.get("soon")
        assert row is not None and row.over and row.runs == 1
    finally:
        await tailers.drain(5)
        await tailers.stop()
