"""Taskiq on Redis: two processes on uvloop, with its broker on a stream, the one that acknowledges.

taskiq worker tailrace.bench.rivals.redis_taskiq:broker --workers 2    runs the tasks
python -m tailrace.bench.rivals.redis_taskiq                           submits them (feeding.py)

Cost of a SIGKILL: nothing is lost. Entries that the process had fetched are claimed by another one, when that fetches
new entries after ten minutes, the default of its `idle_timeout`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from redis.asyncio import Redis
from taskiq_redis import RedisStreamBroker

from .feeding import RivalFeeder, main
from .settings import settings
from .work import noop as work
from .work import started

URL = settings().url
#: Submissions at once, as a server's requests are.
AT_ONCE = 64

# As its own argument says, a lock with no timeout may outlive the worker that held it.
broker = RedisStreamBroker(url=URL, unacknowledged_lock_timeout=60)


@broker.task(task_name="noop")
async def noop() -> None:
    """Does nothing."""
    work()


@broker.task(task_name="start")
async def start(sent: float) -> None:
    """Notes its start."""
    started(sent)


@asynccontextmanager
async def opened() -> AsyncIterator[None]:
    """Opens the broker as a client; its start makes the group."""
    await broker.startup()
    try:
        yield
    finally:
        await broker.shutdown()


async def fill(count: int) -> None:
    """Submits 64 at once: it has no call for many."""
    turns = iter(range(count))

    async def one_by_one() -> None:
        for _ in turns:
            await noop.kiq()

    await asyncio.gather(*(one_by_one() for _ in range(AT_ONCE)))


async def send(sent: float) -> None:
    """Submits one."""
    await start.kiq(sent)


async def left() -> int:
    """Number of entries that the group has not been given, with those it did not acknowledge."""
    async with Redis.from_url(URL) as redis:
        group, *_ = await redis.xinfo_groups("taskiq")
        return int(group["pending"]) + int(group["lag"] or 0)


if __name__ == "__main__":
    main(RivalFeeder(fill, send, left, opened))
