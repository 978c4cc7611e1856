"""Queries on trees in PostgreSQL: their status, the results of their items, and whether their rows agree. Each is one
statement or a few, and changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ....model.job import JobResult, JobStatus, ResultPage, TreeStatus
from ....model.tenant_key import plain_key
from ...postgres.arrays import texts
from ...postgres.run_statement import RunStatement
from ...queue.ids import id_number, id_text
from ..rules.ending import state_of
from ..rules.item_state import ItemState

_STATES = {
    "": "",
    "running": " AND complete_at IS NULL AND ending = '' AND NOT paused",
    "paused": " AND complete_at IS NULL AND ending = '' AND paused",
    "ending": " AND complete_at IS NULL AND ending <> ''",
    "complete": " AND complete_at IS NOT NULL AND ending = ''",
    "failed": " AND complete_at IS NOT NULL AND ending = 'failed'",
    "cancelled": " AND complete_at IS NOT NULL AND ending = 'cancelled'",
}
# Trees with their jobs, a row for each job; counts that are not folded yet are included.
_SHOW = (
    "SELECT t.tree, t.id, t.type, t.key, t.policy, t.created_by, t.created_at, t.complete_at, t.why, t.ending,"
    " t.paused, CASE WHEN t.paused THEN t.paused_with ELSE '' END,"
    " j.name, l.function, (SELECT coalesce(array_agg(o.name ORDER BY o.job), '{}') FROM S.job_parents AS p"
    " JOIN S.jobs AS o ON o.job = p.parent WHERE p.job = j.job), j.final, j.sealed, j.pending + coalesce(d.pending, 0),"
    " j.succeeded + coalesce(d.succeeded, 0), j.failed + coalesce(d.failed, 0), j.complete_at, j.gather, j.each,"
    " l.collection, k.tenant"
    " FROM (SELECT * FROM S.job_trees WHERE NOT deleted{which}) AS t"
    " JOIN S.jobs AS j ON j.tree = t.tree JOIN S.lanes AS l ON l.lane = j.lane JOIN S.kinds AS k ON k.kind = j.kind"
    " LEFT JOIN (SELECT job, sum(pending)::bigint AS pending, sum(succeeded)::bigint AS succeeded,"
    " sum(failed)::bigint AS failed FROM S.job_deltas GROUP BY job) AS d ON d.job = j.job"
    " ORDER BY t.tree DESC, j.place"
)
_ONE = _SHOW.replace("{which}", " AND id = %s::text")
_OWN = (
    "SELECT t.id, j.name FROM S.job_items AS i JOIN S.jobs AS j ON j.job = i.job"
    " JOIN S.job_trees AS t ON t.tree = j.tree WHERE i.item = %s::bigint"
)
# As many results as fit into some bytes, at least one; and how many there are, up to the limit. No more are read.
_RESULTS = (
    "SELECT c.place, c.name, c.item, c.state, c.result, c.reason, c.there FROM (SELECT f.*, count(*) OVER () AS there,"
    " row_number() OVER w AS nth, sum(octet_length(f.result)) OVER w AS upto FROM ("
    "SELECT j.place, j.name, i.item, i.state, coalesce(r.result, '') AS result, i.reason FROM S.jobs AS j"
    f" CROSS JOIN LATERAL (SELECT * FROM S.job_items AS i WHERE i.job = j.job AND i.state > {ItemState.PENDING}"
    " AND i.item > CASE WHEN j.place = %(place)s::int THEN %(item)s::bigint ELSE -1 END ORDER BY i.job, i.item"
    " LIMIT %(limit)s::int) AS i LEFT JOIN S.job_results AS r ON r.item = i.item"
    " WHERE j.tree = %(tree)s::bigint AND j.final AND j.place >= %(place)s::int ORDER BY j.place, i.item"
    " LIMIT %(limit)s::int) AS f WINDOW w AS (ORDER BY f.place, f.item)) AS c"
    " WHERE c.nth = 1 OR c.upto <= %(bytes)s::bigint ORDER BY c.place, c.item"
)
# The same for the parent jobs of a job.
_GATHERED = _RESULTS.replace(
    "j.tree = %(tree)s::bigint AND j.final", "j.job IN (SELECT parent FROM S.job_parents WHERE job = %(tree)s::bigint)"
)
# Jobs of a tree that gather after a job with failed items (rules/retrying.py), as in `job_retry`.
_ANEW = (
    "WITH RECURSIVE failed AS (SELECT j.job FROM S.jobs AS j JOIN S.job_trees AS t ON t.tree = j.tree"
    " WHERE t.id = %s::text AND j.failed > 0), behind (job) AS (SELECT p.job FROM failed AS f"
    " JOIN S.job_parents AS p ON p.parent = f.job UNION SELECT p.job FROM behind AS b JOIN S.job_parents AS p"
    " ON p.parent = b.job) SELECT j.name FROM behind AS b JOIN S.jobs AS j ON j.job = b.job WHERE j.gather"
    " ORDER BY j.place"
)
#: Most results of one read.
READ = 200


async def show(read: RunStatement, tree: str, item: str = "") -> TreeStatus | None:
    """Returns one tree, by its id or by an item's workload."""
    own = await read(_OWN, (id_number(item),), "a look at a job") if item else []
    found = _statuses(await read(_ONE, (own[0][0] if own else tree,), "a look at a job"))
    if not found or (item and not own):
        return None
    return replace(found[0], job_of_item=own[0][1]) if own else found[0]


