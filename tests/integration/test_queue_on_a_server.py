"""The whole platform with its queue on a server, which is killed and comes back; and PostgreSQL's schema by command."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis
from typer.testing import CliRunner

import tailrace
from tailrace.assembly.platform import Platform
from tailrace.cli import app

FUNCTIONS = str(Path(__file__).parents[1] / "e2e" / "journaled_functions.py")


#: Numbers of workloads that have ended well and that have not ended, asked beside our code.
Ends = Callable[[], tuple[int, int]]


async def on_postgres(server: Any, config: Path) -> Ends:
    """Prepares PostgreSQL with a schema made by command."""
    command = ["store", "migrate", "--config", str(config)]
    planned = await asyncio.to_thread(CliRunner().invoke, app, [*command, "--plan"])
    assert "would take step 1 (queue)" in planned.output
    assert server.run("SELECT to_regclass('tailrace.tasks') IS NULL") == [(True,)]
    assert "took step 1 (queue)" in (await asyncio.to_thread(CliRunner().invoke, app, command)).output
    assert "is up to date" in (await asyncio.to_thread(CliRunner().invoke, app, command)).output

    def ended_and_live() -> tuple[int, int]:
        [(ended,)] = server.run("SELECT count(*) FROM tailrace.ended WHERE state = 10")
        [(live,)] = server.run("SELECT count(*) FROM tailrace.tasks")
        return ended, live

    return ended_and_live


async def on_redis(server: Any, config: Path) -> Ends:
    def ended_and_live() -> tuple[int, int]:
        with redis.Redis(port=server.port) as beside:
            ended = int(beside.hget("{tailrace}:queue:counts", "10") or 0)
            return ended, beside.hlen("{tailrace}:queue:payloads")

    return ended_and_live


@pytest.mark.parametrize(("engine", "made"), [("postgres", on_postgres), ("redis", on_redis)])
async def test_submissions_end_although_the_server_is_killed_meanwhile(
    engine: str, made: Callable[..., Any], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    # Given a platform whose queue is on a durable server
    server = request.getfixturevalue(f"own_{engine}")()
    config, journal = tmp_path / "config", tmp_path / "journal"
    config.mkdir()
    (config / "stores.yaml").write_text(f"queue: {{engine: {engine}, url: '{server.address}'}}\n")
    ended_and_live = await made(server, config)
    platform = Platform(
        tmp_path / "data",
        [FUNCTIONS],
        config=config,
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
    # And so it stands at the server, and nothing in a file beside it
    assert ended_and_live() == (12, 0)
    assert not (tmp_path / "data" / "queue.db").exists()
