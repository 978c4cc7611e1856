"""Submissions to the queue on SQLite: all of a batch or none, with one statement for each table."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from operator import itemgetter

from ....model.errors import Overloaded
from ...sqlite.insert import insert
from ..admission import dedupe_name
from ..ids import id_text
from ..lifecycle import LEASED, WAITING
from ..queue import NewItem, Submitted
from .dedupe import note
from .memory import Fresh, Memory
from .rows import BLOCKED, DEDUPED, HAS_EXTRA, KEYED, json_text

#: Most items, and bytes of each, that are remembered for a claim that follows at once.
FRESH_ITEMS, FRESH_BYTES = 64, 64 << 10
#: No bound on waiting items: items that follow from an ended one may exceed the bound.
UNBOUNDED = 1 << 62


def submit(
    connection: sqlite3.Connection,
    memory: Memory,
    items: Sequence[NewItem],
    max_waiting: int,
    now: int,
    mark: int = 0,
    *,
    born: bool = False,
) -> list[Submitted]:
    """Stores the items, each with `mark` among its flags. `born`: nobody submits them; they follow from items that
    ended. Raises Overloaded if more than `max_waiting` items would be live."""
    live = sum(memory.counts[state] for state in WAITING | LEASED)
    if live + len(items) > max_waiting:
        raise Overloaded(f"the queue holds {live} workloads and takes at most {max_waiting}; try again later", 5.0)
    memory.note_stored((item.kind.priority for item in items), len(items), now, born=born)
    fresh, few = memory.just_submitted(connection) or Fresh(), len(items) <= FRESH_ITEMS
    numbers = memory.ids.take(len(items), now // 1000)
    known = note(connection, memory.runs, items, numbers, memory.key_rule)
    if (
        not few
        and not known
        and not any(item.due or item.key or item.headers or item.expires_at or item.on_done for item in items)
    ):
        return _plain(connection, memory, items, numbers, now, mark)
    answers: list[Submitted] = []
    tasks: list[tuple[int, int, int, int, int, int, int]] = []
    entities: list[tuple[int, bytes, str, str, float]] = []
    keyed: list[tuple[str, int, int]] = []
    keys: set[str] = set()
    number_of, lane_of, rule = memory.kinds.numbers, memory.kinds.lane_of, memory.key_rule
    for number, item in zip(numbers, items, strict=True):
        payload, flags = item.payload, mark
        if item.key or item.headers or item.expires_at:
            flags |= HAS_EXTRA
        if item.dedupe_key:
            if known and (first := known.get((item.kind.function, dedupe_name(item, rule)), number)) != number:
                answers.append(Submitted(id_text(first), True))
                continue
            flags |= DEDUPED
        kind = number_of.get(item.kind) or memory.kinds.number(connection, item.kind)
        trigger = due = int(item.due * 1e6) or now
        if item.key:
            flags |= KEYED
            if (key := rule(item.kind.tenant, item.key)) in keys or connection.execute(
                "SELECT 1 FROM keyed WHERE key = ? LIMIT 1", (key,)
            ).fetchone():
                trigger = BLOCKED
            keys.add(key)
            keyed.append((key, number, due))
        lane, size = lane_of[kind], len(payload)
        tasks.append((number, lane, kind, 0, trigger, flags, size))
        headers = json_text(item.headers) if item.headers else ""
        entities.append((number, payload, item.key, headers, item.expires_at))
        if trigger != now or flags & HAS_EXTRA or size > FRESH_BYTES:
            fresh.rows.pop(lane, None)
        elif few and (lane in fresh.rows or memory.is_empty(lane)):
            fresh.add((number, kind, 0, 0, 0, 0, flags, size, trigger, lane), payload)
        memory.sooner(kind, trigger)
        answers.append(Submitted(f"{number:016x}", False))
    insert(connection, "tasks (id, lane, kind, state, next_trigger, flags, size)", tasks)
    insert(connection, "entities (id, payload, key, headers, expires_at)", entities)
    insert(connection, "keyed (key, id, due)", keyed)
    memory.count_new(len(tasks))
    memory.keyed += len(keyed)
    _keep_callbacks(connection, memory, items, answers)
    if few and len(fresh.payloads) <= FRESH_ITEMS:
        fresh.changes = connection.total_changes
        memory.fresh = fresh
    return answers


def _keep_callbacks(
    connection: sqlite3.Connection, memory: Memory, items: Sequence[NewItem], answers: Sequence[Submitted]
) -> None:
    """Stores the callbacks of new items; duplicates have none."""
    number_of, rows = memory.kinds.number, list[tuple[int, int, int, bytes, bytes]]()
    for item, answer in zip(items, answers, strict=True):
        if item.on_done is not None and not answer.duplicate:
            done, prefix, suffix = item.on_done
            whose = number_of(connection, item.kind)
            rows.append((int(answer.id, 16), whose, number_of(connection, done), prefix, suffix))
    insert(connection, "callbacks (item, whose, kind, prefix, suffix)", rows)
    memory.callbacks += len(rows)


def _plain(
    connection: sqlite3.Connection,
    memory: Memory,
    items: Sequence[NewItem],
    numbers: Sequence[int],
    now: int,
    mark: int,
) -> list[Submitted]:
    """Stores many items that are due now and have no further options: the same rows in half the time."""
    tasks: list[tuple[int, int, int, int, int, int]] = []
    last, kind, lane = None, 0, 0
    for number, item in zip(numbers, items, strict=True):
        if item.kind is not last:  # most batches have one kind
            last = item.kind
            kind = memory.kinds.numbers.get(last) or memory.kinds.number(connection, last)
            lane = memory.kinds.lane_of[kind]
        tasks.append((number, lane, kind, now, DEDUPED | mark if item.dedupe_key else mark, len(item.payload)))
    insert(connection, "tasks (id, lane, kind, state, next_trigger, flags, size)", tasks, row="(?, ?, ?, 0, ?, ?, ?)")
    for kind, count in Counter(map(itemgetter(2), tasks)).items():
        memory.sooner(kind, now, count)
    insert(connection, "entities (id, payload)", [*zip(numbers, (item.payload for item in items), strict=True)])
    memory.count_new(len(tasks))
    return [Submitted(f"{number:016x}", False) for number in numbers]
