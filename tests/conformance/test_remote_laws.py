"""The stores' clients obey the laws of their stores, over a real loopback connection."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

from tailrace.stores.checkpoints import sqlite as checkpoints
from tailrace.stores.checkpoints.checkpoints import Checkpoints
from tailrace.stores.control import sqlite as control
from tailrace.stores.control.control import Control
from tailrace.stores.dead_letters import sqlite as dead_letters
from tailrace.stores.dead_letters.dead_letters import DeadLetters
from tailrace.stores.drops import sqlite as drops
from tailrace.stores.drops.drops import Drops
from tailrace.stores.inventory import sqlite as inventory
from tailrace.stores.inventory.inventory import Inventory
from tailrace.stores.ledger import sqlite as ledger
from tailrace.stores.ledger.ledger import Ledger
from tailrace.stores.log import sqlite as log
from tailrace.stores.log.log import Log
from tailrace.stores.ownership import sqlite as ownership
from tailrace.stores.ownership.ownership import Ownership
from tailrace.stores.remote import (
    RemoteCheckpoints,
    RemoteControl,
    RemoteDeadLetters,
    RemoteDrops,
    RemoteInventory,
    RemoteLedger,
    RemoteLog,
    RemoteOwnership,
    RemoteReplays,
    RemoteResults,
    RemoteSchedules,
    RemoteSegments,
    RemoteUsage,
)
from tailrace.stores.replays import sqlite as replays
from tailrace.stores.replays.replays import Replays
from tailrace.stores.results import sqlite as results
from tailrace.stores.results.results import Results
from tailrace.stores.schedules import sqlite as schedules
from tailrace.stores.schedules.schedules import Schedules
from tailrace.stores.segments import sqlite as segments
from tailrace.stores.segments.segments import Segments
from tailrace.stores.server import StoreServer
from tailrace.stores.usage import sqlite as usage
from tailrace.stores.usage.usage import Usage
from tailrace.testing.clock import ManualClock
from tailrace.testing.conformance.bench import StoreBench
from tailrace.testing.conformance.checkpoints import CheckpointLaws
from tailrace.testing.conformance.control import ControlLaws
from tailrace.testing.conformance.dead_letters import BOUND, DeadLetterLaws
from tailrace.testing.conformance.drops import DropLaws
from tailrace.testing.conformance.embedded import SqliteBench
from tailrace.testing.conformance.inventory import InventoryLaws
from tailrace.testing.conformance.ledger import LedgerLaws
from tailrace.testing.conformance.log import LogLaws
from tailrace.testing.conformance.ownership import OwnershipLaws
from tailrace.testing.conformance.replays import ReplayLaws
from tailrace.testing.conformance.results import MAX_BYTES, RETENTION, ResultLaws
from tailrace.testing.conformance.schedules import ScheduleLaws
from tailrace.testing.conformance.segments import SegmentLaws
from tailrace.testing.conformance.usage import UsageLaws

E = TypeVar("E")


class RemoteBench(Generic[E]):
    """A client of a server of an embedded engine; `reopen` restarts the server on another port."""

    def __init__(self, store: str, embedded: SqliteBench[Any], client: Any) -> None:
        self._store = store
        self._embedded = embedded
        self._make_client = client
        self._client: Any = None
        self._server: StoreServer | None = None

    @property
    def clock(self) -> ManualClock:
        return self._embedded.clock

    @property
    def engine(self) -> E:
        engine: E = self._client
        return engine

    async def __aenter__(self) -> Self:
        await self._embedded.__aenter__()
        self._server = StoreServer("127.0.0.1:0", {self._store: self._embedded.engine})
        await self._server.start()
        self._client = self._make_client(self._server.address)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._client.close()
        if self._server is not None:
            await self._server.stop()
        await self._embedded.__aexit__()

    async def reopen(self) -> None:
        await self.__aexit__()
        await self.__aenter__()


class TestRemoteLog(LogLaws):
    def bench(self, folder: Path) -> AbstractAsyncContextManager[StoreBench[Log]]:
        return RemoteBench("log", SqliteBench(folder, log.SCHEMA, log.SqliteLog, log.SqliteLog.open), RemoteLog)


class TestRemoteCheckpoints(CheckpointLaws):
    def bench(self, folder: Path) -> AbstractAsyncContextManager[StoreBench[Checkpoints]]:
        embedded = SqliteBench(folder, checkpoints.SCHEMA, lambda file, clock: checkpoints.SqliteCheckpoints(file))
        return RemoteBench("checkpoints", embedded, RemoteCheckpoints)


class TestRemoteInventory(InventoryLaws):
    def bench(self, folder: Path) -> AbstractAsyncContextManager[StoreBench[Inventory]]:
        embedded = SqliteBench(folder, inventory.SCHEMA, lambda file, clock: inventory.SqliteInventory(file))
        return RemoteBench("inventory", embedded, RemoteInventory)


class TestRemoteControl(ControlLaws):
    def bench(self, folder: Path) -> AbstractAsyncContextManager[StoreBench[Control]]:
        return RemoteBench("control", SqliteBench(folder, control.SCHEMA, control.SqliteControl), RemoteControl)


class TestRemoteDeadLetters(DeadLetterLaws):
    def bench(self, folder: Path) -> AbstractAsyncContextManager[StoreBench[DeadLetters]]:
        embedded = SqliteBench(
            folder, dead_letters.SCHEMA, lambda file, clock: dead_letters.SqliteDeadLetters(file, BOUND)
        )
        return RemoteBench("dead_letters", embedded, RemoteDeadLetters)


class TestRemoteDrops(DropLaws):
    def bench(self, folder: Path) -> AbstractAsyncContextManager[StoreBench[Drops]]:
        embedded = SqliteBench(folder, drops.SCHEMA, lambda file, clock: drops.SqliteDrops(file))
        return RemoteBench("drops", embedded, RemoteDrops)


class TestRemoteResults(ResultLaws):
    def bench(self, folder: Path) -> AbstractAsyncContextManager[StoreBench[Results]]:
        embedded = SqliteBench(
            folder,
            results.SCHEMA,
            lambda file, clock: results.SqliteResults(file, clock, retention=RETENTION, max_bytes=MAX_BYTES),
        )
        return RemoteBench("results", embedded, RemoteResults)


class TestRemoteOwnership(OwnershipLaws):
    def bench(self, folder: Path) -> AbstractAsyncContextManager[StoreBench[Ownership]]:
        embedded = SqliteBench(folder, ownership.SCHEMA, ownership.SqliteOwnership)
        return RemoteBench("ownership", embedded, RemoteOwnership)


class TestRemoteLedger(LedgerLaws):
    def bench(self, folder: Path) -> AbstractAsyncContextManager[StoreBench[Ledger]]:
        embedded = SqliteBench(folder, ledger.SCHEMA, lambda file, clock: ledger.SqliteLedger(file))
        return RemoteBench("ledger", embedded, RemoteLedger)


class TestRemoteSegments(SegmentLaws):
    def bench(self, folder: Path) -> AbstractAsyncContextManager[StoreBench[Segments]]:
        embedded = SqliteBench(folder, segments.SCHEMA, lambda file, clock: segments.SqliteSegments(file))
        return RemoteBench("segments", embedded, RemoteSegments)


class TestRemoteReplays(ReplayLaws):
    def bench(self, folder: Path) -> AbstractAsyncContextManager[StoreBench[Replays]]:
        embedded = SqliteBench(folder, replays.SCHEMA, lambda file, clock: replays.SqliteReplays(file))
        return RemoteBench("replays", embedded, RemoteReplays)


class TestRemoteSchedules(ScheduleLaws):
    def bench(self, folder: Path) -> AbstractAsyncContextManager[StoreBench[Schedules]]:
        embedded = SqliteBench(folder, schedules.SCHEMA, lambda file, clock: schedules.SqliteSchedules(file))
        return RemoteBench("schedules", embedded, RemoteSchedules)


class TestRemoteUsage(UsageLaws):
    def bench(self, folder: Path) -> AbstractAsyncContextManager[StoreBench[Usage]]:
        embedded = SqliteBench(folder, usage.SCHEMA, lambda file, clock: usage.SqliteUsage(file))
        return RemoteBench("usage", embedded, RemoteUsage)
