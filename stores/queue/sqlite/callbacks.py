"""Callbacks of workloads on SQLite: kept beside the task, and stored as workloads by the transaction that ends it."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping

from ....model.claim import State
from ..callback import WorkloadEnd, event_of
from ..ids import id_text
from ..queue import NewItem
from .memory import Memory
from .rows import IDS, json_text
from .submit import UNBOUNDED, submit


def tell(connection: sqlite3.Connection, memory: Memory, ends: Mapping[int, tuple[State, str]], now: int) -> None:
    """Stores the callbacks of these ended items, if they have any. `ends`: item → its state and the reason."""
    if not (memory.callbacks and ends):
        return
    rows = connection.execute(
        f"DELETE FROM callbacks WHERE item IN {IDS} RETURNING item, whose, kind, prefix, suffix", (json_text([*ends]),)
    ).fetchall()
    memory.callbacks -= len(rows)
    kinds, items = memory.kinds.kinds, list[NewItem]()
    for item, whose, kind, prefix, suffix in sorted(rows):
        state, why = ends[item]
        end = WorkloadEnd(id_text(item), kinds[whose].function, state.label, why, now / 1e6)
        items.append(NewItem(kinds[kind], prefix + event_of(end) + suffix))
    if items:
        submit(connection, memory, items, UNBOUNDED, now, born=True)
