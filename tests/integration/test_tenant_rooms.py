"""The room that each tenant has of a queue, as each engine tells it."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from servers.queues import ServedQueue

from tailrace.model.workload import Kind
from tailrace.stores.config import StoresConfig
from tailrace.stores.queue.counts import Held
from tailrace.stores.queue.postgres.queue import PostgresQueue, PostgresQueueOptions
from tailrace.stores.queue.queue import NewItem, Queue
from tailrace.stores.queue.redis.queue import RedisQueue, RedisQueueOptions
from tailrace.stores.queue.sqlite.queue import SCHEMA, SqliteQueue
from tailrace.stores.sqlite.file import SqliteFile

MOST = 20


@pytest.fixture(params=["sqlite", "postgres", "redis"])
async def queue(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Queue]:
    server: Callable[[str], Any] = request.getfixturevalue
    if request.param == "sqlite":
        file = SqliteFile(tmp_path / "queue.db", SCHEMA, name="queue", synchronous="NORMAL")
        await file.open()
        queue = SqliteQueue(file, StoresConfig(max_waiting=MOST))
        await queue.open()
        yield queue
        await file.close()
        return
    if request.param == "postgres":
        options = PostgresQueueOptions(url=server("postgres_server"), schema=server("postgres_schema"), notify=False)
        served = ServedQueue(PostgresQueue, options, durability="relaxed", max_waiting=MOST)
    else:
        named = RedisQueueOptions(url=server("redis_server"), prefix=f"t-{uuid.uuid4()}", notify=False)
        served = ServedQueue(RedisQueue, named, durability="relaxed", max_waiting=MOST)
    await served.open()
    yield served.queue
    await served.close()


async def test_who_has_the_room_is_told_once_half_of_it_is_taken(queue: Queue) -> None:
    # Given a queue half of whose room is taken by a tenant, in two functions
    async def put(tenant: str, *functions: str) -> None:
        await queue.submit([NewItem(Kind(function, 2, "", tenant), b"") for function in functions])

    await put("acme", *["add"] * 5, *["mail"] * 5)
    assert await queue.held() == Held(MOST, 10, {})
    # When more comes, then it is told who has it
    await put("beta", "add")
    await put("", "mail", "mail")
    assert await queue.held() == Held(MOST, 13, {"acme": 10, "beta": 1, "": 2})


async def test_a_queue_without_tenants_tells_of_none(queue: Queue) -> None:
    await queue.submit([NewItem(Kind("add", 2), b"") for _ in range(MOST)])
    assert await queue.held() == Held(MOST, MOST, {})
