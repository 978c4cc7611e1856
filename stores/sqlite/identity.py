"""The random name of an embedded database, its height (high-water mark, heights.py) where its other tables do not
show it any more, and the mark by which a state on a server knows it (bindings.py)."""

from __future__ import annotations

import sqlite3

from ...model.height import Height

SCHEMA = """
CREATE TABLE IF NOT EXISTS identity (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    name TEXT NOT NULL,
    highest INTEGER NOT NULL
) STRICT;
INSERT INTO identity SELECT 1, lower(hex(randomblob(16))), 0 WHERE NOT EXISTS (SELECT 1 FROM identity);
CREATE TABLE IF NOT EXISTS bound (one INTEGER PRIMARY KEY CHECK (one = 1), mark TEXT NOT NULL) STRICT;
"""


def identity(connection: sqlite3.Connection) -> Height:
    """The name, and the height that was noted last."""
    return Height(*connection.execute("SELECT name, highest FROM identity").fetchone())


def state_height(connection: sqlite3.Connection) -> Height:
    """The highest version of the rows of ownership, which are never removed."""
    name, noted = identity(connection)
    (newest,) = connection.execute("SELECT coalesce(max(version), 0) FROM ownership").fetchone()
    return Height(name, max(noted, newest))


def log_height(connection: sqlite3.Connection) -> Height:
    """The number of records ever appended to a log, in all partitions, trimmed ones included; no partition is ever
    removed."""
    (appended,) = connection.execute(
        "SELECT coalesce(sum(max(p.start, coalesce((SELECT b.first + b.count FROM batches AS b WHERE"
        " b.stream = p.stream AND b.partition = p.partition ORDER BY b.first DESC LIMIT 1), 0))), 0)"
        " FROM partitions AS p"
    ).fetchone()
    return Height(identity(connection).store, appended)


def note_height(connection: sqlite3.Connection, highest: int) -> None:
    """Notes the height of a store, so that it stays known when rows of other tables are removed."""
    connection.execute("UPDATE identity SET highest = ? WHERE highest < ?", (highest, highest))


def bound_mark(connection: sqlite3.Connection) -> str:
    """The mark by which a state on a server knows this file; empty: none does."""
    row = connection.execute("SELECT mark FROM bound").fetchone()
    return str(row[0]) if row else ""


def note_bound_mark(connection: sqlite3.Connection, mark: str) -> None:
    """Gives the file this mark."""
    connection.execute("INSERT OR REPLACE INTO bound VALUES (1, ?)", (mark,))
