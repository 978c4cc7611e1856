"""Ownership in SQLite: one row per source and partition, each write one statement.

Versions are max(old + 1, microseconds since 1970) and epochs max(old + 1, seconds since 2020, to a bound: epochs.py),
both by the store's clock: a copy of the file that is older than the last take cannot give an epoch a second time, as
long as a row is taken less than once a second on average. The file's height (high-water mark), noted when the file was
found set back, stands for a clock that is behind it.
"""

from __future__ import annotations

import builtins
import json
import math
import sqlite3
from collections.abc import Sequence
from typing import Any

from ...foundation.clock import SYSTEM_CLOCK, Clock
from ...model.errors import InvalidRequest, StaleFence, Unavailable
from ..sqlite.file import SqliteFile
from ..sqlite.identity import SCHEMA as IDENTITY
from ..sqlite.identity import identity
from .epochs import next_epoch
from .ownership import OwnedRow, Owner

_TABLES = """
CREATE TABLE IF NOT EXISTS ownership (
    source TEXT NOT NULL,
    partition TEXT NOT NULL,
    version INTEGER NOT NULL,
    epoch INTEGER NOT NULL,
    holder TEXT NOT NULL,
    lease REAL NOT NULL,
    schedulers TEXT NOT NULL,
    PRIMARY KEY (source, partition)
) STRICT, WITHOUT ROWID;
"""
SCHEMA = _TABLES + IDENTITY

_COLUMNS = "version, epoch, holder, lease, schedulers"


class SqliteOwnership:
    """Ownership in one SQLite file."""

    def __init__(self, file: SqliteFile, clock: Clock = SYSTEM_CLOCK) -> None:
        self._file = file
        self._clock = clock
        self.quiet_until = -math.inf  # by the monotonic clock; until then no stream is taken

    async def read(self, source: str, partition: str) -> Owner | None:
        return await self._file.read(lambda connection: _read(connection, source, partition))

    async def take(
        self, source: str, partition: str, holder: str, lease: float, seen: int, schedulers: Sequence[str] = ()
    ) -> Owner | None:
        if not holder:
            raise InvalidRequest(f"source {source!r}: an owner needs a name")
        if not (math.isfinite(lease) and lease > 0):
            raise InvalidRequest(f"source {source!r}: a lease of {lease} seconds: expected a positive number")
        quiet = self.quiet_until - self._clock.monotonic()
        if quiet > 0:
            raise Unavailable(f"the store was put back from a copy: no stream is taken for {quiet:.0f} s more")

        def write(connection: sqlite3.Connection) -> Owner | None:
            row = _read(connection, source, partition)
            if (row.version if row else 0) != seen:
                return None
            before = identity(connection).highest
            epoch = next_epoch(row.epoch if row else 0, max(self._clock.wall(), before / 1e6 + 1))
            owner = Owner(max(self._version(row), before + 1), epoch, holder, lease, tuple(schedulers))
            connection.execute(
                "INSERT OR REPLACE INTO ownership VALUES (?, ?, ?, ?, ?, ?, ?)",
                (source, partition, owner.version, epoch, holder, lease, json.dumps([*schedulers])),
            )
            return owner

        return await self._file.write(write)

    async def renew(
        self, source: str, partition: str, epoch: int, schedulers: Sequence[str], seen: int = 0
    ) -> Owner | None:
        def write(connection: sqlite3.Connection) -> Owner | None:
            row = _held(connection, source, partition, epoch)
            if not row.holder:
                raise StaleFence(f"source {source!r}: epoch {epoch} was released; nothing was written")
            if seen and row.version != seen:
                return None
            owner = row._replace(version=self._version(row), schedulers=tuple(schedulers))
            connection.execute(
                "UPDATE ownership SET version = ?, schedulers = ? WHERE source = ? AND partition = ?",
                (owner.version, json.dumps([*schedulers]), source, partition),
            )
            return owner

        return await self._file.write(write)

    async def release(self, source: str, partition: str, epoch: int) -> None:
        def write(connection: sqlite3.Connection) -> None:
            row = _held(connection, source, partition, epoch)
            if row.holder:
                connection.execute(
                    "UPDATE ownership SET version = ?, holder = '', schedulers = '[]'"
                    " WHERE source = ? AND partition = ?",
                    (self._version(row), source, partition),
                )

        await self._file.write(write)

    async def list(self, limit: int, after: tuple[str, str] = ("", "")) -> builtins.list[OwnedRow]:
        def load(connection: sqlite3.Connection) -> builtins.list[Any]:
            return connection.execute(
                f"SELECT source, partition, {_COLUMNS} FROM ownership WHERE (source, partition) > (?, ?)"
                " ORDER BY source, partition LIMIT ?",
                (*after, limit),
            ).fetchall()

        return [OwnedRow(row[0], row[1], _owner(row[2:])) for row in await self._file.read(load)]

    def _version(self, row: Owner | None) -> int:
        return max(row.version + 1 if row else 1, int(self._clock.wall() * 1e6))


def _read(connection: sqlite3.Connection, source: str, partition: str) -> Owner | None:
    row = connection.execute(
        f"SELECT {_COLUMNS} FROM ownership WHERE source = ? AND partition = ?", (source, partition)
    ).fetchone()
    return None if row is None else _owner(row)


def _held(connection: sqlite3.Connection, source: str, partition: str, epoch: int) -> Owner:
    row = _read(connection, source, partition)
    if row is None or row.epoch != epoch:
        newest = row.epoch if row else "none"
        raise StaleFence(f"source {source!r}: epoch {epoch} is over (the newest is {newest}); nothing was written")
    return row


def _owner(row: Sequence[Any]) -> Owner:
    version, epoch, holder, lease, schedulers = row
    return Owner(version, epoch, holder, lease, tuple(json.loads(schedulers)))
