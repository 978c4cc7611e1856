"""Ends of a tailer's pump that need a person: they are shown, tried again, and over by themselves once mended."""

from __future__ import annotations

import asyncio

from tailrace.gateway.rules.alerts import of_a_tailer
from tailrace.model.backoff import Pauses
from tailrace.model.errors import ConfigError
from tailrace.stores.log.log import Record

LOG = {"kind": "log", "stream": "s"}
MISSING = "its tables are not those of this version: run `tailrace store migrate`"


def without_tables(monkeypatch, store, method):
    """Has the store refuse, as one whose schema is missing. Returns a count of the refusals, and a way to mend it."""
    there, asked = getattr(store, method), []

    async def refuses(*given, **named):
        asked.append(given)
        raise ConfigError(MISSING)

    monkeypatch.setattr(store, method, refuses)
    return asked, lambda: monkeypatch.setattr(store, method, there)


async def test_a_schema_that_was_missing_for_a_moment_ends_no_tailer(stores, scheduler, start, eventually, monkeypatch):
    # Given a tailer that has done something
    scheduler.allow("f")
    await stores.log.append("s", 0, [Record(b"x")])
    tailer = await start(source=LOG, function="f")
    await eventually(lambda: tailer.overview().settled == 1)
    # When a store's tables are away as its checkpoint moves
    asked, mend = without_tables(monkeypatch, stores.checkpoints, "commit")
    await stores.log.append("s", 0, [Record(b"y")])
    await eventually(lambda: tailer.overview().state == "failed")
    # Then operators are told at once, and what to do
    assert not tailer.look()
    overview = tailer.overview()
    assert (overview.cause, overview.detail, overview.why) == ("by_hand", MISSING, MISSING)
    [alert] = of_a_tailer(overview, 0.0)
    assert alert.what == MISSING and "it tries again by itself" in alert.todo
    # And once they are there again, it goes on by itself
    mend()
    await eventually(lambda: tailer.overview().settled >= 2)
    await eventually(lambda: tailer.look() and tailer.overview().state == "running")
    assert asked


async def test_resume_tries_again_at_once_and_a_drain_does_not_wait(stores, scheduler, start, eventually, monkeypatch):
    # Given a tailer that waits for somebody's hand, for long by now
    monkeypatch.setattr("tailrace.tailers.rules.pump_restarts.MENDED", Pauses(3600.0, 3600.0))
    asked, mend = without_tables(monkeypatch, stores.checkpoints, "open")
    scheduler.allow("f")
    await stores.log.append("s", 0, [Record(b"x")])
    tailer = await start(source=LOG, function="f")
    await eventually(lambda: tailer.overview().state == "failed")
    # When it is resumed, then it tries at once, and once that was mended goes on
    tailer.resume()
    await eventually(lambda: len(asked) == 2)
    await eventually(lambda: tailer.overview().state == "failed")
    mend()
    tailer.resume()
    await eventually(lambda: tailer.overview().settled == 1)
    # And where another one waits as everything drains, that ends at once, and nothing more is read
    again, _ = without_tables(monkeypatch, stores.checkpoints, "open")
    other = await start(name="other", source=LOG, function="f")
    await eventually(lambda: bool(again) and other.overview().state == "failed")
    async with asyncio.timeout(10):
        await other.drain(60)
    assert len(again) == 1 and other.overview().read == 0


async def test_a_resume_while_it_tries_is_for_the_next_try(stores, scheduler, start, eventually, monkeypatch):
    # Given a tailer that waits for somebody's hand for long, and tries just now, too early
    monkeypatch.setattr("tailrace.tailers.rules.pump_restarts.MENDED", Pauses(3600.0, 3600.0))
    tries, mended, there = asyncio.Queue(), asyncio.Event(), stores.checkpoints.open

    async def opens(*given, **named):
        if mended.is_set():
            return await there(*given, **named)
        refused = asyncio.Event()
        tries.put_nowait(refused)
        await refused.wait()
        raise ConfigError(MISSING)

    monkeypatch.setattr(stores.checkpoints, "open", opens)
    scheduler.allow("f")
    await stores.log.append("s", 0, [Record(b"x")])
    tailer = await start(source=LOG, function="f")
    (await tries.get()).set()
    await eventually(lambda: tailer.overview().state == "failed")
    tailer.resume()
    trying = await tries.get()
    # When it was mended and is resumed while it is still shown as failed
    assert tailer.overview().state == "failed"
    mended.set()
    tailer.resume()
    trying.set()
    # Then it tries once more, and goes on
    await eventually(lambda: tailer.overview().settled == 1)


async def test_a_source_that_cannot_be_built_for_a_moment_is_built_again(
    stores, scheduler, start, eventually, monkeypatch
):
    # Given a tailer whose pump fails, and whose source cannot be built then
    scheduler.allow("f")
    tailer = await start(source=LOG, function="f")
    await eventually(lambda: tailer.overview().state == "running")
    build, tried = type(tailer)._build, []

    def builds(self):
        tried.append(self)
        if len(tried) == 1:
            raise ConfigError("no such file: ca.pem")
        return build(self)

    monkeypatch.setattr(type(tailer), "_build", builds)
    _, mend = without_tables(monkeypatch, stores.checkpoints, "commit")
    await stores.log.append("s", 0, [Record(b"x")])
    await eventually(lambda: tailer.overview().detail == "no such file: ca.pem")
    # When it can be again, then it goes on
    mend()
    await eventually(lambda: tailer.overview().settled >= 1 and len(tried) == 2)
