"""How old what waits in the queue on SQLite is: two ends of an index for each lane."""

from __future__ import annotations

import sqlite3


def ages(connection: sqlite3.Connection, now: int) -> list[tuple[int, float, int]]:
    """Of each lane its number, for how many seconds its oldest due item has waited, and the highest attempt of a live
    one. `now` in µs."""
    rows = connection.execute(
        "SELECT lane, (SELECT min(next_trigger) FROM tasks WHERE lane = l.lane AND next_trigger IS NOT NULL),"
        " (SELECT max(attempts) FROM tasks WHERE lane = l.lane AND attempts > 0 AND ended IS NULL) FROM lanes AS l"
    ).fetchall()
    return [
        (lane, (now - oldest) / 1e6 if oldest is not None and oldest < now else 0.0, attempts or 0)
        for lane, oldest, attempts in rows
    ]
