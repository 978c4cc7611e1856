"""Searches of a queue on PostgreSQL: one statement, so that no item moves from the waiting to the ended ones
meanwhile."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ....model.search import Search
from ....model.tenant_key import KeyRule, tenant_key
from ...postgres.arrays import numbers, texts
from ...postgres.run_statement import RunStatement
from ..ids import id_text
from ..queue import Page
from ..search_bounds import LOOK, IdSpan, keys_of, kinds_of, span
from .kinds import PostgresKinds
from .reports import status_of
from .rows import BLOCKED

_LIVE = (
    "SELECT id, state, kind, attempts, crashes, next_trigger, due, claim, 0::bigint AS ended, '' AS reason,"
    f" '' AS progress FROM S.tasks WHERE id >= %s AND id < %s{{keyed}} ORDER BY id DESC LIMIT {LOOK}"
)
_ENDED = (
    "SELECT id, state, kind, attempts, crashes, NULL::bigint, NULL::bigint, NULL::bigint, ended, reason, progress"
    f" FROM S.ended WHERE id >= %s AND id < %s ORDER BY id DESC LIMIT {LOOK}"
)
_FOUND = (
    "WITH looked AS ({looked} ORDER BY id DESC LIMIT " + str(LOOK) + "), fits AS (SELECT * FROM looked"
    " WHERE (%s OR kind = ANY (%s::int[])) AND (%s OR state = ANY (%s::smallint[])) ORDER BY id DESC LIMIT %s)"
    " SELECT b.lowest, b.rows, t.id, t.state, t.kind, t.attempts, t.crashes, CASE WHEN t.state BETWEEN 2 AND 4"
    f" THEN c.until WHEN t.next_trigger >= {BLOCKED} THEN coalesce(k.due, t.due) ELSE t.next_trigger END, t.ended,"
    " coalesce(e.reason, t.reason), coalesce(e.progress, t.progress)"
    " FROM (SELECT min(id) AS lowest, count(*) AS rows FROM looked) AS b LEFT JOIN fits AS t ON true"
    " LEFT JOIN S.entities AS e ON e.id = t.id LEFT JOIN S.keyed AS k ON k.id = t.id"
    " LEFT JOIN S.claims AS c ON c.number = t.claim ORDER BY t.id DESC"
)


async def find(rows: RunStatement, kinds: PostgresKinds, search: Search, rule: KeyRule = tenant_key) -> Page:
    """Returns a page, as `Queue.find` does. `rule`: the key of a tenant as it is kept."""
    wanted = span(search)
    await kinds.look()
    fitting = kinds_of(search, kinds.kinds)
    if fitting == []:
        return Page([])
    found, after = await _find(rows, search, wanted, fitting, keys_of(search, kinds.kinds, rule))
    if any(kind not in kinds.kinds for _, _, kind, *_ in found):
        await kinds.look()
    return Page([status_of(id_text(row[0]), kinds, row[1:]) for row in found], after)


async def _find(
    rows: RunStatement, search: Search, ids: IdSpan, kinds: Sequence[int] | None, keys: Sequence[str]
) -> tuple[list[Any], str]:
    """Rows of id, state, kind, attempts, crashes, due, ended, reason and progress, and the id at which the next page
    goes on."""
    if search.key:
        live = _LIVE.format(keyed=" AND id IN (SELECT id FROM S.keyed WHERE key = ANY (%s::text[]))")
        looked = f"SELECT * FROM ({live}) AS live"
        bounds: tuple[Any, ...] = (*ids, texts(keys))
    else:
        looked = f"SELECT * FROM (({_LIVE.format(keyed='')}) UNION ALL ({_ENDED})) AS all_of_them"
        bounds = (*ids, *ids)
    fits = (kinds is None, numbers(kinds or ()), not search.states, numbers(map(int, search.states)), search.limit)
    found = await rows(_FOUND.format(looked=looked), (*bounds, *fits), "a search")
    lowest, count = found[0][:2]
    statuses = [row[2:] for row in found if row[2] is not None]
    if len(statuses) == search.limit:
        return statuses, id_text(statuses[-1][0])
    return statuses, id_text(lowest) if count == LOOK else ""
