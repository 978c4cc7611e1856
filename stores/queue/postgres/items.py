"""Single items of the queue on PostgreSQL: their content, and changes of due time or priority.

A change is one statement. It takes the locks of the key and of the row, in the schema's order, before it decides, so it
does not apply to a row that is claimed meanwhile.
"""

from __future__ import annotations

from ....model.errors import Unavailable
from ....model.one_item import BEHIND, CHANGED, ENDED, EXPIRES, OUT, UNKNOWN
from ...postgres.run_statement import RunStatement
from ..ids import id_number, id_text
from ..items import NOW, ItemContent, Reschedule
from ..lifecycle import LEASED, TERMINAL
from .kinds import PostgresKinds
from .reports import statuses
from .rows import BLOCKED, headers_of

#: Most looks at an item that comes back and is claimed again between two looks.
LOOKS = 5

# Parameters: id, time, due (µs; 0: now; NULL: unchanged), lane, kind (NULL: unchanged). No row: the item does not wait.
_RESCHEDULE = f"""
WITH given AS MATERIALIZED (SELECT %s::bigint AS id, S.now_micros(%s::bigint) AS now, %s::bigint AS due,
    %s::int AS lane, %s::int AS kind),
locked AS MATERIALIZED (SELECT g.id FROM given AS g CROSS JOIN LATERAL S.lock_keys_of(ARRAY[g.id]) AS keyed),
waiting AS MATERIALIZED (SELECT t.id, t.next_trigger, t.due, t.lane, t.kind FROM locked AS l
    JOIN S.tasks AS t ON t.id = l.id WHERE t.state < 2 FOR UPDATE OF t),
keys AS MATERIALIZED (SELECT k.id, k.due FROM waiting AS w JOIN S.keyed AS k ON k.id = w.id FOR UPDATE OF k),
found AS MATERIALIZED (SELECT w.id, w.next_trigger = {BLOCKED} AS behind, e.expires_at, g.now, g.due AS wanted,
    CASE WHEN w.next_trigger = {BLOCKED} THEN k.due ELSE w.next_trigger END AS before,
    coalesce(g.lane, w.lane) AS lane, coalesce(g.kind, w.kind) AS kind
    FROM given AS g JOIN waiting AS w ON w.id = g.id LEFT JOIN keys AS k ON k.id = w.id
    LEFT JOIN S.entities AS e ON e.id = w.id),
dated AS MATERIALIZED (SELECT id, behind, lane, kind, expires_at,
    CASE WHEN wanted IS NULL THEN before WHEN wanted = 0 THEN least(before, now) ELSE wanted END AS due FROM found),
fits AS MATERIALIZED (SELECT *, NOT (expires_at > 0 AND expires_at <= due / 1e6) AS may FROM dated),
moved AS (UPDATE S.tasks AS t SET lane = f.lane, kind = f.kind,
    next_trigger = CASE WHEN f.behind THEN t.next_trigger ELSE f.due END,
    due = CASE WHEN f.behind THEN t.due ELSE f.due END
    FROM fits AS f WHERE t.id = f.id AND f.may),
delayed AS (UPDATE S.keyed AS k SET due = f.due FROM fits AS f WHERE k.id = f.id AND f.may)
SELECT may, behind FROM fits
"""
_PEEK = (
    "SELECT substring(e.payload FROM 1 FOR %s::int), octet_length(e.payload), e.key, e.headers, e.expires_at,"
    " (SELECT h.id FROM S.keyed AS k JOIN S.keyed AS h ON h.key = k.key AND h.head WHERE k.id = t.id AND h.id <> t.id)"
    " FROM S.tasks AS t JOIN S.entities AS e ON e.id = t.id WHERE t.id = %s::bigint"
)


async def rescheduled(
    rows: RunStatement, read: RunStatement, kinds: PostgresKinds, at: int | None, change: Reschedule
) -> str:
    """Changes an item that waits. Answers as `QueueItems.reschedule` does."""
    for _ in range(LOOKS):
        [status] = await statuses(read, kinds, kinds.look, [change.id])
        if status is None:
            return UNKNOWN
        if status.state in LEASED or status.state in TERMINAL:
            return OUT if status.state in LEASED else ENDED
        lane, kind = None, None
        if change.priority is not None:
            wanted = status.kind._replace(priority=change.priority)
            await kinds.add([wanted])
            kind = kinds.numbers[wanted]
            lane = kinds.lane_of[kind]
        due = None if change.due is None else 0 if change.due == NOW else int(change.due * 1e6)
        found = await rows(_RESCHEDULE, (id_number(change.id), at, due, lane, kind), "a change of a workload")
        for may, behind in found:
            return (BEHIND if behind else CHANGED) if may else EXPIRES
    raise Unavailable(f"workload {change.id} is claimed and comes back all the time; nothing was changed: try again")


async def peek(read: RunStatement, id: str, max_bytes: int) -> ItemContent | None:
    """Returns the content of a live item."""
    rows = await read(_PEEK, (max_bytes, id_number(id)), "a look at a workload")
    for payload, size, key, headers, expires_at, head in rows:
        behind = "" if head is None else id_text(head)
        return ItemContent(bytes(payload), size, key, headers_of(headers), expires_at, behind)
    return None
