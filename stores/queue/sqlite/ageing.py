"""Ages of what waits in the queue on SQLite: an end of an index for each kind in which something waits, and for each
lane in which something was tried. Which those are the indexes say: each is found by one step from the one before it."""

from __future__ import annotations

import sqlite3

_STEPS = (
    "{name}({column}) AS (SELECT min({column}) FROM tasks WHERE {those} UNION ALL"
    " SELECT (SELECT min({column}) FROM tasks WHERE {those} AND {column} > {name}.{column}) FROM {name}"
    " WHERE {name}.{column} IS NOT NULL)"
)
_WAITS, _TRIED = "next_trigger IS NOT NULL", "attempts > 0 AND ended IS NULL"
_AGES = (
    f"WITH RECURSIVE {_STEPS.format(name='waiting', column='kind', those=_WAITS)},"
    f" {_STEPS.format(name='tried', column='lane', those=_TRIED)}"
    " SELECT lane, min(oldest), max(attempts) FROM ("
    "SELECT (SELECT lane FROM kinds AS k WHERE k.kind = w.kind) AS lane,"
    f" (SELECT min(next_trigger) FROM tasks WHERE kind = w.kind AND {_WAITS}) AS oldest, NULL AS attempts"
    " FROM waiting AS w WHERE kind IS NOT NULL UNION ALL"
    f" SELECT lane, NULL, (SELECT max(attempts) FROM tasks WHERE lane = t.lane AND {_TRIED})"
    " FROM tried AS t WHERE lane IS NOT NULL) GROUP BY lane"
)


def ages(connection: sqlite3.Connection, now: int) -> list[tuple[int, float, int]]:
    """Of each lane its number, for how many seconds its oldest due item has waited, and the highest attempt of a live
    one. `now` in µs."""
    rows = connection.execute(_AGES).fetchall()
    return [
        (lane, (now - oldest) / 1e6 if oldest is not None and oldest < now else 0.0, attempts or 0)
        for lane, oldest, attempts in rows
    ]
