"""A stream's fences tell the time of its state store: they rise over owners, and over partitions of a key."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.model.fence import fence_at
from tailrace.model.lease import LeaseSizes
from tailrace.tailers.takeover.epoch import FENCES_AHEAD, Epoch
from tailrace.testing.clock import ManualClock

SIZES = LeaseSizes()


@pytest.fixture
async def stores(tmp_path: Path, clock: ManualClock) -> AsyncIterator[EmbeddedStores]:
    async with EmbeddedStores(tmp_path, clock=clock, sizes=SIZES) as opened:
        yield opened


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def taken(stores: EmbeddedStores, clock: ManualClock, row: str = "", host: ManualClock | None = None) -> Epoch:
    epoch = Epoch(stores.ownership, stores.checkpoints, "t", SIZES, host or clock, lambda: None, row)
    await epoch.take()
    return epoch


async def test_a_key_that_moves_to_a_partition_with_an_older_owner_goes_on_higher(
    stores: EmbeddedStores, clock: ManualClock
) -> None:
    # Given two partitions, one of which was taken later, and handed out much more
    older = await taken(stores, clock, "0")
    clock.advance(2.0)
    newer = await taken(stores, clock, "1")
    fences = [newer.next_fence() for _ in range(10_000)]
    # When a key moves from the second to the first
    clock.advance(0.5)
    # Then it goes on above what it had, and back again
    assert older.next_fence() > fences[-1]
    clock.advance(0.5)
    assert newer.next_fence() > older.next_fence() - 1


async def test_the_next_owner_begins_above_the_one_before_also_when_the_clock_of_the_store_was_set_back(
    stores: EmbeddedStores, clock: ManualClock
) -> None:
    # Given an owner that handed out until its lease was nearly over, without another word from its store
    first = await taken(stores, clock)
    clock.advance(SIZES.source - 1)
    last = first.next_fence()
    assert last <= fence_at(first.version + FENCES_AHEAD) + 1
    await first.release(0)
    # When the store's clock is set back by an hour, and the next one takes the row
    clock.jump(-3600)
    second = await taken(stores, clock)
    # Then its fences are higher, and go on being so
    assert last < second.next_fence() < second.next_fence()


async def test_a_fence_is_never_of_a_time_that_its_store_has_not_reached(
    stores: EmbeddedStores, clock: ManualClock
) -> None:
    # Given the first owner of a row, and a clock of its host that runs well
    epoch = await taken(stores, clock)
    for _ in range(20):
        clock.advance(SIZES.heartbeat)
        # When it hands out, then its fence is of the last seconds, and not of a time to come
        fence = epoch.next_fence()
        now = int(clock.wall() * 1e6)
        assert fence_at(now - 1_000_000) < fence <= fence_at(now)
        await epoch.renew()
