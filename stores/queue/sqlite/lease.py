"""Claims of the queue on SQLite: which lanes have something due, what is taken of each, and the claim's one write."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
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
from .floods import FEW, KEPT, Watch, drop_index, firsts, has_index
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
    LANE,
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

# The first items of many lanes or kinds in one step, as Row: where each begins is in ?1, ?2 is now, ?3 how many of each
# there are at most.
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
        self.taken: dict[int, tuple[int, int]] = {}  # kind → trigger and id of the last item taken in turn
        self.passed: dict[int, tuple[int, int]] = {}  # lane → the same of the last one taken by time

    def left(self) -> int:
        """How many more items may be taken. One is, however large it is."""
        return self.total - len(self.rows) if self.room > 0 or not self.rows else 0

    def take(self, cell: Cell, rows: Sequence[Row], most: int) -> int:
        """Takes what there is room for of a lane's or kind's rows, from the first on; returns how many."""
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
    kinds, heads, cell_of = memory.kinds, memory.heads, memory.kinds.cells
    heads.at_gates(demand.closed)
    shut: dict[int, frozenset[int]] = {}
    ready: list[ReadyLane] = []
    for lane in [*memory.earliest, *heads.lanes]:
        limit = demand.cells.get(cell_of[lane], 0)
        if limit <= 0 or gates.shut(*kinds.lanes[lane]):
            continue
        closed = gates.shut_kinds(kinds, lane)
        if (watch := memory.watches[lane]).asks(closed):
            _watch(connection, memory, watch, lane, closed, now)
        bound = _bound(memory, lane, closed, now)
        if bound <= now:
            shut[lane] = closed
            ready.append(ReadyLane(lane, cell_of[lane].priority, limit))
        else:
            look = min(look, bound)
    if not ready:
        _end_turns(connection, memory, now)
        return max(0.0, (look - now) / 1e6)
    fresh = memory.just_submitted(connection)
    if fresh is not None and (rows := _all_fresh(memory, fresh, demand, ready, shut)):
        memory.turn += 1
        return _take(connection, memory, rows, now, seconds, until, [fresh.payloads[row[ID]] for row in rows])
    visit = _Visit(demand, BESIDE_ITEMS if 0 <= now - memory.stored < BESIDE else FLIGHT_ITEMS)
    while ready and visit.left():
        plan = turns(ready, visit.left(), share, memory.turn)
        for (takes_turns, limit, closed), visits in groupby(
            plan, lambda each: (each.lane in heads.lanes, each.limit, shut[each.lane])
        ):
            lanes = [each.lane for each in visits]
            if takes_turns:
                _pick_turns(connection, memory, visit, lanes, limit, closed, now)
            else:
                _pick(connection, memory, visit, lanes, limit, closed, now)
        if not visit.left():
            break
        # What some lanes did not have goes to those that have more; the lower priorities had their share.
        share = 0.0
        ready = [
            each._replace(limit=left)
            for each in ready
            if _bound(memory, each.lane, shut[each.lane], now) <= now and (left := visit.cells[cell_of[each.lane]]) > 0
        ]
    if visit.rows:  # looks that find nothing take nobody's turn
        memory.turn += 1
    else:
        look = min([look, *(_bound(memory, lane, closed, now) for lane, closed in shut.items())])
        return max(0.0, (look - now) / 1e6)
    return _take(connection, memory, visit.rows, now, seconds, until)


def _bound(memory: Memory, lane: int, shut: frozenset[int], now: int) -> int:
    """A time before which nothing of a lane's open kinds is due."""
    if lane in memory.heads.lanes:
        return memory.heads.look(lane, now, shut.__contains__)
    return memory.bound(lane, shut)


def _watch(
    connection: sqlite3.Connection, memory: Memory, watch: Watch, lane: int, shut: frozenset[int], now: int
) -> None:
    """Lets the tenants of a lane take turns from now on if one's flood stands before others, and else not any more."""
    heads = memory.heads
    turning = lane in heads.lanes
    first = heads.first(lane) if turning else memory.earliest[lane]
    flood = watch.is_flood(connection, lane, first, shut, now)
    if not memory.index and has_index(connection):
        memory.index, memory.turned = True, now
    if not flood:
        if turning:
            memory.earliest[lane] = heads.leave(lane)
    elif not turning:
        heads.enter(lane, firsts(connection, [*watch.lasts], BLOCKED))
        del memory.earliest[lane]
        memory.passed.pop(lane, None)
    if turning or lane in heads.lanes:
        memory.turned = now


