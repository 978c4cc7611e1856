"""After a restore nothing is handed out for the lease of a source, whoever dies meanwhile. What whoever lived may do is
in `testing/conformance/moved.py`."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tailrace.assembly.embedded import EmbeddedStores
from tailrace.delay_service.config import DelayConfig
from tailrace.delay_service.mover import Mover
from tailrace.sdk.model.demand import Cell, Demand
from tailrace.sdk.model.errors import Unavailable
from tailrace.sdk.model.lease import LeaseSizes, wait_for_source
from tailrace.sdk.model.workload import Kind
from tailrace.stores.queue.queue import NewItem
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
