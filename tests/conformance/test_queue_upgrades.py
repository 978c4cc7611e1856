"""Queues that were written before tenants took turns: their items, waiting or handed out, take turns once they are
opened."""

from __future__ import annotations

from pathlib import Path

import pytest
from servers.queues import ServedQueue

from tailrace.stores.postgres.migrations import migrate
from tailrace.stores.queue.postgres import checked_server
from tailrace.stores.queue.postgres.queue import PostgresQueue, PostgresQueueOptions
from tailrace.stores.queue.queue import NewItem
from tailrace.stores.queue.sqlite.queue import SCHEMA, SqliteQueue
from tailrace.stores.sqlite.file import SqliteFile
from tailrace.testing.clock import ManualClock
from tailrace.testing.conformance.queue_engine import MAIL, QueueEngine, nothing, put, take, wanting

FLOOD, OTHER, LATER = (MAIL._replace(tenant=tenant) for tenant in ("flood", "other", "later"))


async def fill(engine: QueueEngine) -> None:
    """Submits many items of one tenant, one of another, and one that is delayed."""
    await put(engine, *(NewItem(FLOOD, b"") for _ in range(500)), NewItem(OTHER, b""))
    await put(engine, NewItem(LATER, b"", engine.now() + 20))


async def takes_turns(engine: QueueEngine) -> None:
    """Asserts that all these items, and nothing else, come by turns."""
    assert set((await take(engine, wanting(total=16))).kinds) == {FLOOD, OTHER}
    assert set((await take(engine, wanting(total=16))).kinds) == {FLOOD}
    await engine.pass_time(21)
    assert set((await take(engine, wanting(total=16))).kinds) == {FLOOD, LATER}
    left = 500 - 15 - 16 - 15
    while left:
        found = await take(engine)
        left -= found.kinds.count(FLOOD)
        assert set(found.kinds) == {FLOOD}
    assert await nothing(engine)


class FileQueue:
    """A queue in a file."""

    def __init__(self, path: Path) -> None:
        self.clock = ManualClock()
        self.file = SqliteFile(path, SCHEMA, name="queue", synchronous="NORMAL")
        self.queue = SqliteQueue(self.file, clock=self.clock)

    def now(self) -> float:
        return self.clock.wall()

    async def pass_time(self, seconds: float) -> None:
        self.clock.advance(seconds)

    async def reopen(self) -> None:
        await self.file.close()
        await self.file.open()
        await self.queue.open()


async def test_a_file_gets_its_index_when_a_flood_is_met(tmp_path: Path) -> None:
    # Given a file in which nobody took turns
    engine = FileQueue(tmp_path / "queue.db")
    await engine.file.open()
    await engine.queue.open()
    await fill(engine)
    statement = "SELECT name FROM sqlite_master"
    assert "tasks_turns" not in await engine.file.read(lambda c: {name for (name,) in c.execute(statement)})
    # When it is opened and claimed from
    await engine.reopen()
    # Then tenants take turns, by an index of theirs
    await takes_turns(engine)
    assert "tasks_turns" in await engine.file.read(lambda c: {name for (name,) in c.execute(statement)})
    await engine.file.close()


async def test_a_schema_takes_the_step(
    postgres_server: str, postgres_schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a schema of an older version, in which something waits
    options = PostgresQueueOptions(url=postgres_server, schema=postgres_schema, connections=2, notify=False)
    engine = ServedQueue(PostgresQueue, options, durability="relaxed")
    steps = migrate.steps

    async def unasked(*_: object) -> None:
        """Looks for no crash, as a version without that step."""

    with monkeypatch.context() as patch:
        patch.setattr(migrate, "steps", lambda: [step for step in steps() if step.number < 15])
        patch.setattr(checked_server, "look_for_a_crash", unasked)
        await engine.open()
        await fill(engine)
        await engine.close()
    # When it is migrated, Then tenants take turns
    assert next(step.number for step in await migrate.bring_up(options, plan=False)) == 15
    await engine.open()
    await takes_turns(engine)
    await engine.close()
