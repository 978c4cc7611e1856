"""Many rows in few steps of SQLite: Python gives up the interpreter lock at every step, and a busy event loop gives it
back half a millisecond later, whatever little the step did."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

#: Rows of one statement: few sizes, so that the statements are prepared once.
CHUNKS = (256, 64, 16, 4, 1)


def insert(
    connection: sqlite3.Connection, into: str, rows: Sequence[Sequence[Any]], *, replace: bool = False, behind: str = ""
) -> None:
    """Inserts (or replaces) rows, all with as many columns. `behind` is what follows the values, as `ON CONFLICT …`."""
    if not rows:
        return
    verb = "INSERT OR REPLACE" if replace else "INSERT"
    one = f"({', '.join('?' * len(rows[0]))})"
    begin = 0
    for chunk in CHUNKS:
        while len(rows) - begin >= chunk:
            flat = [value for row in rows[begin : begin + chunk] for value in row]
            connection.execute(f"{verb} INTO {into} VALUES {', '.join([one] * chunk)} {behind}", flat)
            begin += chunk
