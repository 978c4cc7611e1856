"""Reports of a queue on PostgreSQL, about itself and its items. Each is one statement, so that nothing changes
meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from ....model.claim import State
from ....model.tries import Try
from ....model.workload import Headers
from ...postgres.arrays import numbers
from ...postgres.run_statement import RunStatement
from ..ids import created_at, id_number, id_text
from ..kinds import Kinds
from ..queue import Ageing, Status, Tally
from .rows import BLOCKED, headers_of

#: States in the counts that stand for all items ever taken, and for all that were removed.
TAKEN, FORGOTTEN = 100, 101

_STATUS = (
    "SELECT t.id, t.state, t.kind, t.attempts, t.crashes, CASE WHEN t.state >= 2 THEN c.until"
    f" WHEN t.next_trigger >= {BLOCKED} THEN coalesce(k.due, t.due) ELSE t.next_trigger END, 0::bigint,"
    " e.reason, e.progress"
    " FROM S.tasks AS t LEFT JOIN S.entities AS e ON e.id = t.id LEFT JOIN S.keyed AS k ON k.id = t.id"
    " LEFT JOIN S.claims AS c ON c.number = t.claim WHERE t.id = ANY (%(ids)s::bigint[])"
    " UNION ALL SELECT id, state, kind, attempts, crashes, 0::bigint, ended, reason, progress FROM S.ended"
    " WHERE id = ANY (%(ids)s::bigint[])"
)
_TALLY = (
    "SELECT 'now', state, count(*) FROM S.tasks GROUP BY state"
    " UNION ALL SELECT 'now', state, count(*) FROM S.ended GROUP BY state"
    " UNION ALL SELECT 'ever', state, sum(items)::bigint FROM S.counts WHERE state >= 100 GROUP BY state"
)


async def statuses(
    rows: RunStatement, kinds: Kinds, learn: Callable[[], Awaitable[None]], ids: Sequence[str]
) -> list[Any]:
    """Returns a Status for each id, or None."""
    wanted = numbers(map(id_number, ids))
    found = {row[0]: row[1:] for row in await rows(_STATUS.replace("%(ids)s", "%s"), (wanted, wanted), "a status")}
    if any(kind not in kinds.kinds for _, kind, *_ in found.values()):
        await learn()
    return [None if (row := found.get(id_number(each))) is None else status_of(each, kinds, row) for each in ids]


def status_of(id: str, kinds: Kinds, row: Any) -> Status:
    """The status in a row."""
    state, kind, attempts, crashes, due, ended, reason, progress = row
    return Status(
        id=id,
        state=State(state),
        kind=kinds.kinds[kind],
        attempts=attempts,
        crashes=crashes,
        created_at=created_at(id_number(id)),
        due=(due or 0) / 1e6,
        ended_at=ended / 1e6,
        reason=reason or "",
        progress=progress or "",
    )


async def tries(rows: RunStatement, ids: Sequence[str]) -> dict[str, tuple[Try, ...]]:
    """The past attempts of those ids that have any."""
    wanted = numbers(map(id_number, ids))
    found: dict[int, Any] = dict(
        await rows("SELECT id, tries FROM S.tries WHERE id = ANY (%s::bigint[])", (wanted,), "attempts")
    )
    return {each: tuple(Try(*of) for of in found[id_number(each)]) for each in ids if id_number(each) in found}


async def headers(rows: RunStatement, ids: Sequence[str]) -> dict[str, Headers]:
    """The headers of those ids that are live and have any."""
    wanted = numbers(map(id_number, ids))
    told = await rows(
        "SELECT id, headers FROM S.entities WHERE headers <> '' AND id = ANY (%s::bigint[])", (wanted,), "headers"
    )
    return {id_text(number): found for number, text in told if (found := headers_of(text))}


async def counts(rows: RunStatement) -> dict[str, int]:
    """Items by the state's name, from the running sums."""
    found: dict[int, int] = dict(await rows("SELECT state, items FROM S.queue_counts()", (), "counts"))
    return {state.label: int(found.get(int(state), 0)) for state in State}


async def tally(rows: RunStatement) -> Tally:
    """Counts the rows one by one."""
    found = {(what, state): items for what, state, items in await rows(_TALLY, (), "a tally")}
    states = {state.label: found.get(("now", int(state)), 0) for state in State}
    return Tally(found.get(("ever", TAKEN), 0), found.get(("ever", FORGOTTEN), 0), states)


def ages(rows: Sequence[tuple[Any, ...]]) -> list[Ageing]:
    """Ages of waiting work, from rows of function, priority, µs and attempts."""
    return [Ageing(function, priority, waited / 1e6, attempts) for function, priority, waited, attempts in rows]
