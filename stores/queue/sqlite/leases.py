"""Leases of the queue on SQLite: prolonged together, and ended when nobody prolongs them.

One row holds the lease of all items claimed together. When a holder renews only some of them the row is split, so that
the others end in their time.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import msgspec

from ....model.claim import Renewed, State
from ...jobs.sqlite.ends import ItemEnd, keep_payloads, note_ends
from ..ids import id_number, id_text
from ..lifecycle import may_move
from .callbacks import tell
from .clocks import grant
from .memory import Memory
from .rows import CANCEL, IDS, JOB, json_text
from .settle import release_keys, remember

_decode = msgspec.json.Decoder().decode


def renew(
    connection: sqlite3.Connection,
    memory: Memory,
    ids: Sequence[str],
    fence: int,
    seconds: float,
    phase: State,
    monotonic: int,
) -> Renewed:
    """Prolongs the leases of those ids that are still leased under the fence."""
    numbers = [id_number(each) for each in ids]
    parts = memory.claims.get(fence, [])
    listed = set(numbers)
    held = {number for part in parts for number in part.out & listed}
    if held:
        grant(connection, memory, length := int(seconds * 1e6))
        until = monotonic + length
        if len(parts) == 1 and len(held) == len(parts[0].out):
            parts[0].until = max(parts[0].until, until)
            connection.execute("UPDATE claims SET until = ? WHERE number = ?", (parts[0].until, parts[0].number))
        else:
            until = max([until, *(part.until for part in parts if part.out & held)])
            memory.split(connection, fence, held)
            memory.claim(connection, fence, until, held)
        _advance(connection, memory, held, fence, phase)
    return Renewed(
        seconds,
        [each for each, number in zip(ids, numbers, strict=True) if number not in held],
        _to_cancel(connection, held),
    )


def _advance(connection: sqlite3.Connection, memory: Memory, held: set[int], fence: int, phase: State) -> None:
    """Moves ENQUEUED items to PROCESSING, and none back."""
    text = json_text([*held])
    if may_move(State.ENQUEUED, phase):
        moved = connection.execute(
            f"UPDATE tasks SET state = ? WHERE id IN {IDS} AND fence = ? AND state = ?",
            (phase, text, fence, State.ENQUEUED),
        ).rowcount
        memory.moved(State.ENQUEUED, phase, moved)


def _to_cancel(connection: sqlite3.Connection, held: set[int]) -> list[str]:
    (text,) = connection.execute(
        f"SELECT json_group_array(id) FROM tasks WHERE id IN {IDS} AND flags & ?", (json_text([*held]), CANCEL)
    ).fetchone()
    return [id_text(number) for number in _decode(text)]


def end_leases(connection: sqlite3.Connection, memory: Memory, now: int, monotonic: int, behind: int = 0) -> int:
    """Ends leases that have been over for `behind` µs. Their items wait again, first of their kinds, or are cancelled
    if that was asked for. Their fence rises, so that the former holder is refused. Returns the time of the wall clock
    (as `now` is) at which the next lease may end."""
    if memory.soonest > monotonic - behind:
        return now + memory.soonest - monotonic
    for fence, parts in [*memory.claims.items()]:
        over = {number for part in parts if part.until <= monotonic - behind for number in part.out}
        if over:
            memory.release(connection, fence, over)
            _return(connection, memory, fence, over, now)
    memory.find_soonest()
    return now + memory.soonest - monotonic


def _return(connection: sqlite3.Connection, memory: Memory, fence: int, over: set[int], now: int) -> None:
    (text,) = connection.execute(
        "SELECT json_group_array(json_array(id, state, kind, attempts, flags)) FROM tasks"
        f" WHERE id IN {IDS} AND fence = ? AND state IN (2, 4)",
        (json_text([*over]), fence),
    ).fetchone()
    back: list[tuple[int, int]] = []
    cancelled: list[int] = []
    ends: list[ItemEnd] = []
    for number, state, kind, attempts, flags in _decode(text):
        if flags & CANCEL:
            cancelled.append(number)
            if flags & JOB:
                ends.append(ItemEnd(number, False, reason="cancelled"))
            memory.moved(State(state), State.CANCELLED)
        else:
            trigger = memory.first(kind, now)
            back.append((number, trigger))
            memory.moved(State(state), State.RETRIABLE_FAILURE if attempts else State.NEW)
            memory.sooner(kind, trigger)
    connection.execute(
        "UPDATE tasks SET state = iif(attempts > 0, 1, 0), next_trigger = j.value ->> 1, fence = fence + 1"
        " FROM json_each(?) AS j WHERE tasks.id = j.value ->> 0",
        (json_text(back),),
    )
    keep_payloads(connection, ends)
    if cancelled:
        ended = json_text(cancelled)
        connection.execute(f"UPDATE tasks SET state = 12, ended = ?, fence = fence + 1 WHERE id IN {IDS}", (now, ended))
        connection.execute(f"UPDATE entities SET payload = x'', reason = 'cancelled' WHERE id IN {IDS}", (ended,))
        remember(connection, ended, "+")
        release_keys(connection, memory, ended)
        tell(connection, memory, dict.fromkeys(cancelled, (State.CANCELLED, "cancelled")), now)
    note_ends(connection, memory, ends, now)
