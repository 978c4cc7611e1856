"""Claims of the queue on SQLite: which lanes have something due, what is taken of each, and the claim's one write."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter
from typing import NamedTuple

import msgspec

from ....model.claim import Leased, Settle, State
from ....model.demand import Cell, Demand
from ....model.due_times import few
from ....model.outcome import EXPIRED_WHY
from ....model.workload import FLIGHT_ITEMS, Extra, Headers
from ..gates import ShutLanes
from ..ids import id_text
from ..turns import ReadyLane, turns
from .claims import end_leases
from .clocks import grant
from .memory import Fresh, Memory
from .rows import (
    ATTEMPTS,
    BLOCKED,
    CRASHES,
    FENCE,
    FLAGS,
    HAS_EXTRA,
    ID,
    IDS,
    KIND,
    SIZE,
    STATE,
    TRIGGER,
    Row,
    json_text,
    one_or_many,
)
from .settle import end

_decode = msgspec.json.Decoder().decode
_due_and_id = itemgetter(TRIGGER, ID)

# The first items of many kinds in one step, as Row: where each kind begins is in ?1, ?2 is now, ?3 how many of each.
_PICK = (
    "SELECT json_group_array(json_array(t.id, t.kind, t.state, t.fence, t.attempts, t.crashes, t.flags, t.size,"
    " t.next_trigger, t.lane)) FROM json_each(?1) AS j CROSS JOIN tasks AS t WHERE t.id IN"
    " (SELECT id FROM tasks WHERE kind = j.value ->> 0 AND (next_trigger, id) > (j.value ->> 1, j.value ->> 2)"
    "  AND next_trigger <= ?2 ORDER BY next_trigger, id LIMIT ?3)"
)
_NEXT = (
    "SELECT json_group_array((SELECT min(next_trigger) FROM tasks WHERE kind = j.value AND next_trigger > ?2))"
    " FROM json_each(?1) AS j"
)

#: Tenants of a lane that share what a claim takes of it at once (FL19), and of fewer items than that: each of them
#: costs a step. Where they have less, it goes on with the next.
TENANTS, FEW_TENANTS = 16, 4

#: Items of one claim while somebody submits: they share the writer, and a submission waits for the claim beside it, two
#: milliseconds of it at 64 and seven at 256 on a busy machine. What is submitted and run at once is no slower for it.
BESIDE_ITEMS = 64
#: µs after a submission in which the next one is likely to come.
BESIDE = 50_000


class _Turn(NamedTuple):
    """Kinds of a lane whose turn it is: how many items may be taken of all together, and how many of each."""

    lane: int
    most: int
    each: int
    kinds: list[int]


class _Visit:
    """One claim in the making: what is left of each cell, of the total and of the bytes."""

    def __init__(self, demand: Demand, most: int) -> None:
        self.cells = dict(demand.cells)
        self.total = min(demand.total, most)
        self.room = demand.max_bytes
        self.rows: list[Row] = []
        self.taken: dict[int, tuple[int, int]] = {}  # kind → trigger and id of the last item taken

    def left(self) -> int:
        """How many more items may be taken. One is, however large it is."""
        return self.total - len(self.rows) if self.room > 0 or not self.rows else 0

    def take(self, cell: Cell, rows: Sequence[Row], most: int) -> int:
        """Takes what there is room for of a kind's rows, from the first on; returns how many."""
        rows = rows[: min(self.cells[cell], self.left(), most)]
        for index, row in enumerate(rows):
            self.room -= row[SIZE]
            if self.room < 0 and (index or self.rows):
                rows = rows[:index]
                break
        if rows:
            self.rows += rows
            self.taken[rows[-1][KIND]] = (rows[-1][TRIGGER], rows[-1][ID])
            self.cells[cell] -= len(rows)
        return len(rows)


