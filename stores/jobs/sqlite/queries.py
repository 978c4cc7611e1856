"""Queries on trees in SQLite: their status, the results of their items, and whether their rows agree. They change
nothing."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from ....model.job import JobResult, JobStatus, ResultPage, TreeStatus
from ....model.tenant_key import plain_key
from ...queue.ids import id_number, id_text
from ...queue.sqlite.rows import IDS, JOB, json_text
from ..rules.ending import state_of
from ..rules.item_state import ItemState

_TREES = (
    "SELECT tree, id, type, key, policy, created_by, created_at, complete_at, why, ending, paused, CASE paused"
    " WHEN 1 THEN coalesce((SELECT p.right FROM job_pauses AS p WHERE p.tree = job_trees.tree), '') ELSE '' END"
    " FROM job_trees WHERE deleted = 0"
)
_STATES = {
    "": "",
    "running": " AND complete_at IS NULL AND ending = '' AND paused = 0",
    "paused": " AND complete_at IS NULL AND ending = '' AND paused = 1",
    "ending": " AND complete_at IS NULL AND ending <> ''",
    "complete": " AND complete_at IS NOT NULL AND ending = ''",
    "failed": " AND complete_at IS NOT NULL AND ending = 'failed'",
    "cancelled": " AND complete_at IS NOT NULL AND ending = 'cancelled'",
}
# A room, by the tenants of its trees, which are those of their first jobs.
_OF_TREES = (
    "SELECT k.tenant, sum(h.n) FROM ({}) AS h JOIN jobs AS j ON j.tree = h.tree AND j.place = 0"
    " JOIN kinds AS k ON k.kind = j.kind GROUP BY 1"
)
_HELD = {
    "open": _OF_TREES.format("SELECT tree, 1 AS n FROM job_trees WHERE complete_at IS NULL"),
    "kept": _OF_TREES.format(
        "SELECT o.tree, sum(b.size) AS n FROM (SELECT item, length(result) AS size FROM job_results"
        " UNION ALL SELECT item, length(payload) FROM job_payloads) AS b JOIN job_items AS i ON i.item = b.item"
        " JOIN jobs AS o ON o.job = i.job GROUP BY 1"
    ),
}


def show(connection: sqlite3.Connection, tree: str, item: str = "") -> TreeStatus | None:
    """Returns one tree, by its id or by an item's workload."""
    if not item:
        row = connection.execute(f"{_TREES} AND id = ?", (tree,)).fetchone()
        return None if row is None else _status(connection, row)
    own = connection.execute(
        "SELECT j.tree, j.name FROM job_items AS i JOIN jobs AS j ON j.job = i.job WHERE i.item = ?", (id_number(item),)
    ).fetchone()
    row = None if own is None else connection.execute(f"{_TREES} AND tree = ?", (own[0],)).fetchone()
    return None if row is None else replace(_status(connection, row), job_of_item=own[1])


def still_open(connection: sqlite3.Connection, trees: Sequence[str]) -> list[str]:
    """Returns those of these trees that are known and not over."""
    known = "SELECT id FROM job_trees WHERE id IN (SELECT value FROM json_each(?)) AND complete_at IS NULL"
    return [id for (id,) in connection.execute(f"{known} AND deleted = 0", (json_text(trees),))]


def kept(connection: sqlite3.Connection) -> int:
    """Returns the bytes that trees keep."""
    return int(connection.execute("SELECT bytes FROM job_kept").fetchone()[0])


def held(connection: sqlite3.Connection, what: str) -> dict[str, int]:
    """Returns the part of each tenant of a room: open trees, or bytes that are kept."""
    return dict(connection.execute(_HELD[what]).fetchall())


def listing(connection: sqlite3.Connection, state: str, after: str, limit: int) -> list[TreeStatus]:
    """Returns trees, the newest first."""
    behind, arguments = "", []
    if after:
        behind, arguments = " AND tree < coalesce((SELECT tree FROM job_trees WHERE id = ?), 0)", [after]
    rows = connection.execute(
        f"{_TREES}{_STATES[state]}{behind} ORDER BY tree DESC LIMIT ?", (*arguments, limit)
    ).fetchall()
    return [_status(connection, row) for row in rows]