async def still_open(read: RunStatement, trees: Sequence[str]) -> list[str]:
    """Returns those of these trees that are known and not over."""
    known = "SELECT id FROM S.job_trees WHERE id = ANY (%s::text[]) AND complete_at IS NULL AND NOT deleted"
    return [id for (id,) in await read(known, (texts(trees),), "a look at jobs")]


async def listing(read: RunStatement, state: str, after: str, limit: int) -> list[TreeStatus]:
    """Returns trees, the newest first."""
    which, arguments = _STATES[state], []
    if after:
        which += " AND tree < coalesce((SELECT tree FROM S.job_trees WHERE id = %s::text), 0)"
        arguments = [after]
    statement = _SHOW.replace("{which}", f"{which} ORDER BY tree DESC LIMIT %s::int")
    return _statuses(await read(statement, (*arguments, limit), "a list of jobs"))


def _statuses(rows: Sequence[tuple[Any, ...]]) -> list[TreeStatus]:
    found: dict[int, TreeStatus] = {}
    for row in rows:
        tree, id, type_, key, policy, created_by, created_at, complete_at, why, ending, paused, with_right = row[:12]
        name, function, parents, final, sealed, pending, succeeded, failed, job_complete_at, *rest = row[12:]
        status = found.get(tree)
        if status is None:
            status = found[tree] = TreeStatus(
                id,
                type_,
                plain_key(key),
                state_of(ending, paused, complete_at is not None),
                policy,
                created_by,
                created_at / 1e6,
                (complete_at or 0) / 1e6,
                why,
                paused_with=with_right,
            )
        over = (job_complete_at or 0) / 1e6
        status.jobs.append(JobStatus(name, function, parents, final, sealed, pending, succeeded, failed, over, *rest))
    return [*found.values()]


async def results(read: RunStatement, tree: str, after: str, limit: int, max_bytes: int) -> ResultPage | None:
    """Returns results of items of final jobs after `after` (a job's place and an item); None: the tree is not known."""
    known = await read("SELECT tree FROM S.job_trees WHERE id = %s::text AND NOT deleted", (tree,), "a look at a job")
    if not known:
        return None
    return await _page(read, _RESULTS, known[0][0], after, limit, max_bytes)


async def gathered(read: RunStatement, job: int, after: str, limit: int, max_bytes: int) -> ResultPage:
    """Returns results of items of the parents of a job that gathers, like `results`."""
    return await _page(read, _GATHERED, job, after, limit, max_bytes)


async def anew(read: RunStatement, tree: str) -> list[str]:
    """The jobs that, in another try of a tree that is over, gather only the items that are tried again."""
    return [name for (name,) in await read(_ANEW, (tree,), "a look at a job")]


async def _page(read: RunStatement, template: str, of: int, after: str, limit: int, max_bytes: int) -> ResultPage:
    place, _, item = after.partition(".")
    behind = (int(place or 0), id_number(item) if item else -1)
    found: list[JobResult] = []
    last = ""
    while True:
        some = min(READ, limit - len(found))
        values = {"place": behind[0], "item": behind[1], "limit": some, "tree": of, "bytes": max_bytes}
        statement, arguments = _positional(template, values)
        rows = await read(statement, arguments, "results of a job")
        for place_, job, number, state, result, reason, _ in rows:
            max_bytes -= len(result)
            if max_bytes < 0 and found:
                return ResultPage(found, last)
            found.append(JobResult(id_text(number), job, state == ItemState.SUCCEEDED, bytes(result), reason))
            behind = (place_, number)
            last = f"{place_}.{id_text(number)}"
        there = rows[0][-1] if rows else 0
        if len(rows) == there < some:
            return ResultPage(found)
        if len(rows) < there or len(found) >= limit:
            return ResultPage(found, last)


def _positional(statement: str, values: dict[str, Any]) -> tuple[str, list[Any]]:
    """A statement with its named values turned into positional ones."""
    arguments = []
    parts = statement.split("%(")
    text = parts[0]
    for part in parts[1:]:
        name, _, rest = part.partition(")s")
        arguments.append(values[name])
        text += "%s" + rest
    return text, arguments


