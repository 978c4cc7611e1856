"""An outbox's table that is deleted and made again under its name: its rows are others, whatever their places."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from pathlib import Path

import psycopg
import pytest
from scenes.lone_node import node

from tailrace.model.function_spec import FunctionSpec
from tailrace.stores.outbox.sqlite import SqliteOutbox
from tailrace.wire.gateway import GatewayClient


def written(shop: Path, rows: int) -> None:
    """Writes rows by hand, as any application may."""
    with sqlite3.connect(shop) as connection:
        connection.executemany("INSERT INTO tailrace_outbox (function) VALUES (?)", [("work",)] * rows)


async def until(postgres: psycopg.AsyncConnection[tuple[int]], query: str, count: int) -> None:
    """Waits until a query counts so many."""
    async with asyncio.timeout(20):
        while await (await postgres.execute(query.encode())).fetchone() != (count,):
            await asyncio.sleep(0.05)


@pytest.mark.trust(point=2)
async def test_rows_of_a_table_that_was_made_again_are_not_taken_for_those_that_were_carried(
    tmp_path: Path, postgres_server: str, postgres_schema: str
) -> None:
    # Given an outbox whose first rows are on their way into a queue, which keeps them waiting
    shop, config = tmp_path / "shop.db", tmp_path / "config"
    await SqliteOutbox(shop).create()
    (config / "tailers").mkdir(parents=True)
    there = {"engine": "postgres", "url": postgres_server, "schema": postgres_schema, "timeout": 30.0}
    (config / "stores.yaml").write_text(json.dumps({"queue": there, "durability": "relaxed"}))
    source = {"kind": "outbox", "database": str(shop), "poll": 0.05}
    (config / "tailers" / "shop.yaml").write_text(json.dumps({"name": "shop", "source": source}))
    async with (
        node(tmp_path, config) as running,
        await psycopg.AsyncConnection.connect(postgres_server) as lock,
        await psycopg.AsyncConnection.connect(postgres_server, autocommit=True) as postgres,
    ):
        async with GatewayClient(running.addresses["gateway"]) as gateway:
            await gateway.register_functions("test", [FunctionSpec("work")])
        await lock.execute(f"LOCK TABLE {postgres_schema}.tasks IN ACCESS EXCLUSIVE MODE".encode())
        await asyncio.to_thread(written, shop, 3)
        waiting = "SELECT (count(*) > 0)::int FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE "
        await until(postgres, f"{waiting}'%%{postgres_schema}.queue_submit%%'", 1)
        # When the table is deleted and made again meanwhile, with other rows
        with sqlite3.connect(shop) as connection:
            connection.execute("DROP TABLE tailrace_outbox")
        await SqliteOutbox(shop).create()
        await asyncio.to_thread(written, shop, 3)
        await lock.rollback()
        # Then all of both get into the queue
        await until(postgres, f"SELECT count(*) FROM {postgres_schema}.tasks", 6)
