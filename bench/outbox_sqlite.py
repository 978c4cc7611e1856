"""The outbox of the scenario `outbox` in SQLite: an application's own file, as durable as SQLite makes it by itself."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import tailrace

from ..stores.outbox.sqlite_table import create


def fill(path: Path, calls: list[tuple[str, str]]) -> float:
    """Enqueues functions for tenants, a thousand in a transaction. Returns the seconds that the calls took, without the
    commits."""
    connection = sqlite3.connect(path)
    for statement in create():
        connection.execute(statement)
    took = 0.0
    for first in range(0, len(calls), 1000):
        began = time.perf_counter()
        for function, tenant in calls[first : first + 1000]:
            tailrace.enqueue(connection, function, tenant=tenant, priority="user_visible")
        took += time.perf_counter() - began
        connection.commit()
    connection.close()
    return took
