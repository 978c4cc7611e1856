"""Many rows in few steps of SQLite: Python gives up the interpreter lock at every step, and a busy event loop gives it
back half a millisecond later, whatever little the step did."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from itertools import chain
from typing import Any

#: Rows of one statement: few sizes, so that the statements are prepared once. The largest is what a client submits at
#: once.
CHUNKS = (1000, 256, 64, 16, 4, 1)


def insert(
    connection: sqlite3.Connection,
    into: str,
    rows: Sequence[Sequence[Any]],
    *,
    replace: bool = False,
    behind: str = "",
    row: str = "",
    select: str = "",
) -> None:
    """Inserts (or replaces) rows, all with as many columns. `behind` is what follows the values, as `ON CONFLICT …`;
    `row` is how one is written where some columns are the same for all, as `(?, 0, ?)`; `select` is what is asked of
    the rows, which are called `v`, as `WHERE v.column1 …`."""
    if not rows:
        return
    verb = "INSERT OR REPLACE" if replace else "INSERT"
    one = row or f"({', '.join('?' * len(rows[0]))})"
    begin = 0
    for chunk in CHUNKS:
        while len(rows) - begin >= chunk:
            values = f"VALUES {', '.join([one] * chunk)}"
            source = f"SELECT v.* FROM ({values}) AS v {select}" if select else f"{values} {behind}"
            connection.execute(f"{verb} INTO {into} {source}", [*chain.from_iterable(rows[begin : begin + chunk])])
            begin += chunk