def claim(
    connection: sqlite3.Connection,
    memory: Memory,
    demand: Demand,
    gates: ShutLanes,
    seconds: float,
    share: float,
    now: int,
    monotonic: int,
) -> Leased | float:
    """Claims what is due within the demand; else seconds until something may be, at the latest. `now` is µs by the wall
    clock."""
    look = end_leases(connection, memory, now, monotonic)
    until = monotonic + int(seconds * 1e6)
    kinds, heads = memory.kinds, memory.heads
    heads.at_gates(demand.closed)
    shut: dict[int, Callable[[int], bool]] = {}
    ready: list[ReadyLane] = []
    for lane in heads.lanes:
        limit = demand.cells.get(kinds.cells[lane], 0)
        if limit <= 0 or gates.shut(*kinds.lanes[lane]):
            continue
        closed = gates.shutter(kinds, lane)
        bound = heads.look(lane, now, closed)
        if bound <= now:
            shut[lane] = closed
            ready.append(ReadyLane(lane, kinds.cells[lane].priority, limit))
        else:
            look = min(look, bound)
    if not ready:
        heads.forget_idle()
        return max(0.0, (look - now) / 1e6)
    fresh = memory.just_submitted(connection)
    if fresh is not None and (rows := _all_fresh(memory, fresh, demand, ready, shut)):
        memory.turn += 1
        return _take(connection, memory, rows, now, seconds, until, [fresh.payloads[row[ID]] for row in rows])
    visit = _Visit(demand, BESIDE_ITEMS if 0 <= now - memory.stored < BESIDE else FLIGHT_ITEMS)
    while ready and visit.left():
        plan = [
            _Turn(each.lane, each.limit, _share(each.limit, len(turn)), turn)
            for each in turns(ready, visit.left(), share, memory.turn)
            if (turn := heads.take(each.lane, _tenants(each.limit), shut[each.lane]))
        ]
        for each_takes, group in groupby(plan, attrgetter("each")):
            _pick(connection, memory, visit, [*group], each_takes, now)
        # What some lanes did not have goes to those that have more; the lower priorities had their share.
        share = 0.0
        ready = [
            each._replace(limit=left)
            for each in ready
            if heads.look(each.lane, now, shut[each.lane]) <= now and (left := visit.cells[kinds.cells[each.lane]]) > 0
        ]
    if visit.rows:  # looks that find nothing take nobody's turn
        memory.turn += 1
    else:
        look = min([look, *(heads.look(lane, now, closed) for lane, closed in shut.items())])
        return max(0.0, (look - now) / 1e6)
    return _take(connection, memory, visit.rows, now, seconds, until)


def _tenants(items: int) -> int:
    return TENANTS if items >= TENANTS else min(FEW_TENANTS, items)


def _share(items: int, tenants: int) -> int:
    """Rounded so that sixteen do get something, and four are enough."""
    return items // tenants if items >= TENANTS else -(-items // tenants)


def _all_fresh(
    memory: Memory,
    fresh: Fresh,
    demand: Demand,
    ready: Sequence[ReadyLane],
    shut: Mapping[int, Callable[[int], bool]],
) -> list[Row]:
    """All that is due, when all of it was submitted just now and all of it may be taken: then it need not be looked
    for. Empty when that is not so."""
    rows: list[Row] = []
    taken: list[int] = []
    counts: Counter[Cell] = Counter()
    for each in sorted(ready, key=attrgetter("priority")):
        due = memory.heads.all_due(each.lane, len(fresh.payloads), shut[each.lane])
        if due is None or any(kind not in fresh.rows for kind in due):
            return []
        found = [row for kind in due for row in fresh.rows[kind]]
        if len(due) > 1:
            found.sort(key=_due_and_id)
        rows += found
        taken += due
        counts[memory.kinds.cells[each.lane]] += len(found)
    size = sum(row[SIZE] for row in rows)
    if len(rows) > min(demand.total, FLIGHT_ITEMS) or (size > demand.max_bytes and len(rows) > 1):
        return []
    if any(count > demand.cells[cell] for cell, count in counts.items()):
        return []
    for kind in taken:
        memory.heads.waits(kind, BLOCKED)
    return rows


