"""After a restore nothing is handed out for the lease of a source, whoever dies meanwhile, and whoever lived goes on
with nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.delay_service.config import DelayConfig
from tailrace.delay_service.mover import Mover
from tailrace.sdk.model.demand import Cell, Demand
from tailrace.sdk.model.errors import StaleFence, Unavailable
from tailrace.sdk.model.lease import LeaseSizes, wait_for_source
from tailrace.sdk.model.ledger import Entry, Place
from tailrace.sdk.model.tries import Try
from tailrace.sdk.model.workload import Kind
from tailrace.stores.checkpoints.checkpoints import Mark
from tailrace.stores.queue.queue import NewItem
from tailrace.tailers.rules.ledger import Due, Verdict, copy_finds, running
from tailrace.testing.clock import ManualClock

ANY = Demand({Cell("f", 2): 10}, frozenset(), 10)
SIZES = LeaseSizes()


async def test_nothing_is_leased_and_no_stream_is_taken_until_what_may_run_is_over(tmp_path: Path) -> None:
    clock = ManualClock()

    def stores() -> EmbeddedStores:
        return EmbeddedStores(tmp_path / "data", clock=clock, sizes=SIZES)

    async with stores() as one:
        await one.queue.submit([NewItem(Kind("f", 2), b"x")])
    shutil.copytree(tmp_path / "data", tmp_path / "backup")
    # Given an item and a stream that were handed out after the backup
    async with stores() as one:
        leased = await one.queue.lease(ANY, SIZES.source, 0)
        assert leased is not None
        assert await one.ownership.take("s", "", "me", SIZES.source, 0) is not None
    # When the backup is put back, and the first run after it dies in the middle of its wait
    shutil.rmtree(tmp_path / "data")
    shutil.copytree(tmp_path / "backup", tmp_path / "data")
    for part in (0.5, 1.0):
        again = stores()
        await again.start()
        clock.advance(part * wait_for_source(SIZES) - 0.1)
        assert await again.queue.lease(ANY, SIZES.source, 0) is None
        with pytest.raises(Unavailable, match="put back from a copy"):
            await again.ownership.take("s", "", "me", SIZES.source, 0)
        mover = Mover(again.delay_log, again.checkpoints, again.ownership, DelayConfig(), clock)
        await mover.start()
        assert "put back from a copy" in mover.why
        await mover.stop()
        if part < 1:
            await again.stop()
    # Then both are handed out when the wait is over, above everything before
    clock.advance(0.2)
    later = await again.queue.lease(ANY, SIZES.source, 0)
    assert later is not None
    assert later.fence > leased.fence
    assert await again.ownership.take("s", "", "me", SIZES.source, 0) is not None
    await again.stop()
    # And a plain restart waits for nothing
    async with stores() as one:
        await one.queue.submit([NewItem(Kind("f", 2), b"y")])
        assert await one.queue.lease(ANY, SIZES.source, 0) is not None


async def test_an_owner_that_lives_through_a_restore_is_refused_and_the_next_one_is_not(tmp_path: Path) -> None:
    clock = ManualClock()

    def stores() -> EmbeddedStores:
        return EmbeddedStores(tmp_path / "data", clock=clock, sizes=SIZES)

    # Given a stream whose owner was there before the backup, and counts that a source keeps without an owner
    async with stores() as one:
        owner = await one.ownership.take("s", "0", "me", SIZES.source, 0)
        assert owner is not None
        await one.checkpoints.open("s/0", owner.epoch)
        await one.ledger.open("s", "0", owner.epoch)
        await one.checkpoints.open("counts", 1)
    shutil.copytree(tmp_path / "data", tmp_path / "backup")
    shutil.rmtree(tmp_path / "data")
    shutil.copytree(tmp_path / "backup", tmp_path / "data")
    async with stores() as one:
        # When it goes on in what was put back, which does not know what it settled since
        epoch, mark = owner.epoch, {"0": Mark(9)}
        parking = [(None, Entry(9, Place.PARKING, 1))]
        # Then nothing of it is written
        for write in (
            one.ownership.renew("s", "0", epoch, ()),
            one.checkpoints.commit("s/0", epoch, mark),
            one.ledger.write("s", "0", parking, epoch),
        ):
            with pytest.raises(StaleFence):
                await write
        await one.checkpoints.commit("counts", 1, mark)
        # And whoever takes the stream when the wait is over may write, under an epoch above all before
        clock.advance(wait_for_source(SIZES) + 0.1)
        row = await one.ownership.read("s", "0")
        assert row is not None
        taken = await one.ownership.take("s", "0", "me again", SIZES.source, row.version)
        assert taken is not None
        assert taken.epoch > row.epoch > epoch
        assert await one.checkpoints.open("s/0", taken.epoch) == {}
        assert await one.ledger.open("s", "0", taken.epoch) == []


async def test_what_waits_in_a_ledger_that_was_put_back_is_started_by_no_owner_from_before(tmp_path: Path) -> None:
    clock = ManualClock()

    def stores() -> EmbeddedStores:
        return EmbeddedStores(tmp_path / "data", clock=clock, sizes=SIZES)

    # Given an item that was on its way to the delay service when the backup was made, before anything was due
    parked = Entry(0, Place.PARKING, 1, due=clock.wall(), fence=1, first_seen=0.5, tries=(Try(1.0, "retry", "why"),))
    async with stores() as one:
        owner = await one.ownership.take("s", "", "me", SIZES.source, 0)
        assert owner is not None
        await one.ledger.open("s", "0", owner.epoch)
        await one.ledger.write("s", "0", [(None, parked)], owner.epoch)
    shutil.copytree(tmp_path / "data", tmp_path / "backup")
    async with stores() as one:
        due = await one.ownership.take("due", "", "me", SIZES.source, 0)
        assert due is not None
    # When the backup is put back
    shutil.rmtree(tmp_path / "data")
    shutil.copytree(tmp_path / "backup", tmp_path / "data")
    async with stores() as again:
        row = (await again.ledger.get("s", "0", [0]))[0]
        # Then who owned what is due learns from the row that it is over, and the next owner starts from it
        assert copy_finds(row, 1, due.epoch) is Verdict.STALE
        clock.advance(wait_for_source(SIZES))
        free = await again.ownership.read("due", "")
        assert free is not None
        heir = await again.ownership.take("due", "", "you", SIZES.source, free.version)
        assert heir is not None
        assert copy_finds(row, 1, heir.epoch) is Verdict.START
        started = running(row, Due(0, 1), heir.epoch, 2)
        assert await again.ledger.write("s", "0", [(row, started)], None) == [started]
        # And its other fields are as they were
        assert row._replace(epoch=0) == parked
