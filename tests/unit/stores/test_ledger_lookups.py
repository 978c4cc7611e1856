"""Rows of the ledger are looked up by their position: what a copy costs does not grow with what is parked."""

from __future__ import annotations

import json
import sqlite3

from tailrace.sdk.model.ledger import Entry, Place
from tailrace.stores.ledger.sqlite import SCHEMA, _compare_and_set, _rows

POSITIONS = range(100)


def test_no_statement_scans_the_rows_of_a_partition() -> None:
    connection = sqlite3.connect(":memory:")
    connection.executescript(SCHEMA)
    parked = [Entry(position, Place.PARKED, n=1) for position in POSITIONS]
    _compare_and_set(connection, "s", "0", [(None, row) for row in parked], 0)
    statements: list[str] = []
    connection.set_trace_callback(statements.append)
    assert _rows(connection, "s", "0", json.dumps([3, 5])).keys() == {3, 5}
    over = [(row, row._replace(place=Place.DEAD)) for row in parked[:2]]
    assert _compare_and_set(connection, "s", "0", over, 0) == [after for _, after in over]
    connection.set_trace_callback(None)
    plans = [step[3] for text in statements for step in connection.execute("EXPLAIN QUERY PLAN " + text)]
    lookups = [plan for plan in plans if plan.startswith(("SEARCH l ", "SCAN l "))]
    assert lookups and all("position=?" in plan for plan in lookups), lookups