def _pick(
    connection: sqlite3.Connection, memory: Memory, visit: _Visit, turn: Sequence[_Turn], each: int, now: int
) -> None:
    """Takes up to so many due items of each kind. Everything of it below its new bound was taken."""
    heads, found = memory.heads, dict[int, list[Row]]()
    if visit.left():
        starts = [(kind, *(visit.taken.get(kind) or (heads.bounds[kind], -1))) for lane in turn for kind in lane.kinds]
        (text,) = connection.execute(_PICK, (json_text(starts), now, each)).fetchone()
        for row in sorted(_decode(text), key=_due_and_id):
            found.setdefault(row[KIND], []).append(row)
    emptied: list[int] = []
    kept: list[int] = []
    looked = bool(visit.left())
    for lane in turn:
        cell, most = memory.kinds.cells[lane.lane], lane.most
        for kind in lane.kinds:
            rows = found.get(kind, [])
            took = visit.take(cell, rows, most)
            most -= took
            if took < len(rows) or not looked:
                if took:
                    heads.left(kind, rows[took][TRIGGER])
                else:
                    kept.append(kind)
            elif len(rows) < each:
                emptied.append(kind)
            else:
                heads.left(kind, rows[-1][TRIGGER])
    for kind in reversed(kept):
        heads.keep(kind)
    if emptied:
        (text,) = connection.execute(_NEXT, (json_text(emptied), now)).fetchone()
        for kind, trigger in zip(emptied, _decode(text), strict=True):
            heads.waits(kind, BLOCKED if trigger is None else trigger)


def _take(
    connection: sqlite3.Connection,
    memory: Memory,
    rows: list[Row],
    now: int,
    seconds: float,
    until: int,
    payloads: list[bytes] | None = None,
) -> Leased | float:
    """Writes the claim and reads the payloads that are not known. Expired items end here, without being handed out."""
    numbers = [row[ID] for row in rows]
    which, ids = one_or_many(numbers)
    fence = memory.fence = max([now, memory.fence + 1, *(row[FENCE] + 1 for row in rows)])
    connection.execute(f"UPDATE tasks SET state = 2, fence = ?, next_trigger = NULL WHERE id {which}", (fence, ids))
    grant(connection, memory, int(seconds * 1e6))
    memory.claim(connection, fence, until, numbers)
    for row in rows:
        memory.counts[State(row[STATE])] -= 1
    memory.counts[State.ENQUEUED] += len(rows)
    extras = _extras(connection, rows)
    expired = {number for number, extra in extras.items() if 0 < extra.expires_at <= now / 1e6}
    if expired:
        over = [Settle(id_text(number), fence, State.EXPIRED, reason=EXPIRED_WHY) for number in expired]
        end(connection, memory, fence, over, now)
        rows = [row for row in rows if row[ID] not in expired]
        if not rows:
            return 0.0
    if payloads is None:
        payloads = _payloads(connection, [row[ID] for row in rows])
    kinds = memory.kinds.kinds
    return Leased(
        fence=fence,
        lease=seconds,
        kinds=[kinds[row[KIND]] for row in rows],
        ids=[f"{row[ID]:016x}" for row in rows],
        payloads=payloads,
        attempts=[row[ATTEMPTS] + 1 for row in rows],
        extras={index: extras[row[ID]] for index, row in enumerate(rows) if row[ID] in extras} if extras else {},
        dues=[row[TRIGGER] / 1e6 for row in few(rows)],
    )


def _payloads(connection: sqlite3.Connection, numbers: list[int]) -> list[bytes]:
    # CROSS JOIN keeps the order of the ids; every live item has its entity.
    (found,) = connection.execute(
        "SELECT json_group_array(hex(e.payload)) FROM json_each(?) AS j CROSS JOIN entities AS e ON e.id = j.value",
        (json_text(numbers),),
    ).fetchone()
    return [*map(bytes.fromhex, _decode(found))]


def _extras(connection: sqlite3.Connection, rows: list[Row]) -> dict[int, Extra]:
    crashes = {row[ID]: row[CRASHES] for row in rows if row[FLAGS] & HAS_EXTRA or row[CRASHES]}
    if not crashes:
        return {}
    (text,) = connection.execute(
        f"SELECT json_group_array(json_array(id, key, headers, expires_at, progress)) FROM entities WHERE id IN {IDS}",
        (json_text([*crashes]),),
    ).fetchone()
    return {
        number: Extra(
            key=key,
            headers=headers_of(headers),
            crashes=crashes[number],
            expires_at=expires_at,
            alone=crashes[number] > 0,
            progress=progress,
        )
        for number, key, headers, expires_at, progress in _decode(text)
    }


def headers_of(text: str) -> Headers:
    """Headers as they are stored."""
    return tuple((name, value) for name, value in _decode(text)) if text else ()
