"""The embedded log: each row is a batch of records, as in Kafka, so that a record costs a fraction of a microsecond.

The ends of all partitions are kept in memory, since one process writes the file: bounds and waits cost no SQL.
"""

from __future__ import annotations

import asyncio
import json
import math
import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from ...foundation.clock import SYSTEM_CLOCK, Clock
from ...model.errors import InvalidRequest
from ...model.reopening import Trouble
from ..sqlite.file import SqliteFile
from ..sqlite.identity import SCHEMA as IDENTITY
from ..sqlite.identity import identity
from ..sqlite.insert import insert
from ..trusted_time import TrustedTime
from .batch import Batch, BatchRow, decode, rows, take
from .log import Bounds, Record, Records
from .readers import KnownTailer
from .recent_batches import RecentBatches
from .sqlite_retention import SWEEP, LogRoom, forget

#: Partitions whose last decoded batches are kept.
CACHED = 64
#: Most partitions of a stream.
MAX_PARTITIONS = 1024

_TABLES = """
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
SCHEMA = _TABLES + IDENTITY


class _Partition:
    """A partition's bounds in memory. Invariant: start ≤ end, and `end` moves only after a commit."""

    __slots__ = ("end", "start")

    def __init__(self, start: int, end: int) -> None:
        self.start = start
        self.end = end


class _Append(NamedTuple):
    """Records to be appended to a partition, as rows."""

    stream: str
    number: int
    partition: int
    state: _Partition
    batches: list[BatchRow]
    time: float

    def rows(self, first: int) -> list[tuple[int, int, int, int, float, int, bytes]]:
        """The rows, from position `first` on."""
        found = []
        for count, size, blob, _ in self.batches:
            found.append((self.number, self.partition, first, count, self.time, size, blob))
            first += count
        return found


def _ends(connection: sqlite3.Connection, places: Sequence[tuple[int, int]]) -> list[int]:
    """The end of each of these partitions, by the numbers of stream and partition; 0 for an empty one."""
    (text,) = connection.execute(
        "SELECT json_group_array(coalesce((SELECT first + count FROM batches WHERE stream = j.value ->> 0"
        " AND partition = j.value ->> 1 ORDER BY first DESC LIMIT 1), 0)) FROM json_each(?) AS j",
        (json.dumps(places),),
    ).fetchone()
    return list(json.loads(text))


