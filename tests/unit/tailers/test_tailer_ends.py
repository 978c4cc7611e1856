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
from tailrace.tailers.supervisor import Tailers
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


class Ending:
    """A tailer that has ended once so many are told to; it raises `error` then."""

    def __init__(self, told: asyncio.Barrier, error: Exception | None = None) -> None:
        self._told = told
        self._error = error
        self.ended = False

    async def stop(self) -> None:
        await self._told.wait()
        self.ended = True
        if self._error is not None:
            raise self._error


async def test_no_tailer_waits_for_the_end_of_another() -> None:
    # Given three tailers of one process, of which none ends before the others are told to, and one fails in that
    told = asyncio.Barrier(3)
    ending = {"a": Ending(told), "b": Ending(told, OSError("the broker is away")), "c": Ending(told)}
    tailers = Tailers([], ENVIRONMENT, "nowhere:1", cast(Any, None), SIZES, due=False)
    tailers._tailers = cast(Any, dict(ending))
    watch = tailers.duties.begin(asyncio.Event().wait(), "watch")
    # When all are told to end, Then they do, and what failed is raised after the duties have ended too
    async with asyncio.timeout(5):
        with pytest.raises(OSError, match="the broker is away"):
            await tailers.stop()
    assert all(each.ended for each in ending.values()) and watch.done()
