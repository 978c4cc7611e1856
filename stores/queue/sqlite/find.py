"""Searches of the queue on SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from ....model.search import Search
from ..ids import id_text
from ..search_bounds import LOOK, IdSpan
from .rows import IDS, json_text

#: The columns of a status, with `t` for tasks, `e` for entities and `k` for keyed.
COLUMNS = "t.id, t.state, t.kind, t.attempts, t.crashes, t.next_trigger, t.ended, e.reason, e.progress, k.due, t.fence"
_JOINS = "LEFT JOIN entities AS e ON e.id = t.id LEFT JOIN keyed AS k ON k.id = t.id"


def find(
    connection: sqlite3.Connection, search: Search, span: IdSpan, kinds: Sequence[int] | None, keys: Sequence[str]
) -> tuple[list[Any], str]:
    """Returns rows of COLUMNS, and the id at which the next page goes on. `keys`: the searched key, as it is kept."""
    keyed = f" AND id IN (SELECT id FROM keyed WHERE key IN {IDS})" if search.key else ""
    looked = f"SELECT * FROM tasks WHERE id >= ? AND id < ?{keyed} ORDER BY id DESC LIMIT {LOOK}"
    bounds: list[Any] = [*span, *([json_text(keys)] if search.key else [])]
    fits, given = "", list[Any]()
    if kinds is not None:
        fits += f" AND t.kind IN {IDS}"
        given.append(json_text(kinds))
    if search.states:
        fits += f" AND t.state IN {IDS}"
        given.append(json_text([int(state) for state in search.states]))
    rows = connection.execute(
        f"SELECT {COLUMNS} FROM ({looked}) AS t {_JOINS} WHERE true{fits} ORDER BY t.id DESC LIMIT ?",
        (*bounds, *given, search.limit),
    ).fetchall()
    if len(rows) == search.limit:
        return rows, id_text(rows[-1][0])
    lowest, count = connection.execute(f"SELECT min(id), count(*) FROM ({looked})", bounds).fetchone()
    return rows, id_text(lowest) if count == LOOK else ""
