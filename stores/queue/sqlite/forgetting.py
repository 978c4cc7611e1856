"""Removal of ended items: their rows, once the retention lets them go, and their part in the memory's counts."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from ....model.claim import State
from ...sqlite.identity import note_height
from . import dedupe
from .memory import Memory
from .rows import IDS, json_text
from .settle import remember


def forget_ended(connection: sqlite3.Connection, memory: Memory, gone: Sequence[int]) -> int:
    """Removes these ended items, whose ids are in order; returns how many there were."""
    text = json_text(gone)
    rows = connection.execute(f"SELECT state, count(*) FROM tasks WHERE id IN {IDS} GROUP BY state", (text,)).fetchall()
    remember(connection, text, "-")
    note_height(connection, memory.fence)
    for table in ("tasks", "entities", "tries"):
        connection.execute(f"DELETE FROM {table} WHERE id IN {IDS}", (text,))
    dedupe.forget(connection, memory.runs, gone)
    for state, count in rows:
        memory.counts[State(state)] -= count
        memory.forgotten += count
    if memory.counted is not None:
        memory.counted.gone(gone)
    return sum(count for _, count in rows)