def _status(connection: sqlite3.Connection, row: Any) -> TreeStatus:
    tree, id, type_, key, policy, created_by, created_at, complete_at, why, ending, paused, with_right = row
    return TreeStatus(
        id,
        type_,
        plain_key(key),
        state_of(ending, bool(paused), complete_at is not None),
        policy,
        created_by,
        created_at / 1e6,
        (complete_at or 0) / 1e6,
        why,
        _jobs(connection, tree),
        paused_with=with_right,
    )


def _jobs(connection: sqlite3.Connection, tree: int) -> list[JobStatus]:
    rows = connection.execute(
        "SELECT j.name, l.function, (SELECT json_group_array(o.name) FROM job_parents AS p JOIN jobs AS o"
        " ON o.job = p.parent WHERE p.job = j.job), j.final, j.sealed, j.pending, j.succeeded, j.failed, j.complete_at,"
        "  j.gather, j.each, l.collection, k.tenant FROM jobs AS j JOIN kinds AS k ON k.kind = j.kind"
        " JOIN lanes AS l ON l.lane = k.lane"
        " WHERE j.tree = ? ORDER BY j.place",
        (tree,),
    ).fetchall()
    return [
        JobStatus(
            name,
            function,
            json.loads(parents),
            bool(final),
            bool(sealed),
            pending,
            succeeded,
            failed,
            (complete_at or 0) / 1e6,
            bool(gather),
            bool(each),
            *rest,
        )
        for name, function, parents, final, sealed, pending, succeeded, failed, complete_at, gather, each, *rest in rows
    ]


def results(connection: sqlite3.Connection, tree: str, after: str, limit: int, max_bytes: int) -> ResultPage | None:
    """Returns results of items of final jobs after `after`; None: the tree is not known."""
    row = connection.execute("SELECT tree FROM job_trees WHERE id = ? AND deleted = 0", (tree,)).fetchone()
    if row is None:
        return None
    jobs = connection.execute(
        "SELECT place, job, name FROM jobs WHERE tree = ? AND final = 1 ORDER BY place", row
    ).fetchall()
    return page(connection, [FinishedJob(*each) for each in jobs], after, limit, max_bytes)


class FinishedJob(NamedTuple):
    """A job whose results are read: its place in its tree, its number and its name."""

    place: int
    job: int
    name: str


def page(
    connection: sqlite3.Connection, jobs: Sequence[FinishedJob], after: str, limit: int, max_bytes: int
) -> ResultPage:
    """Returns results of items of some jobs of a tree after `after` (a job's place and an item)."""
    place, _, item = after.partition(".")
    begin, behind = int(place or 0), id_number(item) if item else -1
    found: list[JobResult] = []
    last = ""
    for place_, job, name in jobs:
        if place_ < begin:
            continue
        rows = connection.execute(
            "SELECT i.item, i.state, coalesce(r.result, x''), i.reason FROM job_items AS i"
            " LEFT JOIN job_results AS r ON r.item = i.item WHERE i.job = ? AND i.item > ?"
            f" AND i.state > {ItemState.PENDING} ORDER BY i.item LIMIT ?",
            (job, behind if place_ == begin else -1, limit - len(found)),
        )
        for number, state, result, reason in rows:
            max_bytes -= len(result)
            if max_bytes < 0 and found:
                return ResultPage(found, last)
            found.append(JobResult(id_text(number), name, state == ItemState.SUCCEEDED, bytes(result), reason))
            last = f"{place_}.{id_text(number)}"
            if len(found) >= limit:
                return ResultPage(found, last)
    return ResultPage(found)


