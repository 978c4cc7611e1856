"""Stores that outlive their process: real SQLite transactions, run within the virtual time of the host that asked."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ...sdk.model.errors import NotConnected, Overloaded
from ...stores.sqlite import MAX_GROUP, MAX_PENDING, SqliteFile, _Write
from .host import Host, here


class Disk:
    """The databases of one machine, by name. A copy may be taken, and put back as a restore from a backup would;
    `put_back` names those of which nobody took note yet."""

    def __init__(self) -> None:
        self.put_back: set[str] = set()
        self._files: dict[str, sqlite3.Connection] = {}

    def connect(self, name: str) -> sqlite3.Connection:
        """The database, made where it is missing."""
        if name not in self._files:
            self._files[name] = self._empty()
        return self._files[name]

    @staticmethod
    def _empty() -> sqlite3.Connection:
        connection = sqlite3.connect(":memory:", isolation_level=None, cached_statements=512)
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute("PRAGMA temp_store=MEMORY")
        return connection

    def rows(self, name: str, query: str, values: tuple[object, ...] = ()) -> list[Any]:
        """What a query finds; nothing where its table does not exist yet."""
        try:
            return self.connect(name).execute(query, values).fetchall()
        except sqlite3.OperationalError:
            return []

    def copy(self, name: str) -> bytes:
        """What a backup would hold."""
        return self._files[name].serialize()

    def restore(self, name: str, copy: bytes) -> None:
        """Puts an older copy in the place of a database that nobody has open."""
        self._files[name].close()
        self._files[name] = self._empty()
        self._files[name].deserialize(copy)
        self.put_back.add(name)

    def close(self) -> None:
        """Forgets everything."""
        for connection in self._files.values():
            connection.close()
        self._files.clear()


class InlineFile(SqliteFile):
    """A SqliteFile whose writer is the loop of the simulated host: the same groups, savepoints, standing writes and
    reloads, in the host's time. The world may end the host just before a commit or just after it, before anybody
    heard of it."""

    def __init__(self, path: Path, schema: str, *, name: str, synchronous: str = "FULL") -> None:
        super().__init__(path, schema, name=name, synchronous=synchronous)
        self._host: Host = here()
        self._monotonic = self._host.clock.monotonic
        self._standing: list[_Write] = []
        self._connection: sqlite3.Connection | None = None
        self._turn_set = False
        self._look: asyncio.TimerHandle | None = None

    async def open(self) -> None:
        self._loop = asyncio.get_running_loop()
        await asyncio.sleep(self._host.latency())
        self._connection = self._host.disk.connect(self.name)
        self._connection.executescript(self._schema)
        self._closing = False

    async def _queue(
        self, fn: Any, deadline: float | None, committed: Callable[[Any], None] | None = None, *, heavy: bool = False
    ) -> Any:
        if self._loop is None or self._closing or self._connection is None:
            raise NotConnected(f"the {self.name} store is closed")
        if len(self._pending) >= MAX_PENDING:
            raise Overloaded(f"the {self.name} store has {MAX_PENDING} writes waiting; try again", 0.5)
        future: asyncio.Future[Any] = self._loop.create_future()
        self._pending.add(_Write(fn, future, deadline, committed), heavy=heavy)
        self._soon()
        return await future

    def _soon(self) -> None:
        if not self._turn_set and self._loop is not None:
            self._turn_set = True
            self._loop.call_later(self._host.latency(), self._turn)

    def _turn(self) -> None:
        """One transaction of everything that waits."""
        self._turn_set = False
        connection, host = self._connection, self._host
        if connection is None:
            return
        group = self._pending.take(MAX_GROUP)
        if group and host.point(f"{self.name}: before commit"):
            return
        if group or self._standing:
            self._commit(connection, group, self._standing)
            host.after_commit(self.name)
        if group and host.point(f"{self.name}: after commit"):
            return
        if self._pending:
            self._soon()
        self._arm()

    def _arm(self) -> None:
        """Looks at standing writes when they asked for it."""
        if self._look is not None:
            self._look.cancel()
            self._look = None
        if self._standing and self._loop is not None:
            at = min(min(each.look, each.deadline or each.look) for each in self._standing)
            self._look = self._loop.call_at(max(at, self._loop.time() + 1e-4), self._turn)

    def _answer(self, answers: Any) -> None:
        """Whoever waits hears of it a little later, as from another thread."""
        if answers and self._loop is not None:
            self._loop.call_later(self._host.latency(), super()._answer, answers)

    async def _read(self, fn: Callable[[sqlite3.Connection], Any]) -> Any:
        async with self._reader_lock:
            await asyncio.sleep(self._host.latency())
            if self._connection is None:
                raise NotConnected(f"the {self.name} store is closed")
            try:
                value = fn(self._connection)
            except sqlite3.Error as error:
                raise self._explain(error) from None
            await asyncio.sleep(self._host.latency())
            return value

    async def close(self) -> None:
        while self._connection is not None and self._pending:  # noqa: ASYNC110 - each sleep is one group
            await asyncio.sleep(self._host.latency())
        self._closing = True
        if self._look is not None:
            self._look.cancel()
        standing, self._standing = self._standing, []
        super()._answer([(each, None, NotConnected(f"the {self.name} store was closed")) for each in standing])
        self._connection = None