#: Contradictions in the rows of one tree, each with a query that counts them.
_AUDITS = {
    "jobs count other items than they have": (
        "SELECT count(*) FROM S.jobs AS j, LATERAL (SELECT coalesce(sum(d.pending), 0) AS p,"
        " coalesce(sum(d.succeeded), 0) AS s, coalesce(sum(d.failed), 0) AS f FROM S.job_deltas AS d"
        " WHERE d.job = j.job) AS d WHERE j.tree = %s AND (j.pending + d.p, j.succeeded + d.s, j.failed + d.f) <> ("
        f" (SELECT count(*) FROM S.job_items WHERE job = j.job AND state = {ItemState.PENDING})"
        "  + (SELECT count(*) FROM S.job_expansions WHERE job = j.job),"
        f" (SELECT count(*) FROM S.job_items WHERE job = j.job AND state = {ItemState.SUCCEEDED}),"
        f" (SELECT count(*) FROM S.job_items WHERE job = j.job AND state = {ItemState.FAILED}))"
    ),
    "items that succeeded have no item in a job that they feed": (
        "SELECT count(*) FROM S.jobs AS j JOIN S.job_parents AS p ON p.parent = j.job JOIN S.jobs AS c ON c.job = p.job"
        " JOIN S.job_items AS i ON i.job = j.job JOIN S.job_trees AS t ON t.tree = j.tree WHERE j.tree = %s"
        f" AND i.state = {ItemState.SUCCEEDED} AND NOT c.gather AND NOT c.each AND t.ending = ''"
        " AND NOT EXISTS (SELECT 1 FROM S.job_items AS d WHERE d.origin = i.item AND d.job = c.job)"
    ),
    "items that pend have no live workload": (
        "SELECT count(*) FROM S.jobs AS j JOIN S.job_items AS i ON i.job = j.job"
        f" LEFT JOIN S.tasks AS t ON t.id = i.item WHERE j.tree = %s AND i.state = {ItemState.PENDING}"
        " AND (t.id IS NULL OR t.flags & 32 = 0)"
    ),
    "items that ended have a live workload": (
        "SELECT count(*) FROM S.jobs AS j JOIN S.job_items AS i ON i.job = j.job JOIN S.tasks AS t ON t.id = i.item"
        f" WHERE j.tree = %s AND i.state > {ItemState.PENDING}"
    ),
    "results that are to be kept are not": (
        "SELECT count(*) FROM S.jobs AS j JOIN S.job_items AS i ON i.job = j.job WHERE j.tree = %s AND j.keeps"
        f" AND i.state = {ItemState.SUCCEEDED} AND NOT EXISTS (SELECT 1 FROM S.job_results WHERE item = i.item)"
    ),
    "jobs are complete though a parent is not": (
        "SELECT count(*) FROM S.jobs AS j JOIN S.job_parents AS p ON p.job = j.job JOIN S.jobs AS o ON o.job = p.parent"
        " WHERE j.tree = %s AND j.complete_at IS NOT NULL AND o.complete_at IS NULL"
    ),
    "jobs have nothing left to do, and are not marked": (
        "SELECT count(*) FROM S.jobs AS j WHERE j.tree = %s AND j.sealed AND j.pending = 0 AND j.complete_at IS NULL"
        " AND NOT j.due AND NOT EXISTS (SELECT 1 FROM S.job_deltas AS d WHERE d.job = j.job)"
        " AND NOT EXISTS (SELECT 1 FROM S.job_parents AS p JOIN S.jobs AS o ON o.job = p.parent WHERE p.job = j.job"
        " AND o.complete_at IS NULL)"
    ),
    "it is not complete though all of its jobs are": (
        "SELECT count(*) FROM S.job_trees AS t WHERE t.tree = %s AND (t.complete_at IS NULL)"
        " <> EXISTS (SELECT 1 FROM S.jobs AS j WHERE j.tree = t.tree AND j.complete_at IS NULL)"
    ),
}
#: All of these queries in one statement, so that nothing changes meanwhile.
_AUDIT = " UNION ALL ".join(f"SELECT {n}, ({question})" for n, question in enumerate(_AUDITS.values()))


async def audit(read: RunStatement, tree: str) -> list[str] | None:
    """Returns contradictions between a tree's rows; None: the tree is not known."""
    known = await read("SELECT tree FROM S.job_trees WHERE id = %s::text", (tree,), "a look at a job")
    if not known:
        return None
    found = await read(_AUDIT, [known[0][0]] * len(_AUDITS), "an audit of a job")
    whats = [*_AUDITS]
    return [f"{count} {whats[place]}" for place, count in found if count]
