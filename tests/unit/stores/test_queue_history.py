"""History: how many ended workloads are kept, by number and by size."""

from __future__ import annotations

from pathlib import Path

from tailrace.model.claim import Settle, State
from tailrace.model.demand import Cell, Demand
from tailrace.model.search import Search
from tailrace.model.workload import Kind
from tailrace.stores.config import StoresConfig
from tailrace.stores.queue.history import ROW, kept
from tailrace.stores.queue.queue import NewItem
from tailrace.stores.queue.sqlite.queue import SCHEMA, SqliteQueue
from tailrace.stores.sqlite.file import SqliteFile

DEMAND = Demand({Cell("f", 2): 1000}, frozenset(), 1000)


def test_the_youngest_that_fit_are_kept() -> None:
    assert kept(100, 50, 1000, 1000) == 100
    assert kept(100, 50, 2000, 1000) == 25
    assert kept(10, 50, 2000, 1000) == 10
    assert kept(100, 0, 2000, 1000) == 100


async def test_long_reasons_are_forgotten_sooner_than_many_short_ones(tmp_path: Path) -> None:
    # Given room for ten rows and one long reason
    file = SqliteFile(tmp_path / "queue.db", SCHEMA, name="queue", synchronous="OFF")
    await file.open()
    try:
        queue = SqliteQueue(file, StoresConfig(history_bytes=20 * ROW))
        await queue.open()

        async def end(count: int, reason: str) -> list[str]:
            ids = [each.id for each in await queue.submit([NewItem(Kind("f", 2), b"")] * count)]
            leased = await queue.lease(DEMAND, 30.0, 0)
            assert leased is not None
            others = [Settle(id, leased.fence, State.FATAL_FAILURE, reason=reason) for id in ids]
            assert await queue.settle(leased.fence, [], others) == []
            return ids

        async def known() -> list[str]:
            while await queue.sweep():
                pass
            return [status.id for status in (await queue.find(Search())).statuses]

        # When ten end with short reasons, then all are known
        short = await end(10, "no")
        assert sorted(await known()) == sorted(short)
        # And when others end with reasons as long as ten rows, then the oldest of all go until the rest fits
        long = await end(4, "x" * (10 * ROW))
        after = await known()
        assert set(after) < {*short, *long} and after[0] == max(long)
        # And what was forgotten counts no more
        (beside,) = await file.read(lambda connection: connection.execute("SELECT bytes FROM history").fetchone())
        assert beside + len(after) * ROW <= 20 * ROW
        reasons = "SELECT coalesce(sum(length(reason)), 0) FROM entities"
        (stored,) = await file.read(lambda connection: connection.execute(reasons).fetchone())
        assert beside == stored
    finally:
        await file.close()
