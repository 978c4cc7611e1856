"""The embedded log: each row is a batch of records, as in Kafka, so that a record costs a fraction of a microsecond.

A batch's columns are one MessagePack blob. Equal headers in a batch are stored once and come back as one shared tuple.
The ends of all partitions are kept in memory, since one process writes the file: bounds and waits cost no SQL.
"""

from __future__ import annotations

import asyncio
import bisect
import sqlite3
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from ...sdk.clock import SYSTEM_CLOCK, Clock
from ...sdk.model.errors import InvalidRequest
from ...sdk.model.workload import Headers
from ..sqlite import SqliteFile
from .log import Bounds, Record, Records

#: Records and bytes in one row.
BATCH_RECORDS = 1024
BATCH_BYTES = 1 << 20
#: Batches of a partition that one sweep looks at.
SWEEP = 1000
#: Most partitions of a stream.
MAX_PARTITIONS = 1024

SCHEMA = """
CREATE TABLE IF NOT EXISTS streams (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    partitions INTEGER NOT NULL CHECK (partitions > 0)
) STRICT;
CREATE TABLE IF NOT EXISTS partitions (
    stream INTEGER NOT NULL REFERENCES streams (id),
    partition INTEGER NOT NULL,
    start INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (stream, partition)
) STRICT, WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS batches (
    stream INTEGER NOT NULL,
    partition INTEGER NOT NULL,
    first INTEGER NOT NULL,
    count INTEGER NOT NULL CHECK (count > 0),
    time REAL NOT NULL,
    bytes INTEGER NOT NULL,
    columns BLOB NOT NULL,
    PRIMARY KEY (stream, partition, first)
) STRICT;
"""


class _Columns(msgspec.Struct, array_like=True):
    """A batch as it is stored. `keys` is None when all are empty; `header_of` None when all records share the first
    header set."""

    payloads: list[bytes]
    keys: list[str] | None
    header_sets: list[Headers]
    header_of: list[int] | None


class _Batch(NamedTuple):
    first: int
    time: float
    columns: _Columns


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(_Columns).decode


class _Partition:
    """What is known of a partition without asking. Invariant: start ≤ end, and `end` moves only after a commit."""

    __slots__ = ("cached", "end", "start")

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end
        self.cached: list[_Batch] = []