#: Contradictions in the rows of one tree (?1), each with a query that counts them.
_AUDITS = {
    "jobs count other items than they have": (
        "SELECT count(*) FROM jobs AS j WHERE j.tree = ?1 AND (j.pending, j.succeeded, j.failed) <> ("
        f" (SELECT count(*) FROM job_items WHERE job = j.job AND state = {ItemState.PENDING})"
        "  + (SELECT count(*) FROM job_expansions WHERE job = j.job),"
        f" (SELECT count(*) FROM job_items WHERE job = j.job AND state = {ItemState.SUCCEEDED}),"
        f" (SELECT count(*) FROM job_items WHERE job = j.job AND state = {ItemState.FAILED}))"
    ),
    "items that succeeded have no item in a job that they feed": (
        "SELECT count(*) FROM jobs AS j JOIN job_parents AS p ON p.parent = j.job JOIN jobs AS c ON c.job = p.job"
        " JOIN job_items AS i ON i.job = j.job JOIN job_trees AS t ON t.tree = j.tree"
        f" WHERE j.tree = ?1 AND i.state = {ItemState.SUCCEEDED} AND c.gather = 0 AND c.each = 0 AND t.ending = ''"
        " AND NOT EXISTS (SELECT 1 FROM job_items AS d WHERE d.origin = i.item AND d.job = c.job)"
    ),
    "items that pend have no live workload": (
        "SELECT count(*) FROM jobs AS j JOIN job_items AS i ON i.job = j.job LEFT JOIN tasks AS t ON t.id = i.item"
        f" WHERE j.tree = ?1 AND i.state = {ItemState.PENDING}"
        " AND (t.id IS NULL OR t.state >= 10 OR (t.flags & 16) = 0)"
    ),
    "items that ended have a live workload": (
        "SELECT count(*) FROM jobs AS j JOIN job_items AS i ON i.job = j.job JOIN tasks AS t ON t.id = i.item"
        f" WHERE j.tree = ?1 AND i.state > {ItemState.PENDING} AND t.state < 10"
    ),
    "results that are to be kept are not": (
        "SELECT count(*) FROM jobs AS j JOIN job_items AS i ON i.job = j.job WHERE j.tree = ?1 AND (j.final = 1"
        "  OR EXISTS (SELECT 1 FROM job_parents AS p JOIN jobs AS c ON c.job = p.job WHERE p.parent = j.job"
        f"   AND c.gather = 1)) AND i.state = {ItemState.SUCCEEDED}"
        " AND NOT EXISTS (SELECT 1 FROM job_results WHERE item = i.item)"
    ),
    "jobs are complete though a parent is not": (
        "SELECT count(*) FROM jobs AS j JOIN job_parents AS p ON p.job = j.job JOIN jobs AS o ON o.job = p.parent"
        " WHERE j.tree = ?1 AND j.complete_at IS NOT NULL AND o.complete_at IS NULL"
    ),
    "jobs have nothing left to do, and are not marked": (
        "SELECT count(*) FROM jobs AS j WHERE j.tree = ?1 AND j.sealed = 1 AND j.pending = 0 AND j.complete_at IS NULL"
        " AND j.due = 0 AND NOT EXISTS (SELECT 1 FROM job_parents AS p JOIN jobs AS o ON o.job = p.parent"
        " WHERE p.job = j.job AND o.complete_at IS NULL)"
    ),
    "it is not complete though all of its jobs are": (
        "SELECT count(*) FROM job_trees AS t WHERE t.tree = ?1 AND (t.complete_at IS NULL)"
        " <> EXISTS (SELECT 1 FROM jobs WHERE tree = t.tree AND complete_at IS NULL)"
    ),
}
assert JOB == 16


def audit(connection: sqlite3.Connection, tree: str) -> list[str] | None:
    """Returns contradictions between a tree's rows; None: the tree is not known."""
    row = connection.execute("SELECT tree FROM job_trees WHERE id = ?", (tree,)).fetchone()
    if row is None:
        return None
    found: list[str] = []
    for what, question in _AUDITS.items():
        (count,) = connection.execute(question, row).fetchone()
        if count:
            found.append(f"{count} {what}")
    return found


def bounds(connection: sqlite3.Connection, items: list[int]) -> dict[int, int]:
    """The most failures of those items whose job bounds them."""
    rows = connection.execute(
        "SELECT i.item, b.max_failures FROM job_items AS i JOIN job_bounds AS b ON b.job = i.job"
        f" WHERE i.item IN {IDS}",
        (json_text(items),),
    ).fetchall()
    return dict(rows)


def pauses(connection: sqlite3.Connection, items: list[int]) -> set[int]:
    """The items among these whose tree is paused."""
    rows = connection.execute(
        "SELECT i.item FROM job_items AS i JOIN jobs AS j ON j.job = i.job JOIN job_trees AS t ON t.tree = j.tree"
        f" WHERE i.item IN {IDS} AND t.paused = 1",
        (json_text(items),),
    ).fetchall()
    return {item for (item,) in rows}
