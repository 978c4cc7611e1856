"""A PostgreSQL standby that is promoted while items are out: nothing runs twice at once, whatever it lacks, and nothing
is lost for which the primary waited."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import pytest
from servers.standby import WithStandby

sys.path.insert(0, str(Path(__file__).parent))
from journal import judge

import tailrace
from tailrace.assembly.platform import Platform

FUNCTIONS = str(Path(__file__).parent / "journaled_functions.py")
ITEMS = 40


@pytest.mark.long(minutes=0.3)
@pytest.mark.parametrize("synchronous", [True, False])
async def test_a_standby_is_promoted_while_items_are_out(
    with_standby: WithStandby, tmp_path: Path, synchronous: bool
) -> None:
    # Given a platform on a primary with a standby, and items that run
    config, journal = tmp_path / "config", tmp_path / "journal"
    config.mkdir()
    there = {"engine": "postgres", "url": with_standby.either, "timeout": 1.0}
    (config / "stores.yaml").write_text(json.dumps({"queue": there}))
    if synchronous:
        await asyncio.to_thread(with_standby.wait_for_it)
    environment = {"TAILRACE_TEST_JOURNAL": str(journal)}
    platform = Platform(tmp_path / "data", [FUNCTIONS], config=config, heartbeat=0.5, environment=environment)
    try:
        await platform.start()
        async with tailrace.AsyncClient(platform.gateway_address) as client:
            calls = [tailrace.Call("steady", ticks=100) for _ in range(ITEMS)]
            handles = await client.submit_many(calls)
            async with asyncio.timeout(30):
                while not journal.exists() or "tick" not in journal.read_text():
                    await asyncio.sleep(0.01)
            if not synchronous:  # the standby gets no more, and more is accepted and handed out
                with_standby.program.kill()
                late = await client.submit_many(calls[:10])
                await asyncio.sleep(0.5)
            # When the primary is killed and the standby promoted
            with_standby.primary.program.kill()
            if not synchronous:
                await asyncio.to_thread(with_standby.program.start)
            await asyncio.to_thread(with_standby.promote)
            # Then all ends that the standby knew of, and nothing of it ran twice at once
            async with asyncio.timeout(90):
                for handle in handles:
                    await handle.result(timeout=80)
            # And what it did not know of is lost, if nobody waited for it: the page says so, and the start did
            if not synchronous:
                assert await client.status_many([handle.id for handle in late]) == [None] * 10
    finally:
        await platform.stop()
    verdict = judge(journal.read_text().splitlines())
    assert verdict.overlaps == set()
    assert {handle.id for handle in handles} <= verdict.ended
