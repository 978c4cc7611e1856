"""A tailer that is told to end does end, also when something of it fails in that very moment."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest
from scenes.shared_source import CONFIG, ENVIRONMENT, SIZES, Busy, Deposed, Share, until

from tailrace.tailers.counts import TailerCounts
from tailrace.tailers.pumps import shared_pump
from tailrace.tailers.pumps.shared_pump import SharedPump
from tailrace.tailers.registry import kind_of
from tailrace.tailers.resources import Resources, Setup
from tailrace.tailers.tailer import Tailer


@pytest.fixture
def deposed(monkeypatch: pytest.MonkeyPatch) -> type[Deposed]:
    monkeypatch.setattr(Deposed, "made", 0)
    return Deposed


async def test_a_tailer_ends_though_another_owner_took_its_source_in_that_moment(
    deposed: type[Deposed], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a tailer whose pump runs
    monkeypatch.setattr(deposed, "deaf", 1)
    monkeypatch.setattr(Tailer, "_build", lambda self: deposed())
    tailer = Tailer(CONFIG, Resources(ENVIRONMENT, "nowhere:1", cast(Any, None), SIZES))
    await tailer.start()
    await cast(Any, tailer._pump).runs.wait()
    # When it is told to end, and its source changes owner as it does
    async with asyncio.timeout(5):
        await tailer.stop()
    # Then it is over, and no other pump was begun
    assert deposed.made == 1


async def test_a_partition_is_left_though_another_owner_took_it_in_that_moment(
    deposed: type[Deposed], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a share of two partitions
    monkeypatch.setattr(shared_pump, "StreamPump", deposed)
    source = Share(frozenset({"a", "b"}))
    setup = Setup(ENVIRONMENT, "nowhere:1", cast(Any, None), SIZES, config=CONFIG, kind=kind_of("log"))
    pump = SharedPump(setup, TailerCounts(), cast(Any, source))
    running = asyncio.create_task(pump.run())
    await until(lambda: len(pump.pumps) == 2)
    for each in pump.pumps.values():
        await cast(Any, each).runs.wait()
    # When one is taken away, and changes owner as it is left
    source.give(frozenset({"a"}))
    await until(lambda: set(pump.pumps) == {"a"})
    # Then no other pump of it is begun, and the share ends at once when it is told to
    running.cancel()
    async with asyncio.timeout(5):
        await asyncio.gather(running, return_exceptions=True)
    assert deposed.made == 2


async def test_a_drain_waits_for_nothing_that_another_owner_took_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a tailer that drains, with items out
    monkeypatch.setattr(Busy, "made", 0)
    monkeypatch.setattr(Tailer, "_build", lambda self: Busy())
    tailer = Tailer(CONFIG, Resources(ENVIRONMENT, "nowhere:1", cast(Any, None), SIZES))
    await tailer.start()
    pump = cast(Busy, tailer._pump)
    await pump.runs.wait()
    draining = asyncio.create_task(tailer.drain(60.0))
    await pump.draining_began.wait()
    # When another owner takes its source
    pump.taken.set()
    # Then the drain is over, and no other pump is begun
    async with asyncio.timeout(5):
        await draining
        await tailer.stop()
    assert Busy.made == 1
