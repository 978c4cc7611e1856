"""Ends of items in the queue on SQLite: settlements by fence, and cancellations."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Mapping, Sequence

import msgspec

from ....model.claim import Settle, State
from ....model.tries import KEPT, REASON_KEPT
from ...jobs.rules.feeding import NOTHING
from ...jobs.sqlite.ends import ItemEnd, keep_payloads, note_ends
from ..ids import id_number
from ..lifecycle import LEASED, TERMINAL, WAITING, may_move
from ..queue import PROGRESS, REASON
from .callbacks import tell
from .memory import Memory
from .rows import BLOCKED, CANCEL, HAS_EXTRA, IDS, JOB, json_text, one_or_many

_decode = msgspec.json.Decoder().decode


def succeed(
    connection: sqlite3.Connection,
    memory: Memory,
    fence: int,
    ids: Sequence[str],
    now: int,
    results: Mapping[int, bytes] | None = None,
) -> list[str]:
    """Ends items that succeeded; returns the refused ids. `results`: results of items of jobs."""
    numbers = [id_number(each) for each in ids]
    which, named = one_or_many(numbers)
    left = len(numbers)
    for before in (State.ENQUEUED, State.PROCESSING):
        moved = connection.execute(
            f"UPDATE tasks SET state = 10, ended = ? WHERE id {which} AND fence = ? AND state = ?",
            (now, named, fence, before),
        ).rowcount
        memory.moved(before, State.SUCCESS, moved)
        left -= moved
        if not left:
            break
    refused: list[str] = []
    if left:
        (found,) = connection.execute(
            f"SELECT json_group_array(id) FROM tasks WHERE id {which} AND fence = ? AND state = 10", (named, fence)
        ).fetchone()
        done = set(_decode(found))
        refused = [each for each, number in zip(ids, numbers, strict=True) if number not in done]
        numbers = [number for number in numbers if number in done]
        which, named = one_or_many(numbers)
    connection.execute(f"DELETE FROM entities WHERE id {which}", (named,))
    if memory.keyed:
        release_keys(connection, memory, json_text(numbers))
    memory.release(connection, fence, numbers)
    if memory.callbacks:
        tell(connection, memory, dict.fromkeys(numbers, (State.SUCCESS, "")), now)
    if memory.jobs.open:
        kept = results or {}
        note_ends(connection, memory, [ItemEnd(each, True, kept.get(each, NOTHING)) for each in numbers], now)
    return refused


def end(connection: sqlite3.Connection, memory: Memory, fence: int, others: Sequence[Settle], now: int) -> list[str]:
    """Settles items that did not plainly succeed; returns the refused ids. An item that would be returned is cancelled
    instead if its cancellation was requested."""
    if not others:
        return []
    (text,) = connection.execute(
        f"SELECT json_group_array(json_array(id, state, kind, flags)) FROM tasks WHERE id IN {IDS} AND fence = ?",
        (json_text([id_number(each.id) for each in others]), fence),
    ).fetchone()
    rows = {number: (State(state), kind, flags) for number, state, kind, flags in _decode(text)}
    refused: list[str] = []
    tasks: list[tuple[int, int, int | None, int | None, int, int, int, int]] = []
    entities: list[tuple[int, str, str, bool]] = []
    ends: list[ItemEnd] = []
    for each in others:
        number = id_number(each.id)
        row = rows.get(number)
        if row is None:
            refused.append(each.id)
            continue
        before, kind, flags = row
        state = State.CANCELLED if flags & CANCEL and each.state in WAITING else each.state
        if before not in LEASED or state in LEASED or not may_move(before, state):
            if before is not state or state in LEASED:
                refused.append(each.id)
            continue
        rows[number] = (state, kind, flags)
        memory.moved(before, state)
        terminal = state in TERMINAL
        due = None
        if not terminal:
            due = now + math.ceil(each.delay * 1e6) if each.delay > 0 else memory.first(kind, now)
        if due is not None:
            memory.sooner(kind, due)
        extra = HAS_EXTRA if each.progress else 0
        charged = (each.attempts, each.crashes, each.throttles, extra)
        tasks.append((number, state, due, now if terminal else None, *charged))
        if terminal and flags & JOB:
            ends.append(ItemEnd(number, state is State.SUCCESS, reason=each.reason or state.label))
        if terminal or each.reason or each.progress:
            entities.append((number, each.reason[:REASON], each.progress[:PROGRESS], terminal))
    keep_payloads(connection, ends)
    _write(connection, tasks, entities)
    back = {number for number, _, due, *_ in tasks if due is not None}
    tried = [
        (id_number(each.id), (now / 1e6, each.outcome, each.reason[:REASON_KEPT]))
        for each in others
        if each.outcome and id_number(each.id) in back
    ]
    if tried:
        connection.execute(
            "INSERT INTO tries SELECT j.value ->> 0, json_array(json(j.value -> 1)) FROM json_each(?) AS j WHERE true"
            " ON CONFLICT (id) DO UPDATE SET tries = json_remove(json_insert(tries, '$[#]',"
            f" json(excluded.tries -> 0)), iif(json_array_length(tries) >= {KEPT}, '$[0]', '$[{KEPT}]'))",
            (json_text(tried),),
        )
    over = [task[0] for task in tasks if task[2] is None]
    if memory.callbacks:
        whys = {id_number(each.id): each.reason[:REASON] for each in others}
        tell(connection, memory, {number: (rows[number][0], whys[number]) for number in over}, now)
    if over:
        remember(connection, json_text(over), "+")
        release_keys(connection, memory, json_text(over))
    memory.release(connection, fence, [task[0] for task in tasks])
    note_ends(connection, memory, ends, now)
    return refused


def _write(
    connection: sqlite3.Connection,
    tasks: Sequence[tuple[int, int, int | None, int | None, int, int, int, int]],
    entities: Sequence[tuple[int, str, str, bool]],
) -> None:
    if tasks:
        connection.execute(
            "UPDATE tasks SET state = j.value ->> 1, next_trigger = j.value ->> 2, ended = j.value ->> 3,"
            " attempts = max(attempts, j.value ->> 4), crashes = max(crashes, j.value ->> 5),"
            " throttles = max(throttles, j.value ->> 6), flags = flags | (j.value ->> 7)"
            " FROM json_each(?) AS j WHERE tasks.id = j.value ->> 0",
            (json_text(tasks),),
        )
    if entities:
        connection.execute(
            "UPDATE entities SET reason = iif(j.value ->> 1 = '', reason, j.value ->> 1),"
            " progress = iif(j.value ->> 2 = '', progress, j.value ->> 2),"
            " payload = iif(j.value ->> 3, x'', payload) FROM json_each(?) AS j WHERE entities.id = j.value ->> 0",
            (json_text(entities),),
        )


def remember(connection: sqlite3.Connection, ids: str, sign: str) -> None:
    """Adds (`+`) or subtracts (`-`) the size of texts kept for these ended items to or from the bytes of the
    history."""
    connection.execute(
        f"UPDATE history SET bytes = bytes {sign} (SELECT coalesce(sum(length(reason) + length(progress) + length(key)"
        f" + length(headers)), 0) FROM entities WHERE id IN {IDS})",
        (ids,),
    )


def release_keys(connection: sqlite3.Connection, memory: Memory, ids: str) -> None:
    """Lets the next item of each ended item's key run, when it is due. `ids` is a JSON array of numbers."""
    if not memory.keyed:
        return
    gone = connection.execute(f"DELETE FROM keyed WHERE id IN {IDS} RETURNING key", (ids,)).fetchall()
    memory.keyed -= len(gone)
    for key in {key for (key,) in gone}:
        row = connection.execute("SELECT id, due FROM keyed WHERE key = ? ORDER BY id LIMIT 1", (key,)).fetchone()
        if row is None:
            continue
        number, due = row
        kind = connection.execute(
            "UPDATE tasks SET next_trigger = ? WHERE id = ? AND next_trigger = ? RETURNING kind",
            (due, number, BLOCKED),
        ).fetchone()
        if kind is not None:
            memory.sooner(kind[0], due)


