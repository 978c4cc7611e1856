"""The whole platform with its queue on a Redis, which is killed and comes back."""

from __future__ import annotations

import asyncio
from pathlib import Path

import redis

import tailrace
from tailrace.assembly.platform import Platform

FUNCTIONS = str(Path(__file__).parents[1] / "e2e" / "journaled_functions.py")


async def test_submissions_end_although_the_server_is_killed_meanwhile(own_redis, tmp_path: Path) -> None:
    # Given a platform whose queue is on a durable server
    server = own_redis()
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "stores.yaml").write_text(f"queue: {{engine: redis, url: '{server.address}'}}\n")
    journal = tmp_path / "journal"
    platform = Platform(
        tmp_path / "data",
        [FUNCTIONS],
        config=tmp_path / "config",
        heartbeat=0.5,
        environment={"TAILRACE_TEST_JOURNAL": str(journal)},
    )
    try:
        await platform.start()
        async with tailrace.AsyncClient(platform.gateway_address) as client:
            # When some wait, run and fail while the server is killed without warning
            handles = [await client.submit("work", seconds=0.3, fail_first=n % 2) for n in range(12)]
            async with asyncio.timeout(60):
                while not journal.exists() or "start" not in journal.read_text():
                    await asyncio.sleep(0.01)
            server.program.kill()
            await asyncio.sleep(0.2)
            server.program.start()
            # Then all that was accepted ends, each with its result
            async with asyncio.timeout(90):
                results = [await handle.result(timeout=60) for handle in handles]
    finally:
        await platform.stop()
    assert results == [f"done {handle.id}" for handle in handles]
    with redis.Redis(port=server.port) as beside:
        assert int(beside.hget("{tailrace}:queue:counts", "10") or 0) == 12
        assert not beside.hlen("{tailrace}:queue:payloads")
    assert not (tmp_path / "data" / "queue.db").exists()
