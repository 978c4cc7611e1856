"""The clocks of the queue on SQLite: notes of them in the file, and corrections after the wall clock was set."""

from __future__ import annotations

import logging
import sqlite3

from ..lease_clock import (
    NEW_LONGEST,
    Noted,
    due_after,
    everything_waits,
    lease_end,
    same_run,
    set_back_by,
    was_set,
)
from .memory import Memory
from .rows import BLOCKED

_LOG = logging.getLogger("tailrace.stores")


def open_clock(
    connection: sqlite3.Connection, memory: Memory, boot: str, wall: int, monotonic: int, *, durable: bool
) -> int:
    """Adjusts lease ends and due times to the clocks as they are now. Returns for how long (µs) nothing may be handed
    out."""
    row = connection.execute("SELECT boot, ahead, wall, longest, closed FROM lease_clock").fetchone()
    parts = [part for parts in memory.claims.values() for part in parts]
    noted = Noted("", 0, wall, NEW_LONGEST, True) if row is None else Noted(*row)
    for part in parts:
        until = lease_end(part.until, noted, boot, monotonic)
        if until != part.until:
            part.until = until
            connection.execute("UPDATE claims SET until = ? WHERE number = ?", (until, part.number))
    memory.find_soonest()
    if parts and not same_run(noted, boot):
        _LOG.info(
            "the machine was restarted: items handed out before that wait %.0f s, all others go on",
            noted.longest / 1e6,
        )
    back = set_back_by(noted, boot, wall - monotonic, wall)
    if back:
        _set_back(connection, memory, wall, back)
    memory.longest = noted.longest if row is not None or parts else 0
    _note(connection, memory, boot, wall, monotonic)
    return noted.longest if everything_waits(noted, boot, durable=durable) else 0


def keep_time(connection: sqlite3.Connection, memory: Memory, boot: str, wall: int, monotonic: int) -> None:
    """Follows the wall clock if it was set. Leases do not depend on it, so they stay as they are."""
    ahead = wall - monotonic
    if ahead == memory.ahead:
        memory.looked = monotonic
        return
    moved = was_set(memory.ahead, ahead, monotonic - memory.looked)
    if moved < 0:
        _set_back(connection, memory, wall, -moved)
    if moved:
        _note(connection, memory, boot, wall, monotonic)
    memory.ahead, memory.looked = ahead, monotonic


def note_wall(connection: sqlite3.Connection, memory: Memory, wall: int) -> None:
    """Notes the wall clock, if anything was written since it was last noted: a later run compares with it."""
    if connection.total_changes != memory.noted_changes:
        connection.execute("UPDATE lease_clock SET wall = ?, ahead = ?", (wall, memory.ahead))
        memory.noted_changes = connection.total_changes


def close_clock(connection: sqlite3.Connection, wall: int, ahead: int) -> None:
    """Notes that this run closes the store. `ahead` as in the memory."""
    connection.execute("UPDATE lease_clock SET wall = ?, ahead = ?, closed = 1", (wall, ahead))


def grant(connection: sqlite3.Connection, memory: Memory, length: int) -> None:
    """Notes a new longest lease, in the transaction that grants it."""
    if length > memory.longest:
        connection.execute("UPDATE lease_clock SET longest = ?", (length,))
        memory.longest = length


def _note(connection: sqlite3.Connection, memory: Memory, boot: str, wall: int, monotonic: int) -> None:
    memory.ahead, memory.looked = wall - monotonic, monotonic
    connection.execute(
        "INSERT OR REPLACE INTO lease_clock VALUES (1, ?, ?, ?, ?, 0)", (boot, memory.ahead, wall, memory.longest)
    )


def _set_back(connection: sqlite3.Connection, memory: Memory, now: int, back: int) -> None:
    """Brings due times back that were counted while the clock was ahead, so that their items do not wait until it is
    that late again."""
    connection.create_function("due_after", 1, lambda due: due_after(due, now, back), deterministic=True)
    try:
        moved = connection.execute(
            "UPDATE tasks SET next_trigger = due_after(next_trigger) WHERE next_trigger > ? AND next_trigger < ?"
            " AND due_after(next_trigger) < next_trigger",
            (now, BLOCKED),
        ).rowcount
        connection.execute("UPDATE keyed SET due = due_after(due) WHERE due > ?", (now,))
    finally:
        connection.create_function("due_after", 1, None)
    memory.look_at_waiting(connection)
    memory.fresh = None
    _LOG.warning("the wall clock was set back by %.0f s: the due times of %d items follow it", back / 1e6, moved)
