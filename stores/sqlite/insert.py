"""Inserts of many rows in few steps of SQLite. Python gives up the interpreter lock at every step, and a busy event
loop gives it back half a millisecond later, however short the step is."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import Any

#: Numbers of rows in one statement: only a few, so that statements are prepared once. The largest is the most that a
#: client submits at once.
CHUNKS = (1000, 256, 128, 64, 32, 16, 8, 4, 2, 1)
#: Statements whose text is remembered: SQLite's cache finds an identical text object without reading it.
STATEMENTS = 256


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
    """Inserts (or replaces) rows, all with the same number of columns.

    behind  text after the values, such as `ON CONFLICT …`
    row     the text of one row, if some columns are the same for all, such as `(?, 0, ?)`
    select  a condition on the rows, which are called `v`, such as `WHERE v.column1 …`
    """
    verb = "INSERT OR REPLACE" if replace else "INSERT"
    for chunk, values in chunks(rows):
        one = row or _row(len(rows[0]))
        connection.execute(_statement(f"{verb} INTO {into}", one, chunk, select, behind), values)


def chunks(rows: Sequence[Sequence[Any]]) -> Iterator[tuple[int, list[Any]]]:
    """Splits rows into chunks; yields the number of rows of each, and their values as one list."""
    begin, left = 0, len(rows)
    for chunk in CHUNKS:
        while left >= chunk:
            yield chunk, [*chain.from_iterable(rows[begin : begin + chunk])]
            begin, left = begin + chunk, left - chunk


def places(columns: int, rows: int) -> str:
    """Placeholders for the values of so many rows."""
    return ", ".join([_row(columns)] * rows)


def _row(columns: int) -> str:
    return f"({', '.join('?' * columns)})"


@lru_cache(STATEMENTS)
def _statement(into: str, row: str, rows: int, select: str, behind: str) -> str:
    values = f"VALUES {', '.join([row] * rows)}"
    return f"{into} SELECT v.* FROM ({values}) AS v {select}" if select else f"{into} {values} {behind}"
