"""The recipe of docs/guides/exactly-once.md does what it says: its code is read from the page and run, with processes
that die after the transaction, and with what is redriven from its dead letter."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from scenes import commands

import tailrace
from tailrace import AsyncClient, Call
from tailrace.assembly.platform import Platform

PAGE = Path(tailrace.__file__).parent / "docs" / "guides" / "exactly-once.md"
#: Workloads that credit one account a cent each; every third dies after its transaction, every third of those for good.
ITEMS = 30
DYING = '''

@tailrace.function(retry=tailrace.Retry(backoff="list", delays=(0.1,), max_crashes=5))
async def credit_and_die(ctx: tailrace.Context, account: str, cents: int, number: int) -> None:
    """Credits, and is killed when that is done; and dies for good after that, until somebody redrives it."""
    await credit(ctx, account, cents)
    if number % 3 == 0 and ctx.crashes == 0 and ctx.origin == ctx.id:
        os.kill(os.getpid(), 9)
    if number % 9 == 0 and ctx.origin == ctx.id:
        raise tailrace.Fatal("after its transaction")
'''


def block(language: str) -> str:
    found = re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(found) == 1, f"the page has {len(found)} blocks of {language}"
    return str(found[0])


@pytest.fixture
async def platform(tmp_path: Path, postgres_server: str, postgres_schema: str) -> AsyncIterator[Platform]:
    with psycopg.connect(postgres_server, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {postgres_schema}")  # type: ignore[call-overload]
        connection.execute(f"SET search_path TO {postgres_schema}; {block('sql')}")  # type: ignore[call-overload]
    (tmp_path / "shop.py").write_text(block("python") + DYING)
    sign = "&" if "?" in postgres_server else "?"
    running = Platform(
        tmp_path / "data",
        [str(tmp_path / "shop.py")],
        heartbeat=0.5,
        environment={"SHOP_DATABASE": f"{postgres_server}{sign}options=-csearch_path%3D{postgres_schema}"},
    )
    try:
        await running.start()
        yield running
        await running.drain(10)
    finally:
        await running.stop()


async def test_the_recipe_credits_once_whatever_dies_and_keeps_the_latest_version(
    platform: Platform, postgres_server: str, postgres_schema: str
) -> None:
    def read(query: str) -> list[tuple[Any, ...]]:
        with psycopg.connect(postgres_server) as connection:
            return connection.execute(query.format(s=postgres_schema)).fetchall()  # type: ignore[call-overload, no-any-return]

    async with AsyncClient(platform.gateway_address) as client:
        # Given workloads of which some die after their transaction, once, and some of these for good
        calls = [Call("credit_and_die", account="ann", cents=1, number=number) for number in range(ITEMS)]
        handles = await client.submit_many(calls)
        for _ in range(3):
            await client.submit_many([Call("save", document="terms", body="newest", key="terms")])
        # When all have ended, and the dead ones are redriven
        dead = ITEMS // 9 + 1
        async with asyncio.timeout(60):
            while len(await letters(platform)) < dead:
                await asyncio.sleep(0.2)
        await command(platform, "dead", "redrive", "--function", "credit_and_die")
        # Then each was credited once, by what it was at first
        async with asyncio.timeout(60):
            while await letters(platform) or await unfinished(client, [handle.id for handle in handles]):
                await asyncio.sleep(0.2)
        assert read("SELECT cents FROM {s}.accounts") == [(ITEMS,)]
        assert read("SELECT count(*) FROM {s}.done") == [(ITEMS,)]
        assert {origin for (origin,) in read("SELECT origin FROM {s}.done")} == {handle.id for handle in handles}
        # And an older version changes nothing
        [(body, fence)] = read("SELECT body, fence FROM {s}.documents")
        assert body == "newest" and fence > 0


async def unfinished(client: AsyncClient, ids: list[str]) -> bool:
    ended = {"success", "fatal_failure"}
    return any(status is None or status.state not in ended for status in await client.status_many(ids))


async def letters(platform: Platform) -> list[Any]:
    found: list[Any] = json.loads(await command(platform, "dead", "list", "--json"))
    return found


async def command(platform: Platform, *words: str) -> str:
    environment = {**os.environ, "TAILRACE_GATEWAY": platform.gateway_address}
    done = await asyncio.to_thread(commands.tailrace, *words, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout
