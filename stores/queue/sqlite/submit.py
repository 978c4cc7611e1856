"""Submissions to the queue on SQLite: all of a batch or none, one statement a table."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from ....sdk.model.claim import State
from ....sdk.model.errors import Overloaded
from ...sqlite_insert import insert
from ..ids import id_text
from ..lifecycle import LEASED, WAITING
from ..queue import NewItem, Submitted
from .memory import Fresh, Memory
from .rows import BLOCKED, DEDUPED, HAS_EXTRA, KEYED, json_text

#: How many items, and bytes of each, are remembered for a claim that follows at once.
FRESH_ITEMS, FRESH_BYTES = 64, 64 << 10


def submit(
    connection: sqlite3.Connection, memory: Memory, items: Sequence[NewItem], max_waiting: int, now: int
) -> list[Submitted]:
    """Stores the items. Raises Overloaded when that would make more than `max_waiting` live ones."""
    live = sum(memory.counts[state] for state in WAITING | LEASED)
    if live + len(items) > max_waiting:
        raise Overloaded(f"the queue holds {live} workloads and takes at most {max_waiting}; try again later", 5.0)
    memory.stored = now
    fresh, few = memory.just_submitted(connection) or Fresh(), len(items) <= FRESH_ITEMS
    numbers = memory.ids.take(len(items), now // 1000)
    known = _dedupe(connection, items, numbers)
    answers: list[Submitted] = []
    tasks: list[tuple[int, int, int, int, int, int, int]] = []
    entities: list[tuple[int, bytes, str, str, float]] = []
    keyed: list[tuple[str, int, int]] = []
    keys: set[str] = set()
    number_of, lane_of, earliest = memory.kinds.numbers, memory.kinds.lane_of, memory.earliest
    for number, item in zip(numbers, items, strict=True):
        payload, flags = item.payload, 0
        if item.key or item.headers or item.expires_at:
            flags = HAS_EXTRA
        if item.dedupe_key:
            if known and (first := known.get((item.kind.function, item.dedupe_key), number)) != number:
                answers.append(Submitted(id_text(first), True))
                continue
            flags |= DEDUPED
        kind = number_of.get(item.kind) or memory.kinds.number(connection, item.kind)
        trigger = due = int(item.due * 1e6) or now
        if item.key:
            flags |= KEYED
            if (
                item.key in keys
                or connection.execute("SELECT 1 FROM keyed WHERE key = ? LIMIT 1", (item.key,)).fetchone()
            ):
                trigger = BLOCKED
            keys.add(item.key)
            keyed.append((item.key, number, due))
        lane, size = lane_of[kind], len(payload)
        tasks.append((number, lane, kind, 0, trigger, flags, size))
        headers = json_text(item.headers) if item.headers else ""
        entities.append((number, payload, item.key, headers, item.expires_at))
        if trigger != now or flags & HAS_EXTRA or size > FRESH_BYTES:
            fresh.rows.pop(lane, None)
        elif few and (lane in fresh.rows or earliest.get(lane, BLOCKED) >= BLOCKED):
            fresh.add((number, kind, 0, 0, 0, 0, flags, size, trigger, lane), payload)
        memory.sooner(lane, trigger)
        answers.append(Submitted(f"{number:016x}", False))
    insert(connection, "tasks (id, lane, kind, state, next_trigger, flags, size)", tasks)
    insert(connection, "entities (id, payload, key, headers, expires_at)", entities)
    insert(connection, "keyed (key, id, due)", keyed)
    memory.counts[State.NEW] += len(tasks)
    memory.taken += len(tasks)
    memory.keyed += len(keyed)
    if few and len(fresh.payloads) <= FRESH_ITEMS:
        fresh.changes = connection.total_changes
        memory.fresh = fresh
    return answers


def _dedupe(
    connection: sqlite3.Connection, items: Sequence[NewItem], numbers: Sequence[int]
) -> dict[tuple[str, str], int]:
    """Notes who has which dedupe key. Returns whose each one is, if some were somebody's before; nearly always none
    was, and one statement says so."""
    wanted = [
        (item.kind.function, item.dedupe_key, number)
        for item, number in zip(items, numbers, strict=True)
        if item.dedupe_key
    ]
    before = connection.total_changes
    insert(connection, "dedupe (function, key, id)", wanted, behind="ON CONFLICT DO NOTHING")
    if connection.total_changes - before == len(wanted):
        return {}
    rows = connection.execute(
        "SELECT d.function, d.key, d.id FROM json_each(?) AS j"
        " JOIN dedupe AS d ON d.function = j.value ->> 0 AND d.key = j.value ->> 1",
        (json_text(wanted),),
    ).fetchall()
    return {(function, key): number for function, key, number in rows}
