"""Keys of tenants in a queue's file that was made before tenants had keys of their own: rewritten once."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from ....model.tenant_key import MARK, tenant_key
from ..admission import SUBMISSION_PREFIX
from .rows import BLOCKED

_TENANT = "JOIN kinds AS k ON k.kind = t.kind WHERE (k.tenant <> '' OR substr(d.key, 1, 1) = ?)"
_DEDUPE = (
    f"SELECT k.tenant, d.key, d.id FROM dedupe AS d JOIN tasks AS t ON t.id = d.id {_TENANT}"
    f" AND d.key NOT LIKE '{SUBMISSION_PREFIX}%'"
)
_KEYED = f"SELECT k.tenant, d.key, d.id FROM keyed AS d JOIN tasks AS t ON t.id = d.id {_TENANT}"
_TREES = (
    f"SELECT k.tenant, d.key, d.tree FROM job_trees AS d JOIN jobs AS t ON t.tree = d.tree AND t.place = 0 {_TENANT}"
)


def own_keys(connection: sqlite3.Connection) -> None:
    """Makes each key that its tenant's own which was kept as it was given. Items that waited behind another tenant's
    are due. Harmless when repeated."""
    if connection.execute("SELECT 1 FROM own_keys").fetchone() is not None:
        return
    for table, column, select in (
        ("dedupe", "id", _DEDUPE),
        ("keyed", "id", _KEYED),
        ("job_trees", "tree", f"{_TREES} AND d.key <> ''"),
    ):
        rows = connection.execute(select, (MARK,)).fetchall()
        own = [(tenant_key(tenant, key), number) for tenant, key, number in rows]
        connection.executemany(f"UPDATE {table} SET key = ? WHERE {column} = ?", own)
        if table == "keyed":
            _free(connection, {key for _, key, _ in rows} | {key for key, _ in own})
    connection.execute("INSERT INTO own_keys VALUES (1)")


def _free(connection: sqlite3.Connection, keys: Iterable[str]) -> None:
    """Lets the first item of each key run when it is due."""
    for key in keys:
        connection.execute(
            "UPDATE tasks SET next_trigger = h.due FROM (SELECT id, due FROM keyed WHERE key = ? ORDER BY id LIMIT 1)"
            " AS h WHERE tasks.id = h.id AND tasks.next_trigger = ?",
            (key, BLOCKED),
        )
