"""A log source that waits: its cancellation is heard, even if the store answers at the same moment."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from tailrace.model.errors import NotConnected
from tailrace.stores.log.log import Bounds, Records
from tailrace.tailers.sources.log import LogSource


class EmptyLog:
    """A log with nothing in it; a wait ends with the news that the store is gone when `gone` is set."""

    def __init__(self) -> None:
        self.waits = asyncio.Event()
        self.gone = asyncio.Event()

    async def bounds(self, stream: str) -> dict[int, Bounds]:
        return {0: Bounds(0, 0)}

    async def read(self, stream: str, partition: int, position: int, items: int, size: int) -> Records:
        return Records([], [], [], [], [])

    async def wait(self, stream: str, positions: Mapping[int, int], timeout: float) -> None:
        self.waits.set()
        await self.gone.wait()
        raise NotConnected("the store was killed")


async def reading(log: EmptyLog) -> asyncio.Task[object]:
    source = LogSource(log, "s")  # type: ignore[arg-type]
    await source.open({})
    task: asyncio.Task[object] = asyncio.create_task(source.read(10, 1000, 60.0))
    await log.waits.wait()
    return task


@pytest.mark.parametrize("turns", range(6))
async def test_a_cancellation_is_not_lost_when_the_store_goes_in_the_same_moment(turns: int) -> None:
    log = EmptyLog()
    task = await reading(log)
    # Given a store that goes, which the source learns within a few turns of the loop
    log.gone.set()
    for _ in range(turns):
        await asyncio.sleep(0)
    # When the read is cancelled before it has ended, then it ends as cancelled
    if task.cancel():
        with pytest.raises(asyncio.CancelledError):
            await task
    else:
        with pytest.raises(NotConnected):
            await task


async def test_a_store_that_goes_is_told() -> None:
    log = EmptyLog()
    task = await reading(log)
    log.gone.set()
    with pytest.raises(NotConnected, match="killed"):
        await task