class SqliteLog:
    """A Log in one SQLite file. The owner opens and closes the file; `open` must be called after that.

    `retention` (seconds) is the time for which records are kept, by the `trusted` time; None: until they are trimmed.
    Beyond `max_bytes` of its file nothing is appended.
    """

    batches = True

    def __init__(
        self,
        file: SqliteFile,
        clock: Clock = SYSTEM_CLOCK,
        *,
        retention: float | None = None,
        max_bytes: float = math.inf,
        trusted: TrustedTime | None = None,
    ) -> None:
        self._file = file
        self._clock = clock
        trusted = trusted or TrustedTime(clock)
        self._room = None if retention is None else LogRoom(file, trusted, clock, retention, max_bytes)
        self._ids: dict[str, int] = {}
        self._partitions: dict[str, dict[int, _Partition]] = {}
        # The ends of partitions in the file, by numbers: used by the writer thread only, which alone appends.
        self._ends: dict[tuple[int, int], int] = {}
        file.on_rollback(lambda connection: self._ends.clear())
        self._cached: OrderedDict[_Partition, Batch] = OrderedDict()
        self._recent = RecentBatches()
        self._appended: dict[str, asyncio.Event] = {}  # of streams that somebody waits for
        self._told: dict[str, list[Callable[[], None]]] = {}  # of streams of which somebody is told

    async def open(self) -> None:
        """Reads the bounds of all partitions."""

        def load(connection: sqlite3.Connection) -> list[tuple[int, str, int, int, int | None]]:
            return connection.execute(
                "SELECT s.id, s.name, p.partition, p.start,"
                " (SELECT b.first + b.count FROM batches b WHERE b.stream = s.id AND b.partition = p.partition"
                "  ORDER BY b.first DESC LIMIT 1)"
                " FROM streams s JOIN partitions p ON p.stream = s.id"
            ).fetchall()

        self._ends.clear()
        for number, name, partition, start, end in await self._file.read(load):
            self._ids[name] = number
            state = self._partitions.setdefault(name, {}).setdefault(partition, _Partition(start, start))
            state.start, state.end = max(state.start, start), max(state.end, start, end or 0)
        for name in {*self._appended, *self._told}:  # opened again: they may have waited for what is there by now
            self._tell(name)

    async def close(self) -> None:
        """Does nothing: the file is the owner's."""

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
        if not records:
            return self._partitions[stream][partition].end
        (first,) = await self._append([self._appending(stream, partition, records)])
        return first

    async def append_together(self, grouped: Mapping[str, Sequence[Record]]) -> None:
        await asyncio.gather(*[self.create(each, 1) for each in grouped if 0 not in self._partitions.get(each, {})])
        await self._append([self._appending(stream, 0, records) for stream, records in grouped.items() if records])

    async def _append(self, all_of_it: Sequence[_Append]) -> list[int]:
        """Appends in one write; returns the first position of each."""

        def write(connection: sqlite3.Connection) -> list[int]:
            if self._room is not None:
                self._room.make(connection, sum([row.size for each in all_of_it for row in each.batches]))
            ends = self._ends
            unknown = [place for each in all_of_it if (place := (each.number, each.partition)) not in ends]
            if unknown:
                ends.update(zip(unknown, _ends(connection, unknown), strict=True))
            firsts, lines = [], []
            for each in all_of_it:
                place = each.number, each.partition
                first = max(ends[place], each.state.start)
                firsts.append(first)
                lines += each.rows(first)
                ends[place] = first + sum([row.records for row in each.batches])
            insert(connection, "batches", lines)
            return firsts

        def committed(firsts: list[int]) -> None:
            for each, first in zip(all_of_it, firsts, strict=True):
                self._committed(each, first)

        return await self._file.write(write, committed) if all_of_it else []

    def _appending(self, stream: str, partition: int, records: Sequence[Record]) -> _Append:
        batches, state = rows(stream, records), self._partitions[stream][partition]
        return _Append(stream, self._ids[stream], partition, state, batches, self._clock.wall())

    def _committed(self, appended: _Append, first: int) -> None:
        state = appended.state
        for row in appended.batches:
            self._recent.add(state, Batch(first, appended.time, row.columns), row.size)
            first += row.records
        state.end = max(state.end, first)
        self._tell(appended.stream)

    def _tell(self, stream: str) -> None:
        """Wakes all that wait for more of a stream."""
        if (event := self._appended.pop(stream, None)) is not None:
            event.set()
        for call in self._told.pop(stream, ()):
            call()

    async def read(self, stream: str, partition: int, position: int, limit: int, max_bytes: int) -> Records:
        found = Records([], [], [], [], [])
        state = self._partitions.get(stream, {}).get(partition)
        if state is None or limit < 1:
            return found
        position = max(position, state.start)
        size, more = 0, True
        while more and position < state.end and len(found.positions) < limit:
            if (known := self._known(state, position)) is not None:
                batches = [known]
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
        found.now = self._clock.wall()
        return found

    def at_hand(self, stream: str, partition: int, position: int, limit: int, max_bytes: int) -> Records | None:
        found = Records([], [], [], [], [], self._clock.wall())
        state = self._partitions.get(stream, {}).get(partition)
        if state is None:
            return found
        position = max(position, state.start)
        size = 0
        while position < state.end and len(found.positions) < limit:
            batch = self._known(state, position)
            if batch is None:
                return found if found.positions else None
            count, taken = take(found, batch, position, limit - len(found.positions), max_bytes - size)
            if not count:
                break
            position, size = position + count, size + taken
            if position < batch.end:
                self._keep(state, batch)
        return found

    def _known(self, state: _Partition, position: int) -> Batch | None:
        """The batch with this position, if it is in memory."""
        cached = self._cached.get(state)
        if cached is not None and cached.first <= position < cached.end:
            return cached
        return self._recent.find(state, position)

    def _keep(self, state: _Partition, batch: Batch) -> None:
        """Keeps the batch read last in memory, so that small reads in order do not decode it again."""
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

    def counts(self) -> dict[str, int]:
        return {
            stream: sum([state.end - state.start for state in states.values()])
            for stream, states in self._partitions.items()
        }

    async def wait(self, stream: str, ends: Mapping[int, int], timeout: float) -> None:
        try:
            async with asyncio.timeout(timeout):
                while not self._past(stream, ends):
                    await self._appended.setdefault(stream, asyncio.Event()).wait()
        except TimeoutError:
            return

    def tell(self, stream: str, ends: Mapping[int, int], call: Callable[[], None]) -> Callable[[], None]:
        if self._past(stream, ends):
            return asyncio.get_running_loop().call_soon(call).cancel
        told = self._told.setdefault(stream, [])
        told.append(call)

        def take_back() -> None:
            if call in told:
                told.remove(call)

        return take_back

    def _past(self, stream: str, ends: Mapping[int, int]) -> bool:
        return any(state.end > ends.get(partition, 0) for partition, state in self._partitions.get(stream, {}).items())

    async def trim(self, stream: str, partition: int, before: int) -> None:
        await self._trim({(stream, partition): before})

    async def trim_together(self, before: Mapping[str, int]) -> None:
        await self._trim({(stream, 0): position for stream, position in before.items()})

    async def _trim(self, wanted: Mapping[tuple[str, int], int]) -> None:
        """Forgets records below the wanted positions, in as few writes as there are batches to forget, whatever the
        number of streams."""
        starts: list[tuple[int, int, int]] = []
        gone: list[tuple[int, int, int]] = []
        states: list[tuple[_Partition, int]] = []
        for (stream, partition), before in wanted.items():
            state = self._partitions.get(stream, {}).get(partition)
            if state is not None and before > state.start:
                number, before = self._ids[stream], min(before, state.end)
                starts.append((number, partition, before))
                # The last batch stays, so that the end is known after a restart.
                gone.append((number, partition, min(before, state.end - 1)))
                states.append((state, before))
        if not starts:
            return

        def committed(_: int) -> None:
            for state, before in states:
                state.start = max(state.start, before)

        while await self._file.write(lambda connection: forget(connection, starts, gone), committed) == SWEEP:
            pass

    async def streams(self) -> list[str]:
        return sorted(self._partitions)

    async def life(self, stream: str) -> str:
        return (await self._file.read(identity)).store  # streams are never deleted, only files are

    async def sweep(self, readers: Sequence[KnownTailer] = ()) -> int:
        """Trims records that are past the retention, and where the log is nearly full the oldest ones: some of each
        partition at each call, and nothing that one of `readers`, the known tailers, has not settled. Returns how many
        partitions of a full log it trimmed. The owner calls it now and then, and again at once while that is some."""
        if self._room is None:
            return 0
        bounds = {
            (name, each): Bounds(state.start, state.end)
            for name, states in self._partitions.items()
            for each, state in states.items()
        }
        names = {number: name for name, number in self._ids.items()}
        gone = await self._room.goes(bounds, names, readers)
        await self._trim(gone)
        return len(gone) if self._room.is_full else 0

    def troubles(self) -> list[Trouble]:
        """The trouble for operators while known tailers keep a full log from being trimmed."""
        return [] if self._room is None else self._room.troubles()
