"""A queue that is restored from an older backup gives no fence a second time: fences follow the store's clock."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tailrace.model.claim import State
from tailrace.model.demand import Cell, Demand
from tailrace.model.workload import Kind
from tailrace.stores.queue.queue import NewItem
from tailrace.stores.queue.sqlite.queue import SCHEMA, SqliteQueue
from tailrace.testing.conformance.embedded import SqliteBench

ANY = Demand({Cell("f", 2): 10}, frozenset(), 10)
LEASE = 30.0


def bench(folder: Path) -> SqliteBench[SqliteQueue]:
    return SqliteBench[SqliteQueue](
        folder, SCHEMA, lambda file, clock: SqliteQueue(file, clock=clock), SqliteQueue.open
    )


@pytest.mark.parametrize("claims", [1, 3])
async def test_after_a_restore_fences_go_on_above_all_that_were_ever_given(tmp_path: Path, claims: int) -> None:
    # Given a backup, and claims that were made after it
    store = bench(tmp_path)
    async with store:
        ((id, _),) = await store.engine.submit([NewItem(Kind("f", 2), b"x")])
    shutil.copy(tmp_path / "store.db", tmp_path / "backup")
    newest = 0
    async with store:
        for _ in range(claims):
            leased = await store.engine.lease(ANY, LEASE, 0)
            assert leased is not None
            assert leased.fence > newest
            newest = leased.fence
            store.clock.advance(LEASE + 1)
    # When the backup is put back, and the item is claimed as if for the first time
    shutil.copy(tmp_path / "backup", tmp_path / "store.db")
    async with store:
        again = await store.engine.lease(ANY, LEASE, 0)
        # Then its fence is above, and whoever had it before the restore settles nothing
        assert again is not None
        assert again.ids == [id]
        assert again.fence > newest
        assert await store.engine.settle(newest, [id], []) == [id]
        renewed = await store.engine.renew([id], newest, LEASE, State.PROCESSING)
        assert renewed.lost == [id]
        (status,) = await store.engine.status([id])
        assert status is not None
        assert not status.ended_at


async def test_fences_rise_although_the_clock_was_set_back(tmp_path: Path) -> None:
    async with bench(tmp_path) as store:
        await store.engine.submit([NewItem(Kind("f", 2), b"x")])
        first = await store.engine.lease(ANY, LEASE, 0)
        assert first is not None
        await store.reopen()
        store.clock.advance(LEASE + 1)
        second = await store.engine.lease(ANY, LEASE, 0)
        assert second is not None
        assert second.fence > first.fence
        await store.engine.settle(second.fence, second.ids, [])
        # When the clock is set back by a day, in front of a new item
        store.clock.jump(-86_400.0)
        await store.engine.submit([NewItem(Kind("f", 2), b"y")])
        third = await store.engine.lease(ANY, LEASE, 0)
        assert third is not None
        assert third.fence > second.fence