class SqliteLog:
    """A Log in one SQLite file. The owner opens and closes the file; `open` must be called after that.

    `retention` (seconds) is how long records are kept; None: until they are trimmed.
    """

    def __init__(self, file: SqliteFile, clock: Clock = SYSTEM_CLOCK, *, retention: float | None = None) -> None:
        self._file = file
        self._retention = retention
        self._clock = clock
        self._ids: dict[str, int] = {}
        self._partitions: dict[str, dict[int, _Partition]] = {}
        self._appended = asyncio.Event()

    async def open(self) -> None:
        """Reads the bounds of everything there is."""

        def load(connection: sqlite3.Connection) -> list[tuple[int, str, int, int, int | None]]:
            return connection.execute(
                "SELECT s.id, s.name, p.partition, p.start,"
                " (SELECT b.first + b.count FROM batches b WHERE b.stream = s.id AND b.partition = p.partition"
                "  ORDER BY b.first DESC LIMIT 1)"
                " FROM streams s JOIN partitions p ON p.stream = s.id"
            ).fetchall()

        self._partitions = {}
        for number, name, partition, start, end in await self._file.read(load):
            self._ids[name] = number
            found = self._partitions.setdefault(name, {})
            found[partition] = _Partition(start, max(start, end or 0))

    async def create(self, stream: str, partitions: int) -> None:
        if not 1 <= partitions <= MAX_PARTITIONS:
            raise InvalidRequest(f"stream {stream!r}: {partitions} partitions; expected 1 to {MAX_PARTITIONS}")
        known = self._partitions.get(stream, {})
        if len(known) >= partitions:
            return

        def make(connection: sqlite3.Connection) -> int:
            connection.execute(
                "INSERT INTO streams (name, partitions) VALUES (?, ?)"
                " ON CONFLICT (name) DO UPDATE SET partitions = max(partitions, excluded.partitions)",
                (stream, partitions),
            )
            (number,) = connection.execute("SELECT id FROM streams WHERE name = ?", (stream,)).fetchone()
            for partition in range(partitions):
                connection.execute(
                    "INSERT INTO partitions (stream, partition) VALUES (?, ?) ON CONFLICT DO NOTHING",
                    (number, partition),
                )
            return int(number)

        self._ids[stream] = await self._file.write(make)
        found = self._partitions.setdefault(stream, {})
        for partition in range(partitions):
            found.setdefault(partition, _Partition(0, 0))

    async def append(self, stream: str, partition: int, records: Sequence[Record]) -> int:
        if partition not in self._partitions.get(stream, {}):
            await self.create(stream, partition + 1)
        state = self._partitions[stream][partition]
        if not records:
            return state.end
        number, now = self._ids[stream], self._clock.wall()
        rows = [(len(chunk), *_pack(chunk)) for chunk in _chunks(records)]

        def insert(connection: sqlite3.Connection) -> int:
            # Only the writer thread runs this, one append after the other: the end cannot move meanwhile.
            row = connection.execute(
                "SELECT first + count FROM batches WHERE stream = ? AND partition = ? ORDER BY first DESC LIMIT 1",
                (number, partition),
            ).fetchone()
            first = begin = max(row[0] if row else 0, state.start)
            for count, size, columns in rows:
                connection.execute(
                    "INSERT INTO batches (stream, partition, first, count, time, bytes, columns)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (number, partition, begin, count, now, size, columns),
                )
                begin += count
            return int(first)

        first = await self._file.write(insert)
        state.end = max(state.end, first + len(records))
        self._appended.set()
        self._appended = asyncio.Event()
        return first

    async def read(self, stream: str, partition: int, position: int, limit: int, max_bytes: int) -> Records:
        found = Records([], [], [], [], [])
        state = self._partitions.get(stream, {}).get(partition)
        if state is None or limit < 1:
            return found
        position = max(position, state.start)
        if position >= state.end:
            return found
        batches = state.cached
        if not batches or not batches[0].first <= position < batches[-1].first + len(batches[-1].columns.payloads):
            batches = state.cached = await self._fetch(stream, partition, position, limit, max_bytes)
        size = 0
        at = bisect.bisect_right([batch.first for batch in batches], position) - 1
        for batch in batches[max(at, 0) :]:
            size += _take(found, batch, position, limit - len(found.positions), max_bytes - size)
            if not found.positions:
                break
            position = found.positions[-1] + 1
            if len(found.positions) >= limit or size >= max_bytes:
                break
        return found

    async def _fetch(self, stream: str, partition: int, position: int, limit: int, max_bytes: int) -> list[_Batch]:
        number = self._ids[stream]

        def load(connection: sqlite3.Connection) -> list[_Batch]:
            batches, records, size = [], 0, 0
            cursor = connection.execute(
                "SELECT first, time, bytes, columns FROM batches WHERE stream = ? AND partition = ? AND first >="
                " coalesce((SELECT max(first) FROM batches WHERE stream = ? AND partition = ? AND first <= ?), 0)"
                " ORDER BY first",
                (number, partition, number, partition, position),
            )
            for first, time, nbytes, columns in cursor:
                batch = _Batch(first, time, _decode(columns))
                batches.append(batch)
                records += first + len(batch.columns.payloads) - max(first, position)
                size += nbytes
                if records >= limit or size >= max_bytes:
                    break
            cursor.close()
            return batches

        return await self._file.read(load)

    async def bounds(self, stream: str) -> dict[int, Bounds]:
        return {
            partition: Bounds(state.start, state.end) for partition, state in self._partitions.get(stream, {}).items()
        }

    async def wait(self, stream: str, ends: Mapping[int, int], timeout: float) -> None:
        try:
            async with asyncio.timeout(timeout):
                while not self._past(stream, ends):
                    await self._appended.wait()
        except TimeoutError:
            return

    def _past(self, stream: str, ends: Mapping[int, int]) -> bool:
        return any(state.end > ends.get(partition, 0) for partition, state in self._partitions.get(stream, {}).items())

    async def trim(self, stream: str, partition: int, before: int) -> None:
        state = self._partitions.get(stream, {}).get(partition)
        if state is None or before <= state.start:
            return
        before = min(before, state.end)
        number = self._ids[stream]

        def forget(connection: sqlite3.Connection) -> None:
            connection.execute(
                "UPDATE partitions SET start = max(start, ?) WHERE stream = ? AND partition = ?",
                (before, number, partition),
            )
            # The last batch stays, so that the end is known after a restart.
            connection.execute(
                "DELETE FROM batches WHERE stream = ?1 AND partition = ?2 AND first + count <= ?3 AND first <"
                " (SELECT max(first) FROM batches WHERE stream = ?1 AND partition = ?2)",
                (number, partition, before),
            )

        await self._file.write(forget)
        state.start = max(state.start, before)
        state.cached = []

    async def streams(self) -> list[str]:
        return sorted(self._partitions)

    async def sweep(self) -> None:
        """Trims what is past the retention, a bounded number of batches of each partition at each call. The owner
        calls it now and then."""
        if self._retention is None:
            return
        oldest = self._clock.wall() - self._retention

        def find(connection: sqlite3.Connection) -> list[tuple[int, int, int]]:
            return connection.execute(
                "SELECT p.stream, p.partition,"
                " (SELECT max(first + count) FROM (SELECT first, count, time FROM batches AS b"
                "   WHERE b.stream = p.stream AND b.partition = p.partition ORDER BY first LIMIT ?) WHERE time < ?)"
                " FROM partitions AS p",
                (SWEEP, oldest),
            ).fetchall()

        names = {number: name for name, number in self._ids.items()}
        for number, partition, before in await self._file.read(find):
            if before is not None:
                await self.trim(names[number], partition, before)


