"""A dead letter that is redriven keeps its identity, and is newer than all that its key had: functions that pass
`ctx.fence` on and have older ones refused lose nothing by it."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from scenes import commands

from tailrace import AsyncClient, Call
from tailrace.assembly.platform import Platform
from tailrace.stores.log.log import Record
from tailrace.stores.remote import RemoteLog

FUNCTIONS = '''
import os
import sqlite3
import tailrace

TABLE = os.environ["TAILRACE_TEST_TABLE"]

@tailrace.function
def save(ctx: tailrace.Context, doc: str, version: int) -> None:
    """Writes a version of a document, and has an older fence refused, as the pages say."""
    if version == 3 and not os.path.exists(TABLE + ".mended"):
        raise tailrace.Fatal("cannot read version 3")
    origin = getattr(ctx, "origin", "not told")
    with sqlite3.connect(TABLE, timeout=10, isolation_level=None) as table:
        table.execute(
            "INSERT INTO docs VALUES (?, ?, ?) ON CONFLICT (doc) DO UPDATE SET version = excluded.version,"
            " fence = excluded.fence WHERE excluded.fence > docs.fence",
            (doc, version, ctx.fence),
        )
        table.execute("INSERT INTO runs VALUES (?, ?, ?, ?)", (ctx.id, origin, version, "headers" in dict(ctx.headers)))
    table.close()
'''
TAILER = """\
name: docs
source: {kind: log, stream: docs}
function: save
order: key
key: {record: true}
"""


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.db"
    with closing(sqlite3.connect(path)) as made:
        made.executescript(
            "PRAGMA journal_mode = WAL; CREATE TABLE docs (doc TEXT PRIMARY KEY, version INT, fence INT);"
            " CREATE TABLE runs (id TEXT, origin TEXT, version INT, headers INT);"
        )
    return path


@pytest.fixture
async def platform(tmp_path: Path, table: Path) -> AsyncIterator[Platform]:
    (tmp_path / "docs.py").write_text(FUNCTIONS)
    (tmp_path / "docs.yaml").write_text(TAILER)
    running = Platform(
        tmp_path / "data",
        [str(tmp_path / "docs.py")],
        tailers=[tmp_path / "docs.yaml"],
        heartbeat=0.5,
        environment={"TAILRACE_TEST_TABLE": str(table)},
    )
    try:
        await running.start()
        yield running
        await running.drain(10)
    finally:
        await running.stop()


@pytest.mark.trust(point=10)
async def test_a_redriven_update_of_a_stream_is_newer_than_what_its_key_had(platform: Platform, table: Path) -> None:
    async with RemoteLog(platform.store_address) as log:
        # Given a document of which the third version died, and a fourth that came after it
        for version in (1, 2, 3, 4):
            await log.append("docs", 0, [record("a", version)])
        await until(lambda: saved(table) == {"a": 4})
        [letter] = await letters(platform)
        # When the function is mended, and the letter is redriven
        Path(f"{table}.mended").touch()
        await tailrace(platform, "dead", "redrive", "--function", "save")
        # Then its version is the one that is kept, not refused as older
        await until(lambda: len(runs(table)) == 4)
        assert saved(table) == {"a": 3}
        # And its function is told which item of the stream it was
        id, origin = next((id, origin) for id, origin, version, _ in runs(table) if version == 3)
        assert origin == letter["id"] == "docs/0/2" == id
        # And what the stream has next of this key is newer than that
        await log.append("docs", 0, [record("a", 5)])
        await until(lambda: len(runs(table)) == 5)
        assert saved(table) == {"a": 5}


@pytest.mark.trust(point=10)
async def test_a_redriven_workload_tells_the_id_that_it_had_at_first(platform: Platform, table: Path) -> None:
    async with AsyncClient(platform.gateway_address) as client:
        # Given a workload that died, was redriven too early, and died again
        calls = [
            Call("save", doc="b", version=2),
            Call("save", doc="b", version=3, headers={"headers": "mine"}),
        ]
        _, first = await client.submit_many(calls)
        await died(platform, before="")
        await tailrace(platform, "dead", "redrive", "--function", "save")
        await died(platform, before=first.id)
        # When it is redriven once the function is mended
        Path(f"{table}.mended").touch()
        await tailrace(platform, "dead", "redrive", "--function", "save")
        await until(lambda: len(runs(table)) == 2)
        # Then it knows its first id, is newer than what its document had, and has its own headers and no other
        assert saved(table) == {"b": 3}
        [(id, origin, _, headers)] = [each for each in runs(table) if each[2] == 3]
        assert origin == first.id != id
        assert headers


@pytest.mark.trust(point=10)
async def test_a_redriven_item_of_a_job_is_told_its_first_id(platform: Platform, table: Path) -> None:
    async with AsyncClient(platform.gateway_address) as client:
        # Given an item of an open job that died, was redriven too early, and died again
        job = client.job("docs", "save")
        await job.add(doc="c", version=3)
        await died(platform, before="")
        [first] = await letters(platform)
        await tailrace(platform, "dead", "redrive", first["id"])
        await died(platform, before=first["id"])
        [second] = await letters(platform)
        # When it is redriven in its tree once the function is mended
        Path(f"{table}.mended").touch()
        await tailrace(platform, "dead", "redrive", second["id"])
        await until(lambda: len(runs(table)) == 1)
        # Then it is another workload, and knows which one it was at first
        [(id, origin, _, headers)] = runs(table)
        assert origin == first["id"]
        assert len({first["id"], second["id"], id}) == 3
        assert not headers


@pytest.mark.trust(point=10)
async def test_a_dedupe_key_says_of_what_is_redriven_what_it_said_before(platform: Platform, table: Path) -> None:
    async with AsyncClient(platform.gateway_address) as client:
        # Given a workload with a dedupe key that died, and was redriven
        first = await client.submit("save", doc="d", version=3, dedupe_key="d-3")
        await died(platform, before="")
        Path(f"{table}.mended").touch()
        await tailrace(platform, "dead", "redrive", "--function", "save")
        await until(lambda: len(runs(table)) == 1)
        # When the same is submitted once more, then it is answered with the first one, and does not run
        again = await client.submit("save", doc="d", version=3, dedupe_key="d-3")
        assert again.id == first.id == runs(table)[0][1]
        await client.submit("save", doc="e", version=1)
        await until(lambda: "e" in saved(table))
        assert [version for _, _, version, _ in runs(table)] == [3, 1]


def record(doc: str, version: int) -> Record:
    return Record(json.dumps({"doc": doc, "version": version}).encode(), key=doc)


async def tailrace(platform: Platform, *words: str) -> str:
    environment = {**os.environ, "TAILRACE_GATEWAY": platform.gateway_address}
    done = await asyncio.to_thread(commands.tailrace, *words, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


async def letters(platform: Platform) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(await tailrace(platform, "dead", "list", "--json"))
    return found


async def died(platform: Platform, before: str) -> None:
    """Waits for a letter of another workload than the one before."""
    async with asyncio.timeout(20):
        while not [each for each in await letters(platform) if each["id"] != before]:
            await asyncio.sleep(0.1)


def rows(table: Path, query: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(table, timeout=10)) as read:
        return read.execute(query).fetchall()


def saved(table: Path) -> dict[str, int]:
    return dict(rows(table, "SELECT doc, version FROM docs"))


def runs(table: Path) -> list[tuple[Any, ...]]:
    return rows(table, "SELECT id, origin, version, headers FROM runs")


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not true():
            await asyncio.sleep(0.05)
