"""Records of a log in SQLite that are past their retention."""

from __future__ import annotations

import sqlite3

#: Batches that one step of a trim deletes and one sweep looks at: a bound on the time that it holds the writer.
SWEEP = 1000


def past(connection: sqlite3.Connection, oldest: float) -> list[tuple[int, int, int]]:
    """Stream, partition and the position behind the last record that is older, of each partition that has some, by the
    numbers of streams: of the first batches only."""
    return connection.execute(
        "SELECT stream, partition, before FROM (SELECT p.stream AS stream, p.partition AS partition,"
        " (SELECT max(first + count) FROM (SELECT first, count, time FROM batches AS b"
        "   WHERE b.stream = p.stream AND b.partition = p.partition ORDER BY first LIMIT ?) WHERE time < ?) AS before"
        " FROM partitions AS p) WHERE before IS NOT NULL",
        (SWEEP, oldest),
    ).fetchall()