def cancel(connection: sqlite3.Connection, memory: Memory, number: int, now: int) -> str:
    """Ends an item that waits, or marks one that is leased. Answers as `Queue.cancel` does."""
    row = connection.execute("SELECT state, flags FROM tasks WHERE id = ?", (number,)).fetchone()
    if row is None:
        return "unknown"
    before, flags = row
    state = State(before)
    if state in LEASED:
        connection.execute("UPDATE tasks SET flags = flags | ? WHERE id = ?", (CANCEL, number))
        return "requested"
    if not may_move(state, State.CANCELLED):
        return "ended"
    connection.execute(
        "UPDATE tasks SET state = ?, next_trigger = NULL, ended = ? WHERE id = ?", (State.CANCELLED, now, number)
    )
    ends = [ItemEnd(number, False, reason="cancelled")] if flags & JOB else []
    keep_payloads(connection, ends)
    connection.execute("UPDATE entities SET payload = x'', reason = 'cancelled' WHERE id = ?", (number,))
    remember(connection, json_text([number]), "+")
    memory.moved(state, State.CANCELLED)
    release_keys(connection, memory, json_text([number]))
    tell(connection, memory, {number: (State.CANCELLED, "cancelled")}, now)
    note_ends(connection, memory, ends, now)
    return "cancelled"
