"""A gateway over the embedded stores as a process of its own: prints its address, then runs until it is killed.

python gateway_process.py DIRECTORY [PORT]
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from tailrace.gateway.config import GatewayConfig
from tailrace.gateway.environment import ALONE, NOTHING_DECLARED, DeclaredFiles, GatewayStores, Neighbours
from tailrace.gateway.server import GatewayServer
from tailrace.model.function_spec import FunctionSpec
from tailrace.stores.config import StoresConfig
from tailrace.stores.control import sqlite as control_sqlite
from tailrace.stores.control.sqlite import SqliteControl
from tailrace.stores.dead_letters import sqlite as dead_letters_sqlite
from tailrace.stores.dead_letters.sqlite import SqliteDeadLetters
from tailrace.stores.jobs.sqlite.jobs import SqliteJobs
from tailrace.stores.queue.sqlite import queue as queue_sqlite
from tailrace.stores.queue.sqlite.queue import SqliteQueue
from tailrace.stores.results import sqlite as results_sqlite
from tailrace.stores.results.sqlite import SqliteResults
from tailrace.stores.schedules import sqlite as schedules_sqlite
from tailrace.stores.schedules.sqlite import SqliteSchedules
from tailrace.stores.sqlite.file import SqliteFile


class Stores(GatewayStores):
    """The stores that a gateway is given, and a gateway over them. Another one of a store: `replace(stores,
    queue=…)`."""

    def gateway(
        self, port: int = 0, beside: Neighbours = ALONE, declared: DeclaredFiles = NOTHING_DECLARED, **bounds: object
    ) -> GatewayServer:
        config = GatewayConfig.model_validate({"listen": f"127.0.0.1:{port}"} | bounds)
        return GatewayServer(config, self, beside, declared)


@contextlib.asynccontextmanager
async def open_stores(folder: Path, **config: Any) -> AsyncIterator[Stores]:
    """Opens stores in a folder; `config` of the queue's."""
    async with contextlib.AsyncExitStack() as files:

        async def opened(name: str, schema: str) -> SqliteFile:
            file = SqliteFile(folder / f"{name}.db", schema, name=name)
            await file.open()
            files.push_async_callback(file.close)
            return file

        queue = SqliteQueue(await opened("queue", queue_sqlite.SCHEMA), StoresConfig(**config))
        await queue.open()
        yield Stores(
            queue,
            SqliteResults(await opened("results", results_sqlite.SCHEMA)),
            SqliteDeadLetters(await opened("dead_letters", dead_letters_sqlite.SCHEMA)),
            SqliteControl(await opened("control", control_sqlite.SCHEMA)),
            jobs=SqliteJobs(queue),
            schedules=SqliteSchedules(await opened("own_schedules", schedules_sqlite.SCHEMA)),
        )


async def main(folder: Path, port: int) -> None:
    async with open_stores(folder) as stores:
        await stores.control.register([FunctionSpec("add")])
        gateway = stores.gateway(port)
        await gateway.start()
        print(gateway.address, flush=True)
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0))
