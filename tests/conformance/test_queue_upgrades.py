"""Queues that were written before tenants took turns: what waits in them, and what is out, takes turns once they are
opened."""

from __future__ import annotations

import uuid
from pathlib import Path

import pytest
from servers.queues import ServedQueue

from tailrace.model.workload import Kind
from tailrace.stores.postgres.migrations import migrate
from tailrace.stores.queue.postgres.queue import PostgresQueue, PostgresQueueOptions
from tailrace.stores.queue.queue import NewItem
from tailrace.stores.queue.redis.queue import RedisQueue, RedisQueueOptions
from tailrace.stores.queue.sqlite.queue import SCHEMA, SqliteQueue
from tailrace.stores.sqlite.file import SqliteFile
from tailrace.testing.clock import ManualClock
from tailrace.testing.conformance.queue_engine import MAIL, QueueEngine, nothing, put, take, wanting

FLOOD, OTHER, LATER = (MAIL._replace(tenant=tenant) for tenant in ("flood", "other", "later"))


async def fill(engine: QueueEngine) -> None:
    """Many of one tenant, one of another, and one that is delayed."""
    await put(engine, *(NewItem(FLOOD, b"") for _ in range(500)), NewItem(OTHER, b""))
    await put(engine, NewItem(LATER, b"", engine.now() + 20))


async def takes_turns(engine: QueueEngine) -> None:
    """All of that, and nothing else, by turns."""
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
    # Given a file as an older version leaves it, and as any does in which nobody took turns
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
    with monkeypatch.context() as patch:
        patch.setattr(migrate, "steps", lambda: [step for step in steps() if step.number < 15])
        await engine.open()
        await fill(engine)
        await engine.close()
    # When it is migrated, Then tenants take turns
    assert next(step.number for step in await migrate.bring_up(options, plan=False)) == 15
    await engine.open()
    await takes_turns(engine)
    await engine.close()


#: What an older version wrote: one zset of each lane, no turns.
_OLDER = """
local base = KEYS[1]
for _, key in ipairs(redis.call('KEYS', base .. 'kind:*')) do
  local found = redis.call('ZRANGE', key, 0, -1, 'WITHSCORES')
  for i = 1, #found, 2 do
    local lane = string.sub(redis.call('HGET', base .. 'tasks', found[i]), 3, 6)
    redis.call('ZADD', base .. 'lane:' .. lane, found[i + 1], found[i])
  end
  redis.call('DEL', key)
end
for _, name in ipairs({'firsts:', 'ring:', 'soon:'}) do
  for _, key in ipairs(redis.call('KEYS', base .. name .. '*')) do redis.call('DEL', key) end
end
redis.call('HDEL', base .. 'meta', 'layout', 'turn')
"""


async def test_a_prefix_is_moved_over_when_it_is_opened(redis_server: str) -> None:
    # Given a queue as an older version leaves it, with more than one step moves
    options = RedisQueueOptions(url=redis_server, prefix=f"t-{uuid.uuid4()}", notify=False)
    engine = ServedQueue(RedisQueue, options)
    await engine.open()
    await fill(engine)
    await put(engine, *(NewItem(Kind("letter", 2, f"c{n % 3}", f"t{n % 7}"), b"") for n in range(2500)))
    base = engine.queue.base
    await engine.queue._server.call("EVAL", _OLDER, 1, base)
    assert await engine.queue._server.call("EXISTS", f"{base}firsts:\0\0\0\1") == 0
    # When it is opened, Then tenants take turns, and nothing is lost
    await engine.reopen()
    await takes_turns(engine)
    left = 2500
    while left:
        left -= len((await take(engine, wanting(Kind("letter", 2)))).ids)
    assert left == 0 and await nothing(engine, wanting(Kind("letter", 2)))
    assert not await engine.queue._server.call("KEYS", f"{base}lane:*")
    # And its indexes add up
    while await engine.queue.sweep():
        pass
    await engine.close()
    async with options.client() as client:
        if keys := [key async for key in client.scan_iter(f"{base}*")]:
            await client.delete(*keys)
        await client.connection_pool.disconnect()