def _chunks(records: Sequence[Record]) -> list[Sequence[Record]]:
    """Cuts an append into rows of bounded size."""
    if len(records) <= BATCH_RECORDS and sum(len(record.payload) for record in records) <= BATCH_BYTES:
        return [records]
    chunks, begin, size = [], 0, 0
    for index, record in enumerate(records):
        if index > begin and (index - begin >= BATCH_RECORDS or size + len(record.payload) > BATCH_BYTES):
            chunks.append(records[begin:index])
            begin, size = index, 0
        size += len(record.payload)
    chunks.append(records[begin:])
    return chunks


def _pack(records: Sequence[Record]) -> tuple[int, bytes]:
    """A row's size in bytes and its columns."""
    payloads = [record.payload for record in records]
    keys = [record.key for record in records]
    sets: dict[Headers, int] = {}
    header_of = [sets.setdefault(record.headers, len(sets)) for record in records]
    columns = _encode(_Columns(payloads, keys if any(keys) else None, list(sets), header_of if len(sets) > 1 else None))
    return len(columns), columns


def _take(found: Records, batch: _Batch, position: int, limit: int, max_bytes: int) -> int:
    """Adds a batch's records from `position` on to `found`; returns their bytes. Takes at least one in all."""
    columns = batch.columns
    begin = max(0, position - batch.first)
    end = min(len(columns.payloads), begin + limit)
    payloads = columns.payloads[begin:end]
    size = sum(map(len, payloads))
    if size > max_bytes:
        size = kept = 0
        for payload in payloads:
            if (kept or found.positions) and size + len(payload) > max_bytes:
                break
            size += len(payload)
            kept += 1
        payloads, end = payloads[:kept], begin + kept
    count = end - begin
    found.positions.extend(range(batch.first + begin, batch.first + end))
    found.times.extend([batch.time] * count)
    found.keys.extend(columns.keys[begin:end] if columns.keys else [""] * count)
    if columns.header_of is None:
        found.headers.extend([columns.header_sets[0]] * count)
    else:
        sets = columns.header_sets
        found.headers.extend([sets[number] for number in columns.header_of[begin:end]])
    found.payloads.extend(payloads)
    return size
