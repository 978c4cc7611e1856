"""The items that a claim of the queue on SQLite takes: by due time, or of the tenants whose turn it is."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import NamedTuple

import msgspec

from ....model.demand import Cell, Demand
from .memory import Memory
from .rows import BLOCKED, ID, KIND, LANE, SIZE, TRIGGER, TaskRow, json_text

_decode = msgspec.json.Decoder().decode
_due_and_id = itemgetter(TRIGGER, ID)

# The first items of many lanes or kinds in one step, as TaskRow. ?1: starts of each; ?2: now; ?3: most items of each.
_PICK = (
    "SELECT json_group_array(json_array(t.id, t.kind, t.state, t.fence, t.attempts, t.crashes, t.flags, t.size,"
    " t.next_trigger, t.lane)) FROM json_each(?1) AS j CROSS JOIN tasks AS t WHERE t.id IN"
    " (SELECT id FROM tasks INDEXED BY {} = j.value ->> 0 AND (next_trigger, id) > (j.value ->> 1, j.value ->> 2)"
    "  AND next_trigger <= ?2 {} ORDER BY next_trigger, id LIMIT ?3)"
)
_PICK_ALL = _PICK.format("tasks_live WHERE lane", "")
_PICK_OPEN = _PICK.format("tasks_live WHERE lane", "AND kind NOT IN (SELECT value FROM json_each(?4))")
_PICK_TURNS = _PICK.format("tasks_turns WHERE kind", "")
_NEXT = (
    "SELECT json_group_array((SELECT min(next_trigger) FROM tasks INDEXED BY {} = j.value AND next_trigger > ?2))"
    " FROM json_each(?1) AS j"
)
_NEXT_OF_LANE = _NEXT.format("tasks_live WHERE lane")
_NEXT_OF_KIND = _NEXT.format("tasks_turns WHERE kind")

#: Tenants of a lane that share a claim's items of it (FL19), and tenants that share a claim of fewer items than that:
#: each tenant costs a step. If these tenants have less, the claim goes on with the next ones.
TENANTS, FEW_TENANTS = 16, 4


class _Turn(NamedTuple):
    """Kinds of a lane whose turn it is: most items of all together, and most items of each."""

    lane: int
    most: int
    each: int
    kinds: list[int]


class Visit:
    """One claim in the making: the room left in each cell, in the total and in the bytes."""

    def __init__(self, demand: Demand, most: int) -> None:
        self.cells = dict(demand.cells)
        self.total = min(demand.total, most)
        self.room = demand.max_bytes
        self.rows: list[TaskRow] = []
        self.taken: dict[int, tuple[int, int]] = {}  # kind → trigger and id of the last item taken in turn
        self.passed: dict[int, tuple[int, int]] = {}  # lane → trigger and id of the last item taken by time

    def left(self) -> int:
        """Number of items that may still be taken. The first is always allowed, however large it is."""
        return self.total - len(self.rows) if self.room > 0 or not self.rows else 0

    def take(self, cell: Cell, rows: Sequence[TaskRow], most: int) -> int:
        """Takes as many of a lane's or kind's rows as there is room for, from the first on; returns how many."""
        rows = rows[: min(self.cells[cell], self.left(), most)]
        for index, row in enumerate(rows):
            self.room -= row[SIZE]
            if self.room < 0 and (index or self.rows):
                rows = rows[:index]
                break
        if rows:
            self.rows += rows
            self.cells[cell] -= len(rows)
        return len(rows)


def pick(
    connection: sqlite3.Connection,
    memory: Memory,
    visit: Visit,
    lanes: Sequence[int],
    limit: int,
    shut: frozenset[int],
    now: int,
) -> None:
    """Takes up to `limit` due items of each lane. All items below a lane's new bound were taken."""
    if not visit.left():
        return
    starts = [(lane, *(visit.passed.get(lane) or (memory.bound(lane, shut), -1))) for lane in lanes]
    if shut:
        arguments = (json_text(starts), now, limit, json_text([*shut]))
        (text,) = connection.execute(_PICK_OPEN, arguments).fetchone()
    else:
        (text,) = connection.execute(_PICK_ALL, (json_text(starts), now, limit)).fetchone()
    found: dict[int, list[TaskRow]] = {lane: [] for lane in lanes}
    for row in sorted(_decode(text), key=_due_and_id):
        found[row[LANE]].append(row)
    emptied: list[int] = []
    for lane, rows in found.items():
        took = visit.take(memory.kinds.cells[lane], rows, limit)
        memory.watches[lane].left -= took
        if took:
            visit.passed[lane] = (rows[took - 1][TRIGGER], rows[took - 1][ID])
        if took < len(rows):
            memory.advance(lane, shut, rows[took][TRIGGER])
        elif len(rows) < limit:
            emptied.append(lane)
        else:
            memory.advance(lane, shut, rows[-1][TRIGGER])
    if emptied:
        (text,) = connection.execute(_NEXT_OF_LANE, (json_text(emptied), now)).fetchone()
        for lane, trigger in zip(emptied, _decode(text), strict=True):
            memory.advance(lane, shut, BLOCKED if trigger is None else trigger)


def pick_turns(
    connection: sqlite3.Connection,
    memory: Memory,
    visit: Visit,
    lanes: Sequence[int],
    limit: int,
    shut: frozenset[int],
    now: int,
) -> None:
    """Takes up to `limit` due items of each lane, from the kinds whose turn it is. All items of a kind below its new
    bound were taken."""
    tenants, found = memory.tenant_turns, dict[int, list[TaskRow]]()
    plan = [
        _Turn(lane, limit, _share(limit, len(kinds)), kinds)
        for lane in lanes
        if (kinds := tenants.take(lane, _tenants(limit), shut.__contains__))
    ]
    looked = bool(visit.left())
    for most_each, some in groupby(plan if looked else (), attrgetter("each")):
        starts = [
            (kind, *(visit.taken.get(kind) or (tenants.bounds[kind], -1))) for turn in some for kind in turn.kinds
        ]
        (text,) = connection.execute(_PICK_TURNS, (json_text(starts), now, most_each)).fetchone()
        for row in sorted(_decode(text), key=_due_and_id):
            found.setdefault(row[KIND], []).append(row)
    emptied: list[int] = []
    kept: list[int] = []
    for turn in plan:
        cell, most = memory.kinds.cells[turn.lane], turn.most
        for kind in turn.kinds:
            rows = found.get(kind, [])
            took = visit.take(cell, rows, most)
            most -= took
            memory.watches[turn.lane].left -= took
            if took:
                visit.taken[kind] = (rows[took - 1][TRIGGER], rows[took - 1][ID])
            if took < len(rows) or not looked:
                if took:
                    tenants.left(kind, rows[took][TRIGGER])
                else:
                    kept.append(kind)
            elif len(rows) < turn.each:
                emptied.append(kind)
            else:
                tenants.left(kind, rows[-1][TRIGGER])
    for kind in reversed(kept):
        tenants.keep(kind)
    _wait(connection, memory, emptied, now)


def _wait(connection: sqlite3.Connection, memory: Memory, emptied: list[int], now: int) -> None:
    """Notes that no item of these kinds is due any more."""
    if emptied:
        (text,) = connection.execute(_NEXT_OF_KIND, (json_text(emptied), now)).fetchone()
        for kind, trigger in zip(emptied, _decode(text), strict=True):
            memory.tenant_turns.waits(kind, BLOCKED if trigger is None else trigger)


def _tenants(items: int) -> int:
    return TENANTS if items >= TENANTS else min(FEW_TENANTS, items)


def _share(items: int, tenants: int) -> int:
    """Items for each tenant: rounded so that each of sixteen tenants gets one, and four tenants are enough."""
    return items // tenants if items >= TENANTS else -(-items // tenants)
