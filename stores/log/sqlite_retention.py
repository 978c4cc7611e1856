"""The retention of a log in SQLite: THE rule of which of its oldest records go, by age and by bytes. Nothing goes that
a known tailer has not settled: what it holds back is bounded by bytes, beyond which nothing more is appended."""

from __future__ import annotations

import math
import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...foundation.clock import Clock
from ...model.errors import Overloaded
from ...model.reopening import Trouble
from ...model.units import size_text
from ..sqlite.file import SqliteFile
from ..sqlite.insert import CHUNKS, chunks, insert, places
from ..trusted_time import TrustedTime
from .log import Bounds
from .readers import KnownTailer

#: Batches that one step of a trim deletes and one sweep looks at: a bound on the time that it holds the writer.
SWEEP = 1000
#: The share of the bytes that a log may have, beyond which its oldest records go before they are old.
FILLED = 0.9
#: Bytes that are appended between two looks at the size of the file.
LOOK_EVERY = 1 << 20

#: The advice where known tailers hold a full log.
TODO = (
    "let these tailers run; forget one that is not to come back (tailrace tailer forget NAME); or raise log_bytes in "
    "stores.yaml"
)

#: A partition, by the name of its stream and its number.
StreamPart = tuple[str, int]


_MOVE_START = "ON CONFLICT (stream, partition) DO UPDATE SET start = max(start, excluded.start)"
#: Statements by their number of partitions: each deletes the batches that end by a position.
_FORGET = {
    chunk: f"WITH j (stream, partition, before) AS (VALUES {places(3, chunk)}) DELETE FROM batches WHERE rowid IN ("
    "SELECT b.rowid FROM j CROSS JOIN batches AS b ON b.stream = j.stream AND b.partition = j.partition"
    " AND b.first < j.before WHERE b.first + b.count <= j.before LIMIT ?)"
    for chunk in CHUNKS
}


def forget(
    connection: sqlite3.Connection, starts: Sequence[tuple[int, int, int]], gone: Sequence[tuple[int, int, int]]
) -> int:
    """Moves the starts of partitions, and deletes some of the batches that end by the positions of `gone`. Returns how
    many of one statement, at most SWEEP; fewer: all of them."""
    insert(connection, "partitions", starts, behind=_MOVE_START)
    return max(connection.execute(_FORGET[chunk], (*values, SWEEP)).rowcount for chunk, values in chunks(gone))


class OldBatch(NamedTuple):
    """One of the oldest batches of a partition: behind its last position, when it was appended, and its bytes."""

    stream: int
    partition: int
    end: int
    time: float
    size: int


def oldest(connection: sqlite3.Connection, before: float) -> list[OldBatch]:
    """The batches of before this time among the oldest ones of each partition, by the numbers of streams."""
    rows = connection.execute(
        "SELECT p.stream, p.partition, b.first + b.count, b.time, b.bytes FROM partitions AS p"
        " CROSS JOIN batches AS b ON b.stream = p.stream AND b.partition = p.partition AND b.first <= coalesce((SELECT"
        " c.first FROM batches AS c WHERE c.stream = p.stream AND c.partition = p.partition ORDER BY c.first LIMIT 1"
        " OFFSET ?), 1 << 62)"
        " WHERE b.time < ?",
        (SWEEP - 1, before),
    )
    return [OldBatch(*row) for row in rows]


def size(connection: sqlite3.Connection) -> int:
    """Bytes of the file that are in use."""
    (page,), (pages,), (free,) = [
        connection.execute(f"PRAGMA {name}").fetchone() for name in ("page_size", "page_count", "freelist_count")
    ]
    return int(page * (pages - free))


def needed_from(readers: Sequence[KnownTailer], place: StreamPart) -> int | None:
    """The first position of a partition that a known tailer has not settled; None: nobody reads there."""
    found = [each.settled.get(place[1], 0) for each in readers if each.stream == place[0]]
    return min(found, default=None)


def goes(
    batches: Sequence[tuple[StreamPart, OldBatch]], readers: Sequence[KnownTailer], before: float, excess: float
) -> dict[StreamPart, int]:
    """The positions below which records go, by partition: what is older than `before` goes, and the oldest beside it
    until `excess` bytes are freed; nothing that a known tailer has not settled."""
    needed = {place: needed_from(readers, place) for place, _ in batches}
    gone: dict[StreamPart, int] = {}
    for place, batch in sorted(batches, key=lambda each: each[1].time):
        limit = needed[place]
        if (excess > 0 or batch.time < before) and (limit is None or gone.get(place, 0) < limit):
            gone[place] = max(gone.get(place, 0), batch.end if limit is None else min(batch.end, limit))
            excess -= batch.size
    return gone


def who_holds(readers: Sequence[KnownTailer], bounds: Mapping[StreamPart, Bounds]) -> str:
    """The known tailers that have not settled records, and how many, those that hold most first, for people."""
    behind: Counter[str] = Counter()
    for each in readers:
        for (stream, partition), (start, end) in bounds.items():
            if stream == each.stream:
                behind[each.tailer] += end - max(start, each.settled.get(partition, 0))
    return ", ".join(f"{name} ({records:,} records)" for name, records in behind.most_common(3) if records > 0)


class LogRoom:
    """The room of one log: what goes by the retention (seconds, by the `trusted` time), and whether more fits in.

    is_full  it was nearly full at the last look
    """

    def __init__(self, file: SqliteFile, trusted: TrustedTime, clock: Clock, retention: float, most: float) -> None:
        self.is_full = False
        self._file, self._trusted, self._clock = file, trusted, clock
        self._retention, self._most = retention, most
        self._unlooked = 0  # bytes that may be appended before the size of the file is looked at again
        self._held_by = ""
        self._held_since = 0.0

    def make(self, connection: sqlite3.Connection, wanted: int) -> None:
        """Raises Overloaded where so many bytes more do not fit in."""
        self._unlooked -= wanted
        if self._unlooked >= 0:
            return
        left = self._most - size(connection)
        if left < wanted:
            raise Overloaded(f"{self._full}; {TODO if self._held_by else 'its oldest records go within seconds'}", 5.0)
        self._unlooked = int(min(LOOK_EVERY, left - wanted))

    @property
    def _full(self) -> str:
        held = f": it holds what {self._held_by} did not settle" if self._held_by else ""
        return f"the log is full ({size_text(int(self._most))} in {self._file.path}), and nothing is appended{held}"

    async def goes(
        self, bounds: Mapping[StreamPart, Bounds], names: Mapping[int, str], readers: Sequence[KnownTailer]
    ) -> dict[StreamPart, int]:
        """The positions below which records go now. `names`: of the streams, by their numbers."""
        before = self._trusted.seconds() - self._retention
        excess = await self._file.read(size) - FILLED * self._most
        self.is_full = excess > 0
        some = await self._file.read(lambda connection: oldest(connection, math.inf if self.is_full else before))
        gone = goes([((names[each.stream], each.partition), each) for each in some], readers, before, excess)
        gone = {place: position for place, position in gone.items() if position > bounds[place].start}
        was_held, self._held_by = self._held_by, who_holds(readers, bounds) if self.is_full and not gone else ""
        if self._held_by and not was_held:
            self._held_since = self._clock.wall()
        return gone

    def troubles(self) -> list[Trouble]:
        """The trouble for operators while known tailers keep a full log from being trimmed."""
        return [Trouble("log", self._held_since, self._full, todo=TODO)] if self._held_by else []