def _end_turns(connection: sqlite3.Connection, memory: Memory, now: int) -> None:
    """Nothing is due: nobody needs turns. Their index is given up some time after the last flood."""
    heads = memory.heads
    for lane in [lane for lane, turning in heads.lanes.items() if not turning.due and not turning.closed]:
        bound = heads.leave(lane)
        if bound < BLOCKED:
            memory.earliest[lane] = bound
        else:
            memory.watches.pop(lane, None)
        memory.turned = now
    waiting = memory.counts[State.NEW] + memory.counts[State.RETRIABLE_FAILURE]
    if memory.index and not heads.lanes and now - memory.turned > KEPT and waiting < FEW:
        drop_index(connection)
        memory.index = False


def _tenants(items: int) -> int:
    return TENANTS if items >= TENANTS else min(FEW_TENANTS, items)


def _share(items: int, tenants: int) -> int:
    """Rounded so that sixteen do get something, and four are enough."""
    return items // tenants if items >= TENANTS else -(-items // tenants)


def _all_fresh(
    memory: Memory, fresh: Fresh, demand: Demand, ready: Sequence[ReadyLane], shut: Mapping[int, frozenset[int]]
) -> list[Row]:
    """All that is due, when all of it was submitted just now and all of it may be taken: then it need not be looked
    for. Empty when that is not so."""
    if any(shut[each.lane] or each.lane not in fresh.rows for each in ready):
        return []
    rows: list[Row] = []
    counts: Counter[Cell] = Counter()
    for each in sorted(ready, key=attrgetter("priority")):
        rows += fresh.rows[each.lane]
        counts[memory.kinds.cells[each.lane]] += len(fresh.rows[each.lane])
    size = sum(row[SIZE] for row in rows)
    if len(rows) > min(demand.total, FLIGHT_ITEMS) or (size > demand.max_bytes and len(rows) > 1):
        return []
    if any(count > demand.cells[cell] for cell, count in counts.items()):
        return []
    for each in ready:
        memory.advance(each.lane, shut[each.lane], BLOCKED)
    return rows


def _pick(
    connection: sqlite3.Connection,
    memory: Memory,
    visit: _Visit,
    lanes: Sequence[int],
    limit: int,
    shut: frozenset[int],
    now: int,
) -> None:
    """Takes up to `limit` due items of each lane. Everything below a lane's new bound was taken."""
    if not visit.left():
        return
    starts = [(lane, *(visit.passed.get(lane) or (memory.bound(lane, shut), -1))) for lane in lanes]
    if shut:
        arguments = (json_text(starts), now, limit, json_text([*shut]))
        (text,) = connection.execute(_PICK_OPEN, arguments).fetchone()
    else:
        (text,) = connection.execute(_PICK_ALL, (json_text(starts), now, limit)).fetchone()
    found: dict[int, list[Row]] = {lane: [] for lane in lanes}
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


def _pick_turns(
    connection: sqlite3.Connection,
    memory: Memory,
    visit: _Visit,
    lanes: Sequence[int],
    limit: int,
    shut: frozenset[int],
    now: int,
) -> None:
    """Takes up to `limit` due items of each lane, of the kinds whose turn it is. Everything of a kind below its new
    bound was taken."""
    heads, found = memory.heads, dict[int, list[Row]]()
    plan = [
        _Turn(lane, limit, _share(limit, len(kinds)), kinds)
        for lane in lanes
        if (kinds := heads.take(lane, _tenants(limit), shut.__contains__))
    ]
    looked = bool(visit.left())
    for most_each, some in groupby(plan if looked else (), attrgetter("each")):
        starts = [(kind, *(visit.taken.get(kind) or (heads.bounds[kind], -1))) for turn in some for kind in turn.kinds]
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
                    heads.left(kind, rows[took][TRIGGER])
                else:
                    kept.append(kind)
            elif len(rows) < turn.each:
                emptied.append(kind)
            else:
                heads.left(kind, rows[-1][TRIGGER])
    for kind in reversed(kept):
        heads.keep(kind)
    if emptied:
        (text,) = connection.execute(_NEXT_OF_KIND, (json_text(emptied), now)).fetchone()
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
