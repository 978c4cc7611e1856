"""Claims of the queue on SQLite: which lanes have something due, what is taken of each, and the claim's one write."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from operator import attrgetter, itemgetter

import msgspec

from ....model.claim import Leased, Settle, State
from ....model.demand import Cell, Demand
from ....model.due_times import evenly_spaced
from ....model.outcome import EXPIRED_WHY
from ....model.workload import FLIGHT_ITEMS, Extra, Headers
from ...jobs.sqlite.look import bounds, pauses
from ..gates import ShutLanes
from ..ids import id_text
from ..turns import ReadyLane, turns
from .claims import end_leases
from .clocks import grant
from .memory import Fresh, Memory
from .picking import Visit, pick, pick_turns
from .rows import (
    ATTEMPTS,
    BLOCKED,
    CRASHES,
    FENCE,
    FLAGS,
    HAS_EXTRA,
    ID,
    IDS,
    JOB,
    KIND,
    PAUSED,
    SIZE,
    STATE,
    TRIGGER,
    TaskRow,
    json_text,
    one_or_many,
)
from .settle import end
from .turning import end_turns, see_to_turns

_decode = msgspec.json.Decoder().decode
_due_and_id = itemgetter(TRIGGER, ID)

#: Items of one claim while somebody submits: they share the writer, and a submission waits for the claim beside it, two
#: milliseconds of it at 64 and seven at 256 on a busy machine. What is submitted and run at once is no slower for it.
BESIDE_ITEMS = 64
#: µs after a submission in which the next one is likely to come.
BESIDE_MICROS = 50_000


def claim(
    connection: sqlite3.Connection,
    memory: Memory,
    demand: Demand,
    gates: ShutLanes,
    seconds: float,
    share: float,
    now: int,
    monotonic: int,
    processor: Callable[[], float],
    behind: int = 0,
) -> Leased | float:
    """Claims what is due within the demand; else seconds until something may be, at the latest. `now` is µs by the wall
    clock; `behind`: for so many of them renewals and settlements may have waited that come after this, so that no lease
    ends that was to end since."""
    look = end_leases(connection, memory, now, monotonic, behind)
    until = monotonic + int(seconds * 1e6)
    heads, cell_of = memory.heads, memory.kinds.cells
    heads.at_gates(demand.closed)
    ready, shut, bound = _ready(connection, memory, demand, gates, now)
    look = min(look, bound)
    if way := memory.way.made((each.priority for each in ready), now / 1e6, processor):
        ready = [each for each in ready if each.priority <= way.urgent]
        shut = {each.lane: shut[each.lane] for each in ready}
        look = min(look, now + int(way.rest * 1e6))
    if not ready:
        end_turns(connection, memory, now)
        return max(0.0, (look - now) / 1e6)
    fresh = memory.just_submitted(connection)
    if fresh is not None and (rows := _all_fresh(memory, fresh, demand, ready, shut)):
        memory.turn += 1
        return _take(connection, memory, rows, now, seconds, until, [fresh.payloads[row[ID]] for row in rows])
    visit = Visit(demand, BESIDE_ITEMS if 0 <= now - memory.submitted < BESIDE_MICROS else FLIGHT_ITEMS)
    while ready and visit.left():
        plan = turns(ready, visit.left(), share, memory.turn)
        for (takes_turns, limit, closed), visits in groupby(
            plan, lambda each: (each.lane in heads.lanes, each.limit, shut[each.lane])
        ):
            lanes = [each.lane for each in visits]
            if takes_turns:
                pick_turns(connection, memory, visit, lanes, limit, closed, now)
            else:
                pick(connection, memory, visit, lanes, limit, closed, now)
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


def _ready(
    connection: sqlite3.Connection, memory: Memory, demand: Demand, gates: ShutLanes, now: int
) -> tuple[list[ReadyLane], dict[int, frozenset[int]], int]:
    """Lanes that have something due, with their closed kinds, and a bound of what the other ones have."""
    cell_of = memory.kinds.cells
    shut: dict[int, frozenset[int]] = {}
    ready: list[ReadyLane] = []
    later = BLOCKED
    for lane in [*memory.earliest, *memory.heads.lanes]:
        limit = demand.cells.get(cell_of[lane], 0)
        if limit <= 0 or gates.shut(*memory.kinds.lanes[lane]):
            continue
        closed = gates.shut_kinds(memory.kinds, lane)
        if (watch := memory.watches[lane]).asks(closed):
            see_to_turns(connection, memory, watch, lane, closed, now)
        bound = _bound(memory, lane, closed, now)
        if bound <= now:
            shut[lane] = closed
            ready.append(ReadyLane(lane, cell_of[lane].priority, limit))
        else:
            later = min(later, bound)
    return ready, shut, later


def _bound(memory: Memory, lane: int, shut: frozenset[int], now: int) -> int:
    """A time before which nothing of a lane's open kinds is due."""
    if lane in memory.heads.lanes:
        return memory.heads.look(lane, now, shut.__contains__)
    return memory.bound(lane, shut)


