"""Twins of items that wait in a file of the queue, which nobody has open meanwhile."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

#: Twins of each item that one transaction writes.
STEP = 10

#: The rows as they were submitted. They are written again behind their twins, who are older: each table grows at its
#: end, as it does by submissions.
_BEGIN = """
PRAGMA synchronous = OFF; -- a file that is lost is filled again
PRAGMA temp_store = MEMORY;
CREATE TEMP TABLE first_tasks AS SELECT id, lane, kind, state, next_trigger, flags, size FROM tasks ORDER BY id;
CREATE TEMP TABLE first_entities AS SELECT id, payload FROM entities ORDER BY id;
BEGIN;
DELETE FROM tasks;
DELETE FROM entities;
"""
_STATEMENTS = (
    """
    INSERT INTO tasks (id, lane, kind, state, next_trigger, flags, size)
        WITH RECURSIVE s (n) AS (VALUES (:oldest) UNION ALL SELECT n - 1 FROM s WHERE n > :newest)
        SELECT t.id - (s.n << 22), t.lane, t.kind, t.state, t.next_trigger - s.n * 1000, t.flags, t.size
        FROM s CROSS JOIN first_tasks AS t
    """,
    """
    INSERT INTO entities (id, payload)
        WITH RECURSIVE s (n) AS (VALUES (:oldest) UNION ALL SELECT n - 1 FROM s WHERE n > :newest)
        SELECT e.id - (s.n << 22), e.payload FROM s CROSS JOIN first_entities AS e
    """,
)


def add_twins(file: Path, times: int, done: Callable[[float], None]) -> None:
    """Adds `times` twins of each item; the oldest first, as they would have come."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.executescript(_BEGIN)
        for oldest in range(times, -1, -STEP):  # the last ones of all are the items themselves
            step = {"oldest": oldest, "newest": max(0, oldest - STEP + 1)}
            for statement in _STATEMENTS:
                connection.execute(statement, step)
            connection.execute("COMMIT")
            done(1 - oldest / times)
            connection.execute("BEGIN")
        connection.execute("COMMIT")
