"""Ages of waiting work in the queue on SQLite: reads two ends of an index for each lane in which an item waits or was
tried. The lanes themselves come from the indexes: each is found by one step from the one before."""

from __future__ import annotations

import sqlite3

_LANES = (
    "{name}(lane) AS (SELECT min(lane) FROM tasks WHERE {those} UNION ALL"
    " SELECT (SELECT min(lane) FROM tasks WHERE {those} AND lane > {name}.lane) FROM {name}"
    " WHERE {name}.lane IS NOT NULL)"
)
_WAITS, _TRIED = "next_trigger IS NOT NULL", "attempts > 0 AND ended IS NULL"
_AGES = (
    f"WITH RECURSIVE {_LANES.format(name='waiting', those=_WAITS)}, {_LANES.format(name='tried', those=_TRIED)}"
    f" SELECT lane, (SELECT min(next_trigger) FROM tasks WHERE lane = l.lane AND {_WAITS}),"
    f" (SELECT max(attempts) FROM tasks WHERE lane = l.lane AND {_TRIED})"
    " FROM (SELECT lane FROM waiting UNION SELECT lane FROM tried) AS l WHERE lane IS NOT NULL"
)


def ages(connection: sqlite3.Connection, now: int) -> list[tuple[int, float, int]]:
    """Number of each lane, seconds for which its oldest due item has waited, and the highest attempt of a live item in
    it. `now` in µs."""
    rows = connection.execute(_AGES).fetchall()
    return [
        (lane, (now - oldest) / 1e6 if oldest is not None and oldest < now else 0.0, attempts or 0)
        for lane, oldest, attempts in rows
    ]
