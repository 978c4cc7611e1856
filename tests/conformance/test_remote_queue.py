"""The queue behind a store server obeys the laws of queues: the wire adds nothing and loses nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tailrace.stores.config import StoresConfig
from tailrace.stores.queue.sqlite.queue import SCHEMA, SqliteQueue
from tailrace.stores.remote import RemoteQueue
from tailrace.stores.server import StoreServer
from tailrace.testing.conformance.embedded import SqliteBench
from tailrace.testing.conformance.queue import MAX_PAYLOAD, QueueLaws
from tailrace.testing.conformance.queue_callbacks import CallbackLaws
from tailrace.testing.conformance.queue_races import RaceLaws
from tailrace.testing.conformance.queue_search import SearchLaws
from tailrace.testing.conformance.queue_turns import DEPTH


class Engine:
    """A client of a server of a queue in a file; `reopen` restarts the server on another port."""

    def __init__(self, folder: Path) -> None:
        self._embedded = SqliteBench[SqliteQueue](
            folder,
            SCHEMA,
            lambda file, clock: SqliteQueue(file, StoresConfig(max_payload=MAX_PAYLOAD), clock),
            SqliteQueue.open,
        )

    async def open(self) -> None:
        await self._embedded.__aenter__()
        self._server = StoreServer("127.0.0.1:0", {"queue": self._embedded.engine})
        await self._server.start()
        self.queue = RemoteQueue(self._server.address)

    async def close(self) -> None:
        await self.queue.close()
        await self._server.stop()
        await self._embedded.__aexit__()

    def now(self) -> float:
        return self._embedded.clock.wall()

    async def pass_time(self, seconds: float) -> None:
        self._embedded.clock.advance(seconds)

    async def reopen(self) -> None:
        await self.close()
        await self.open()


class TestRemoteQueue(QueueLaws, CallbackLaws, RaceLaws, SearchLaws):
    behind = DEPTH

    @pytest.fixture
    async def engine(self, tmp_path: Path) -> AsyncIterator[Engine]:
        engine = Engine(tmp_path)
        await engine.open()
        yield engine
        await engine.close()
