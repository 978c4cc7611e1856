"""A tailer that is told to end does end, also when something of it fails in that very moment."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, cast

import pytest

from tailrace.sdk.model.errors import StaleFence
from tailrace.sdk.model.lease import LeaseSizes
from tailrace.tailers.config import TailerConfig
from tailrace.tailers.counts import Counts
from tailrace.tailers.means import Means, Setup
from tailrace.tailers.pumps import shared_pump
from tailrace.tailers.pumps.shared_pump import SharedPump
from tailrace.tailers.registry import Environment, kind_of
from tailrace.tailers.tailer import Tailer

CONFIG = TailerConfig.model_validate({"name": "t", "source": {"kind": "log", "stream": "s"}, "function": "f"})
SIZES = LeaseSizes.of_heartbeat(0.1)
ENVIRONMENT = Environment(*cast(list[Any], [None] * 10))  # nothing is stored here


class Window:
    items = bytes = 0


class Deposed:
    """A pump that hears of another owner as it is cancelled: it says so, and nothing of the cancellation.

    Of those made only the first `deaf` do; a later one, which nobody should make, ends as it is told.
    """

    made, deaf = 0, 2

    def __init__(self, *given: Any) -> None:
        type(self).made += 1
        self.deaf = type(self).made <= type(self).deaf
        self.paused = self.draining = False
        self.window = Window()
        self.runs = asyncio.Event()

    async def run(self) -> None:
        self.runs.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if not self.deaf:
                raise
            raise StaleFence("another owner has it") from None

    async def drain(self, timeout: float) -> bool:
        return True


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
    tailer = Tailer(CONFIG, Means(ENVIRONMENT, "nowhere:1", cast(Any, None), SIZES))
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
    pump = SharedPump(setup, Counts(), cast(Any, source))
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


class Busy(Deposed):
    """A pump with items out, which another owner takes when it is told to."""

    in_flight = 3

    def __init__(self) -> None:
        super().__init__()
        self.draining_began, self.taken = asyncio.Event(), asyncio.Event()

    async def run(self) -> None:
        self.runs.set()
        await self.taken.wait()
        raise StaleFence("another owner has it")

    async def drain(self, timeout: float) -> bool:
        self.draining_began.set()
        await asyncio.Event().wait()
        return True


async def test_a_drain_waits_for_nothing_that_another_owner_took_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    # Given a tailer that drains, with items out
    monkeypatch.setattr(Busy, "made", 0)
    monkeypatch.setattr(Tailer, "_build", lambda self: Busy())
    tailer = Tailer(CONFIG, Means(ENVIRONMENT, "nowhere:1", cast(Any, None), SIZES))
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


class Share:
    """What a group gives."""

    release_within = 1.0

    def __init__(self, share: frozenset[str]) -> None:
        self._share, self._changed = share, asyncio.Event()

    def give(self, share: frozenset[str]) -> None:
        self._share = share
        self._changed.set()

    async def open(self) -> None:
        pass

    async def changed(self, known: frozenset[str]) -> frozenset[str]:
        while self._share == known:
            self._changed.clear()
            await self._changed.wait()
        return self._share

    def partition(self, name: str) -> str:
        return name

    async def close(self) -> None:
        pass


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(5):
        while not true():
            await asyncio.sleep(0)
