"""A spool forgets the workload that an id became, but not while that may still wait."""

from __future__ import annotations

from pathlib import Path

import pytest

from tailrace.model.workload import Kind
from tailrace.stores.queue.intake import NewItem
from tailrace.stores.spool.sqlite import SCHEMA, SqliteSpool
from tailrace.stores.sqlite.file import SqliteFile
from tailrace.testing.clock import ManualClock

DAY = 86_400.0


@pytest.mark.parametrize("cancelled", [False, True])
async def test_an_id_of_what_is_due_later_is_known_for_the_retention_from_then_on(
    tmp_path: Path, cancelled: bool
) -> None:
    clock = ManualClock()
    file = SqliteFile(tmp_path / "spool.db", SCHEMA, name="spool", synchronous="NORMAL")
    await file.open()
    spool = SqliteSpool(file, clock, room=lambda *_, shared: None, retention=7 * DAY)
    await spool.open()
    # Given one that is due in ten days, and left at once
    [late] = await spool.add([NewItem(Kind("f"), b"", due=clock.wall() + 10 * DAY, dedupe_key="late")])
    if cancelled:
        await spool.cancel([late.id])
    await spool.became([late.id], ["1" * 16])

    async def forget() -> bool:
        """Has another item leave, with which some are forgotten. Returns whether the first one is."""
        [one] = await spool.add([NewItem(Kind("f"), b"", dedupe_key=f"at {clock.wall()}")])
        await spool.became([one.id], ["2" * 16])
        return await spool.find([late.id]) == [None]

    # When the retention is over before that, then it is known all the same, unless it was cancelled
    clock.advance(8 * DAY)
    assert await forget() == cancelled
    # And when it is over from then on, it is forgotten
    clock.advance(10 * DAY)
    assert await forget()
    await file.close()
