"""Single items of the queue on SQLite: their content, and changes of due time or priority."""

from __future__ import annotations

import sqlite3

from ....model.claim import State
from ....model.one_item import BEHIND, CHANGED, ENDED, EXPIRES, OUT, UNKNOWN
from ..ids import id_number, id_text
from ..items import ItemContent, Reschedule, due_after
from ..lifecycle import LEASED, TERMINAL
from .claim import headers_of
from .memory import Memory
from .rows import BLOCKED, KEYED


def reschedule(connection: sqlite3.Connection, memory: Memory, change: Reschedule, now: int) -> str:
    """Changes an item that waits. Answers as `QueueItems.reschedule` does."""
    number = id_number(change.id)
    row = connection.execute(
        "SELECT t.state, t.kind, t.next_trigger, t.flags, e.expires_at, k.due FROM tasks AS t"
        " LEFT JOIN entities AS e ON e.id = t.id LEFT JOIN keyed AS k ON k.id = t.id WHERE t.id = ?",
        (number,),
    ).fetchone()
    if row is None:
        return UNKNOWN
    state, kind, trigger, flags, expires_at, its_due = row
    if state in LEASED or state in TERMINAL:
        return OUT if state in LEASED else ENDED
    blocked = trigger == BLOCKED
    due = due_after(its_due if blocked else trigger, change.due, now)
    if 0 < expires_at <= due / 1e6:
        return EXPIRES
    if change.priority is not None:
        kind = memory.kinds.number(connection, memory.kinds.kinds[kind]._replace(priority=change.priority))
    trigger = BLOCKED if blocked else due
    connection.execute(
        "UPDATE tasks SET lane = ?, kind = ?, next_trigger = ? WHERE id = ?",
        (memory.kinds.lane_of[kind], kind, trigger, number),
    )
    if flags & KEYED:
        connection.execute("UPDATE keyed SET due = ? WHERE id = ?", (due, number))
    memory.sooner(kind, trigger)
    return BEHIND if blocked else CHANGED


def peek(connection: sqlite3.Connection, id: str, max_bytes: int) -> ItemContent | None:
    """Returns the content of a live item."""
    row = connection.execute(
        "SELECT substr(e.payload, 1, ?), length(e.payload), e.key, e.headers, e.expires_at,"
        " (SELECT h.id FROM keyed AS k JOIN keyed AS h ON h.key = k.key WHERE k.id = t.id ORDER BY h.id LIMIT 1), t.id"
        " FROM tasks AS t JOIN entities AS e ON e.id = t.id WHERE t.id = ? AND t.state < ?",
        (max_bytes, id_number(id), State.SUCCESS),
    ).fetchone()
    if row is None:
        return None
    payload, size, key, headers, expires_at, head, number = row
    behind = "" if head in (None, number) else id_text(head)
    return ItemContent(bytes(payload or b""), size, key, headers_of(headers), expires_at, behind)