def _all_fresh(
    memory: Memory, fresh: Fresh, demand: Demand, ready: Sequence[ReadyLane], shut: Mapping[int, frozenset[int]]
) -> list[TaskRow]:
    """All that is due, when all of it was submitted just now and all of it may be taken: then it need not be looked
    for. Empty when that is not so."""
    if any(shut[each.lane] or each.lane not in fresh.rows for each in ready):
        return []
    rows: list[TaskRow] = []
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


def _take(
    connection: sqlite3.Connection,
    memory: Memory,
    rows: list[TaskRow],
    now: int,
    seconds: float,
    until: int,
    payloads: list[bytes] | None = None,
) -> Leased | float:
    """Writes the claim and reads the payloads that are not known. Expired items end here, without being handed out, and
    those of paused jobs wait on."""
    if memory.jobs.paused and (waiting := _pause(connection, rows)):
        rows, payloads = [row for row in rows if row[ID] not in waiting], None
        if not rows:
            return 0.0
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
    jobs = [index for index, row in enumerate(rows) if row[FLAGS] & JOB] if memory.jobs.open else ()
    return Leased(
        fence=fence,
        lease=seconds,
        kinds=[kinds[row[KIND]] for row in rows],
        ids=[f"{row[ID]:016x}" for row in rows],
        payloads=payloads,
        attempts=[row[ATTEMPTS] + 1 for row in rows],
        extras={index: extras[row[ID]] for index, row in enumerate(rows) if row[ID] in extras} if extras else {},
        dues=[row[TRIGGER] / 1e6 for row in evenly_spaced(rows)],
        jobs=jobs,
        max_failures=_bounds(connection, rows, jobs) if jobs and memory.jobs.bounded else {},
    )


def _bounds(connection: sqlite3.Connection, rows: list[TaskRow], jobs: Sequence[int]) -> dict[int, int]:
    """Of items of jobs, by index, how often those may fail whose jobs bound it."""
    found = bounds(connection, [rows[index][ID] for index in jobs])
    return {index: most for index in jobs if (most := found.get(rows[index][ID]))}


def _pause(connection: sqlite3.Connection, rows: list[TaskRow]) -> set[int]:
    """Pauses items of paused jobs: they are not due until these are resumed."""
    items = [row[ID] for row in rows if row[FLAGS] & JOB]
    found = pauses(connection, items) if items else set()
    if found:
        connection.execute(f"UPDATE tasks SET next_trigger = ? WHERE id IN {IDS}", (PAUSED, json_text([*found])))
    return found


def _payloads(connection: sqlite3.Connection, numbers: list[int]) -> list[bytes]:
    # CROSS JOIN keeps the order of the ids; every live item has its entity.
    (found,) = connection.execute(
        "SELECT json_group_array(hex(e.payload)) FROM json_each(?) AS j CROSS JOIN entities AS e ON e.id = j.value",
        (json_text(numbers),),
    ).fetchone()
    return [*map(bytes.fromhex, _decode(found))]


def _extras(connection: sqlite3.Connection, rows: list[TaskRow]) -> dict[int, Extra]:
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
