"""An audit of the queue counts row by row, in steps: each item counts once, through any changes between the steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.model.demand import Cell, Demand
from tailrace.model.workload import Kind
from tailrace.stores.config import StoresConfig
from tailrace.stores.queue.queue import NewItem
from tailrace.stores.queue.sqlite import tally as sqlite_tally
from tailrace.stores.queue.sqlite.tally import Count
from tailrace.testing.clock import ManualClock

ALL = Demand({Cell("f", 2): 1000}, frozenset(), 1000)


async def test_what_is_submitted_settled_and_forgotten_between_the_steps_counts_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_tally, "STEP", 10)
    clock = ManualClock()
    async with EmbeddedStores(tmp_path, StoresConfig(retention=60), clock) as stores:
        queue = stores.queue
        await queue.submit([NewItem(Kind("f", 2), b"x") for _ in range(25)])
        leased = await queue.lease(ALL, 30, 0)
        assert leased is not None
        await queue.settle(leased.fence, leased.ids[:20], [])
        clock.advance(120)
        took: list[int] = []
        plain = Count.step

        async def between() -> None:
            await queue.submit([NewItem(Kind("f", 2), b"y") for _ in range(7)])
            await queue.sweep()

        # Given steps between which items come, and ended ones on both sides of the count are forgotten
        count = Count(queue._memory)
        while not await stores._queue_file.write(lambda connection: plain(count, connection)):
            took.append(1)
            if len(took) == 1:
                await between()
        queue._memory.counted = None
        tally = count.tally()
        assert tally is not None
        assert sum(tally.states.values()) == tally.taken - tally.forgotten
        assert tally.taken == 32
        assert 0 < tally.forgotten < 20
        assert len(took) > 1
        # And when nothing happens meanwhile it says what the counters say
        assert (await queue.tally()).states == await queue.counts()
        # When the counters are read anew in the middle, then it is counted again
        again = Count(queue._memory)
        await stores._queue_file.write(lambda connection: plain(again, connection))
        await stores._queue_file.write(queue._memory.reload)
        assert await stores._queue_file.write(lambda connection: plain(again, connection))
        assert again.tally() is None
