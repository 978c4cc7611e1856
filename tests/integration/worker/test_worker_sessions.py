"""Connections that break and schedulers that forget or are replaced: runs that go on, and runs that are stopped."""

from __future__ import annotations

from typing import Any

from tailrace.model.outcome import Outcome


async def test_a_connection_that_heals_restarts_nothing(start: Any, journal: Any) -> None:
    scheduler, _ = await start()
    running = scheduler.assign("waits", {"journal": journal.name, "name": "n"})
    await journal.until("start n")
    scheduler.cut()
    await scheduler.until(lambda: scheduler.resumed == 1)
    more = scheduler.assign("add", {"a": 1})
    journal.go()
    assert [end.outcome for end in await scheduler.ended(*running, *more)] == [Outcome.SUCCESS, Outcome.SUCCESS]
    assert journal.lines().count("start n") == 1


async def test_a_session_that_the_scheduler_forgot_is_stopped_and_a_new_one_begins(start: Any, journal: Any) -> None:
    scheduler, worker = await start()
    forgotten = scheduler.assign("waits", {"journal": journal.name, "name": "n"})
    await journal.until("start n")
    scheduler.knows_session = False
    scheduler.cut()
    await scheduler.until(lambda: len(scheduler.hellos) == 2)
    await journal.until("cancelled n")
    await worker.attached()
    fresh = scheduler.assign("add", {"a": 1}, request=0)
    assert (await scheduler.ended(*fresh))[0].outcome == Outcome.SUCCESS
    assert not (set(forgotten) - set(fresh)) & set(scheduler.ends)


async def test_a_scheduler_that_was_replaced_stops_what_it_gave_and_nothing_else(start: Any, journal: Any) -> None:
    # Given a worker of two schedulers, each of which gave it something
    former, worker = await start(schedulers=2)
    other = former.others[0]
    former.assign("waits", {"journal": journal.name, "name": "former"})
    kept = other.assign("waits", {"journal": journal.name, "name": "other"})
    await journal.until("start former")
    await journal.until("start other")
    # When another process takes the place of one, which knows no session
    ran = set(former.ends)
    former.knows_session = False
    await former.stop()
    await former.start()
    # Then what it gave is stopped and never reported to the new one; the rest goes on
    await journal.until("cancelled former")
    await worker.attached()
    fresh = former.assign("add", {"a": 1}, request=0)
    assert (await former.ended(*fresh))[0].outcome == Outcome.SUCCESS
    assert set(former.ends) - ran == set(fresh)
    assert "cancelled other" not in journal.lines()
    journal.go()
    assert (await other.ended(*kept))[0].outcome == Outcome.SUCCESS


async def test_what_runs_on_of_a_forgotten_session_is_said_until_it_is_over(start: Any, journal: Any) -> None:
    # Given two runs that their scheduler forgets, one of which does not care that it is cancelled
    scheduler, _ = await start()
    scheduler.assign("waits", {"journal": journal.name, "name": "n"})
    scheduler.assign("stays", {"journal": journal.name, "name": "m"})
    await journal.until("start n")
    await journal.until("start m")
    scheduler.knows_session = False
    scheduler.cut()
    # When the worker comes back, Then it says with its hello what it runs, and later that it is over
    await scheduler.until(lambda: len(scheduler.hellos) == 2)
    assert scheduler.carried[1] == {"waits": 1, "stays": 1}
    await scheduler.until(lambda: scheduler.carried[-1] == {"stays": 1})
    journal.go()
    await scheduler.until(lambda: scheduler.carried[-1] == {})
    # And it says nothing of that any more when its next session begins
    scheduler.knows_session = False
    scheduler.cut()
    await scheduler.until(lambda: len(scheduler.hellos) == 3)
    assert list(scheduler.hellos[2].carried) == []
