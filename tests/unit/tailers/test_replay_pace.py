"""A replay with a rate reads at that rate, also where an event loop's waits end a little early, as uvloop's do."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence

from tailrace.model.replay import Replay, Stretch
from tailrace.sdk.source import Capabilities, StreamBatch
from tailrace.tailers.replay.source import ReplaySource

ITEMS, RATE = 60, 200.0
SOON = 20.0


class Reader:
    """One partition, of which every position has an item."""

    capabilities = Capabilities(rereads=True, replays=True)

    async def ends(self) -> dict[str, int]:
        return {"0": ITEMS}

    async def reread(self, partition: str, positions: Sequence[int]) -> StreamBatch:
        count = len(positions)
        return StreamBatch(partition, [*positions], [0.0] * count, [""] * count, [()] * count, [b"{}"] * count)

    async def close(self) -> None:
        pass


class SlowClock:
    """Says that a tenth less has passed than the event loop has waited."""

    def monotonic(self) -> float:
        return 0.9 * time.monotonic()

    def wall(self) -> float:
        return time.time()


def source() -> ReplaySource:
    stretch = Stretch("0", 0, ITEMS, spans=((0, ITEMS - 1),), items=ITEMS)
    return ReplaySource(Reader(), Replay(1, "orders", (stretch,), rate=RATE), SlowClock())


async def test_each_wait_for_the_pace_ends_with_items() -> None:
    replay = source()
    await replay.open({})
    read: list[int] = []
    async with asyncio.timeout(SOON):
        while not replay.over:
            # When there is no room yet, the read waits for it: it does not come back without items, nor wait on
            (batch,) = await replay.read(ITEMS, 1 << 20, 60.0)
            read += batch.positions
    assert read == [*range(ITEMS)]
    await replay.close()


async def test_a_read_that_may_not_wait_so_long_finds_nothing() -> None:
    replay = source()
    await replay.open({})
    async with asyncio.timeout(SOON):
        await replay.read(ITEMS, 1 << 20, 60.0)
        assert await replay.read(ITEMS, 1 << 20, 0.0) == []


async def test_close_ends_a_wait_for_the_pace() -> None:
    stretch = Stretch("0", 0, ITEMS, spans=((0, ITEMS - 1),), items=ITEMS)
    replay = ReplaySource(Reader(), Replay(1, "orders", (stretch,), rate=0.01), SlowClock())
    await replay.open({})
    reading = asyncio.create_task(replay.read(1, 1 << 20, 60.0))
    await asyncio.sleep(0)
    await replay.close()
    assert await asyncio.wait_for(reading, SOON) == []
