"""Queues that were written by versions before: their items, waiting or handed out, take turns by tenants once they are
opened, and their keys are their tenants' own."""

from __future__ import annotations

from pathlib import Path

import pytest
from servers.queues import ServedQueue

from tailrace.model.claim import Settle, State
from tailrace.stores.config import StoresConfig
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


async def unasked(*_: object) -> None:
    """Looks for nothing, as a version without that step."""


async def test_a_schema_takes_the_step(
    postgres_server: str, postgres_schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a schema of an older version, in which something waits
    options = PostgresQueueOptions(url=postgres_server, schema=postgres_schema, connections=2, notify=False)
    engine = ServedQueue(PostgresQueue, options, durability="relaxed")
    steps = migrate.steps

    with monkeypatch.context() as patch:
        patch.setattr(migrate, "steps", lambda: [step for step in steps() if step.number < 15])
        patch.setattr(checked_server, "look_for_a_crash", unasked)
        patch.setattr(checked_server.CheckedPostgres, "_agree_on_keys", unasked)
        await engine.open()
        await fill(engine)
        await engine.close()
    # When it is migrated, Then tenants take turns
    assert next(step.number for step in await migrate.bring_up(options, plan=False)) == 15
    await engine.open()
    await takes_turns(engine)
    await engine.close()


# Keys, which were the same for all tenants.

TENANTS = ("", "a", "b")


async def keyed(engine: QueueEngine) -> list[str]:
    """Submits two items of each tenant with one key, and one each with one dedupe key, as versions before kept them."""
    kinds = [MAIL._replace(tenant=tenant) for tenant in TENANTS]
    await put(engine, *(NewItem(kind, b"", engine.now() + 500, dedupe_key=f"d-{kind.tenant}") for kind in kinds))
    return await put(engine, *(NewItem(kind, b"", key="k") for kind in kinds * 2))


async def has_own_keys(engine: QueueEngine, ids: list[str]) -> None:
    """Asserts that the first item of each tenant is due, then the second, and that dedupe keys are known."""
    leased = await take(engine)
    assert sorted(leased.ids) == sorted(ids[:3])
    assert await nothing(engine)
    await engine.queue.settle(leased.fence, leased.ids, [])
    assert sorted((await take(engine)).ids) == sorted(ids[3:])
    again = [NewItem(MAIL._replace(tenant=tenant), b"", dedupe_key=f"d-{tenant}") for tenant in TENANTS]
    assert [each.duplicate for each in await engine.queue.submit(again)] == [True] * 3


async def test_keys_in_a_file_become_their_tenants_own(tmp_path: Path) -> None:
    # Given a file in which all tenants' items of a key waited for each other
    engine = FileQueue(tmp_path / "queue.db")
    engine.queue = SqliteQueue(engine.file, StoresConfig(shared_keys=True), engine.clock)
    await engine.file.open()
    await engine.queue.open()
    ids = await keyed(engine)
    leased = await take(engine)
    assert leased.ids == ids[:1]
    await engine.queue.settle(leased.fence, [], [Settle(ids[0], leased.fence, State.NEW)])
    await engine.file.write(lambda connection: connection.execute("DELETE FROM own_keys"))
    await engine.file.close()
    # When a version opens it whose keys are of tenants, then each tenant's are its own
    engine = FileQueue(tmp_path / "queue.db")
    await engine.reopen()
    await has_own_keys(engine, ids)
    await engine.file.close()


async def test_keys_in_a_schema_become_their_tenants_own(
    postgres_server: str, postgres_schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Given a schema of the version before, in which all tenants' items of a key waited for each other
    options = PostgresQueueOptions(url=postgres_server, schema=postgres_schema, connections=2, notify=False)
    engine = ServedQueue(PostgresQueue, options, shared_keys=True, durability="relaxed")
    steps = migrate.steps
    [keys] = [step.number for step in steps() if step.name == "keys_of_tenants"]
    with monkeypatch.context() as patch:
        patch.setattr(migrate, "steps", lambda: [step for step in steps() if step.number < keys])
        patch.setattr(checked_server.CheckedPostgres, "_agree_on_keys", unasked)
        await engine.open()
        ids = await keyed(engine)
        assert (await take(engine, seconds=0.1)).ids == ids[:1]
        await engine.close()
    # When it is migrated, then each tenant's are its own
    await migrate.bring_up(options, plan=False)
    engine = ServedQueue(PostgresQueue, options, durability="relaxed")
    await engine.open()
    await engine.pass_time(1)
    await engine.queue.sweep()
    await has_own_keys(engine, ids)
    await engine.close()
