"""Claims of the queue on SQLite: the lanes that have due items, the items taken of each, and the claim's one write."""

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
from ...jobs.sqlite.queries import bounds, pauses
from ..gates import ShutLanes
from ..ids import id_text
from ..turns import ReadyLane, turns
from .clocks import grant
from .leases import end_leases
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
from .turn_switch import end_turns, see_to_turns

_decode = msgspec.json.Decoder().decode
_due_and_id = itemgetter(TRIGGER, ID)

#: Most items of a claim while somebody submits: both share the writer, and a submission waits for the claim before it,
#: two milliseconds at 64 items and seven at 256 on a busy machine. Items that run at once are no slower for it.
BESIDE_ITEMS = 64
#: µs after a submission within which the next one is likely to come.
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
    """Claims due items within the demand; if there are none, returns the seconds until some may be due, at the latest.
    `now` is µs by the wall clock. `behind`: µs for which renewals and settlements may have waited that come after this
    call; a lease that ended within that time is not ended."""
    look = end_leases(connection, memory, now, monotonic, behind)
    until = monotonic + int(seconds * 1e6)
    tenants, cell_of = memory.tenant_turns, memory.kinds.cells
    tenants.at_gates(demand.closed)
    ready, shut, bound = _ready(connection, memory, demand, gates, now)
    look = min(look, bound)
    if pause := memory.yielding.pause((each.priority for each in ready), now / 1e6, processor):
        ready = [each for each in ready if each.priority <= pause.urgent]
        shut = {each.lane: shut[each.lane] for each in ready}
        look = min(look, now + int(pause.seconds * 1e6))
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
            plan, lambda each: (each.lane in tenants.lanes, each.limit, shut[each.lane])
        ):
            lanes = [each.lane for each in visits]
            if takes_turns:
                pick_turns(connection, memory, visit, lanes, limit, closed, now)
            else:
                pick(connection, memory, visit, lanes, limit, closed, now)
        if not visit.left():
            break
        # Lanes that have more items get the room that others left; the lower priorities had their share.
        share = 0.0
        ready = [
            each._replace(limit=left)
            for each in ready
            if _bound(memory, each.lane, shut[each.lane], now) <= now and (left := visit.cells[cell_of[each.lane]]) > 0
        ]
    if visit.rows:  # looks that find nothing use up no turn
        memory.turn += 1
    else:
        look = min([look, *(_bound(memory, lane, closed, now) for lane, closed in shut.items())])
        return max(0.0, (look - now) / 1e6)
    return _take(connection, memory, visit.rows, now, seconds, until)


def _ready(
    connection: sqlite3.Connection, memory: Memory, demand: Demand, gates: ShutLanes, now: int
) -> tuple[list[ReadyLane], dict[int, frozenset[int]], int]:
    """Returns the lanes that have due items, their closed kinds, and a time before which the other lanes have none."""
    cell_of = memory.kinds.cells
    shut: dict[int, frozenset[int]] = {}
    ready: list[ReadyLane] = []
    later = BLOCKED
    for lane in [*memory.earliest, *memory.tenant_turns.lanes]:
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
    """A time before which no item of a lane's open kinds is due."""
    if lane in memory.tenant_turns.lanes:
        return memory.tenant_turns.look(lane, now, shut.__contains__)
    return memory.bound(lane, shut)


def _all_fresh(
    memory: Memory, fresh: Fresh, demand: Demand, ready: Sequence[ReadyLane], shut: Mapping[int, frozenset[int]]
) -> list[TaskRow]:
    """Returns all due items without a look, if all were submitted just now and all may be taken; empty if not."""
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
    """Writes the claim, and reads the payloads that are not known. Expired items end here without being handed out, and
    items of paused jobs go on waiting."""
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
    """The most failures that the jobs of these items allow, by index; only items of jobs that have such a bound."""
    found = bounds(connection, [rows[index][ID] for index in jobs])
    return {index: most for index in jobs if (most := found.get(rows[index][ID]))}


def _pause(connection: sqlite3.Connection, rows: list[TaskRow]) -> set[int]:
    """Takes items of paused jobs out: they are not due until their jobs are resumed."""
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
    """Headers, from their text in the table."""
    return tuple((name, value) for name, value in _decode(text)) if text else ()
