"""Rows of the ledger are looked up by their position: the cost of a copy does not grow with the number of parked
items."""

from __future__ import annotations

import contextlib
import json
import sqlite3

from tailrace.model.ledger import LedgerEntry, LedgerPlace
from tailrace.stores.ledger.ledger import Change
from tailrace.stores.ledger.sqlite import _REMOVE, SCHEMA, _Answers, _compare_and_set, _Move, _rows, _sweep, _text

POSITIONS = range(100)
WHERE = ("s", "0")


def written(connection: sqlite3.Connection, changes: list[Change], passed: int = 0) -> list[LedgerEntry | None]:
    done = _Answers([None] * len(changes), [], [])
    moves = [_Move(number, row, row and _text(row), after) for number, (row, after) in enumerate(changes)]
    _compare_and_set(connection, WHERE, moves, passed, done, last=True)
    if done.gone:
        connection.execute(_REMOVE, (*WHERE, json.dumps(done.gone)))
    return done.rows


def test_no_statement_scans_the_rows_of_a_partition() -> None:
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        _look(connection)


def _look(connection: sqlite3.Connection) -> None:
    connection.executescript(SCHEMA)
    parked = [LedgerEntry(position, LedgerPlace.PARKED, n=1) for position in POSITIONS]
    written(connection, [(None, row) for row in parked])
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    assert _rows(connection, WHERE, [3, 5]).keys() == {3, 5}
    over: list[Change] = [(row, row._replace(place=LedgerPlace.DEAD)) for row in parked[:4]]
    # Given rows that are over: some stay above the checkpoint, some go at once, and one is not as it was read
    assert written(connection, over[:2]) == [after for _, after in over[:2]]
    assert written(connection, over[2:], passed=50) == [after for _, after in over[2:]]
    assert written(connection, [(parked[5]._replace(n=2), over[0][1]._replace(position=5))]) == [parked[5]]
    assert _sweep(connection, *WHERE, 50, suspects=True) == 2
    connection.set_trace_callback(None)
    plans = [step[3] for text in statements for step in connection.execute("EXPLAIN QUERY PLAN " + text)]
    lookups = [plan for plan in plans if plan.startswith(("SEARCH l", "SCAN l"))]
    assert lookups and all("position=?" in plan or "ledger_swept" in plan for plan in lookups), lookups
