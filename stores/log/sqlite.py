"""The embedded log: each row is a batch of records, as in Kafka, so that a record costs a fraction of a microsecond.

The ends of all partitions are kept in memory, since one process writes the file: bounds and waits cost no SQL.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections import OrderedDict
from collections.abc import Mapping, Sequence

from ...sdk.clock import SYSTEM_CLOCK, Clock
from ...sdk.model.errors import InvalidRequest
from ..sqlite import SqliteFile
from .batch import Batch, decode, rows, take
from .log import Bounds, Record, Records
from .recent import Recent

#: Batches that one step of a trim deletes and one sweep looks at: a bound on how long it holds the writer.
SWEEP = 1000
#: Partitions whose last decoded batches are kept.
CACHED = 64
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


class _Partition:
    """What is known of a partition without asking. Invariant: start ≤ end, and `end` moves only after a commit."""

    __slots__ = ("end", "start")

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end


class SqliteLog:
    """A Log in one SQLite file. The owner opens and closes the file; `open` must be called after that.

    `retention` (seconds) is how long records are kept; None: until they are trimmed.
    """

    batches = True

    def __init__(self, file: SqliteFile, clock: Clock = SYSTEM_CLOCK, *, retention: float | None = None) -> None:
        self._file = file
        self._retention = retention
        self._clock = clock
        self._ids: dict[str, int] = {}
        self._partitions: dict[str, dict[int, _Partition]] = {}
        self._cached: OrderedDict[_Partition, Batch] = OrderedDict()
        self._recent = Recent()
        self._appended: dict[str, asyncio.Event] = {}  # of streams that somebody waits for

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

    async def close(self) -> None:
        """Nothing to do: the file is the owner's."""

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
        batches = rows(stream, records)
        number, now = self._ids[stream], self._clock.wall()

        def insert(connection: sqlite3.Connection) -> int:
            # Only the writer thread runs this, one append after the other: the end cannot move meanwhile.
            row = connection.execute(
                "SELECT first + count FROM batches WHERE stream = ? AND partition = ? ORDER BY first DESC LIMIT 1",
                (number, partition),
            ).fetchone()
            first = begin = max(row[0] if row else 0, state.start)
            for count, size, columns in batches:
                connection.execute(
                    "INSERT INTO batches (stream, partition, first, count, time, bytes, columns)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (number, partition, begin, count, now, size, columns),
                )
                begin += count
            return int(first)

        def committed(first: int) -> None:
            state.end = max(state.end, first + len(records))
            for count, _, columns in batches:
                self._recent.add(state, first, now, columns)
                first += count
            if (appended := self._appended.pop(stream, None)) is not None:
                appended.set()

        return await self._file.write(insert, committed)

    async def read(self, stream: str, partition: int, position: int, limit: int, max_bytes: int) -> Records:
        found = Records([], [], [], [], [])
        state = self._partitions.get(stream, {}).get(partition)
        if state is None or limit < 1:
            return found
        position = max(position, state.start)
        size, more = 0, True
        while more and position < state.end and len(found.positions) < limit:
            cached = self._cached.get(state)
            if cached is not None and cached.first <= position < cached.end:
                batches = [cached]
            elif (recent := self._recent.find(state, position)) is not None:
                batches = [recent]
            else:
                batches = await self._fetch(stream, partition, position, limit - len(found.positions), max_bytes - size)
            more = False
            for batch in batches:
                count, taken = take(found, batch, position, limit - len(found.positions), max_bytes - size)
                if not count:
                    more = False
                    break
                position, size, more = found.positions[-1] + 1, size + taken, True
                self._keep(state, batch)
        return found

    def _keep(self, state: _Partition, batch: Batch) -> None:
        """Remembers the batch read last, so that small reads in order do not decode it again."""
        self._cached[state] = batch
        self._cached.move_to_end(state)
        if len(self._cached) > CACHED:
            self._cached.popitem(last=False)

    async def _fetch(self, stream: str, partition: int, position: int, limit: int, max_bytes: int) -> list[Batch]:
        number = self._ids[stream]

        def load(connection: sqlite3.Connection) -> list[Batch]:
            batches, records, size = [], 0, 0
            cursor = connection.execute(
                "SELECT first, time, bytes, columns FROM batches WHERE stream = ? AND partition = ? AND first >="
                " coalesce((SELECT max(first) FROM batches WHERE stream = ? AND partition = ? AND first <= ?), 0)"
                " ORDER BY first",
                (number, partition, number, partition, position),
            )
            for first, time, nbytes, columns in cursor:
                batch = Batch(first, time, decode(columns))
                batches.append(batch)
                records += batch.end - max(first, position)
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
                    await self._appended.setdefault(stream, asyncio.Event()).wait()
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

        def forget(connection: sqlite3.Connection) -> int:
            connection.execute(
                "UPDATE partitions SET start = max(start, ?) WHERE stream = ? AND partition = ?",
                (before, number, partition),
            )
            # The last batch stays, so that the end is known after a restart.
            return connection.execute(
                "DELETE FROM batches WHERE rowid IN (SELECT rowid FROM batches"
                " WHERE stream = ?1 AND partition = ?2 AND first + count <= ?3 AND first <"
                " (SELECT max(first) FROM batches WHERE stream = ?1 AND partition = ?2) ORDER BY first LIMIT ?4)",
                (number, partition, before, SWEEP),
            ).rowcount

        def committed(_: int) -> None:
            state.start = max(state.start, before)

        while await self._file.write(forget, committed) == SWEEP:
            pass

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
