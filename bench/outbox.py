"""The scenario `outbox`: rows that transactions enqueued become items, which no-op functions run.

On SQLite the rows rest in an application's own file, from which a relay carries them into the embedded queue; on
PostgreSQL in the database of the queue, whose node moves them.
"""

from __future__ import annotations

import asyncio
import random
import time
from pathlib import Path

import tailrace

from ..assembly.platform import Platform
from ..model.errors import InvalidRequest
from ..wire.gateway import GatewayClient
from .figures import Figures, Progress
from .outbox_sqlite import fill
from .queue_engines import configured
from .scenarios import FUNCTIONS, throughput
from .workload import TENANTS, write_tailer

ENGINES = ("sqlite", "postgres")
TAILER = "name: app\nsource: {kind: outbox, database: %s}\n"


def _calls(count: int) -> list[tuple[str, str]]:
    pick = random.Random(1)
    return [(f"noop_{pick.randrange(20):03}", f"tenant-{pick.randrange(TENANTS):02}") for _ in range(count)]


async def outbox(folder: Path, count: int, engine: str, progress: Progress) -> Figures:
    """`enqueue_us`: one call inside a transaction, commits apart; `items_per_s`: from the outbox until all have run."""
    if engine not in ENGINES:
        raise InvalidRequest(f"unknown engine {engine!r}: expected one of {', '.join(ENGINES)}")
    progress("filling the outbox", 0.0)
    calls = _calls(count)

    async def settled(gateway: GatewayClient) -> int:
        return (await gateway.overview()).queue.get("success", 0)

    if engine == "sqlite":
        took = await asyncio.to_thread(fill, folder / "app.db", calls)
        tailers = [write_tailer(folder, TAILER % (folder / "app.db"))]
        figures = await throughput(Platform(folder / "data", [FUNCTIONS], tailers=tailers), settled, count, progress)
    else:
        with configured(folder, engine) as config:
            took = await _fill_postgres(folder, calls)
            figures = await throughput(Platform(folder / "data", [FUNCTIONS], config), settled, count, progress)
    return {"enqueue_us": took / count * 1e6, **figures}


async def _fill_postgres(folder: Path, calls: list[tuple[str, str]]) -> float:
    """Makes the queue's schema and fills its outbox. Returns the seconds that the calls took, without the commits."""
    from ..assembly.settings import ConfigDirectory
    from ..stores.config import StoresConfig
    from ..stores.postgres.migrations.migrate import migrate
    from ..stores.queue.engines import ENGINES

    options = ENGINES.options_of(ConfigDirectory(folder / "config").read("stores.yaml", StoresConfig).queue)
    connection = await options.connect()
    try:
        await migrate(connection, options.db_schema)
        took = 0.0
        for first in range(0, len(calls), 1000):
            async with connection.transaction():
                began = time.perf_counter()
                for function, tenant in calls[first : first + 1000]:
                    await tailrace.enqueue(connection, function, tenant=tenant, priority="user_visible")
                took += time.perf_counter() - began
    finally:
        await connection.close()
    return took
