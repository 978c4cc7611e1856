"""Another try of a tree that is over: a new tree with the same jobs, and in each job the items that failed there, with
their payloads.

The new tree is filled some items at a time, and sealed with the last. After a crash it stays open, and a repeated
request continues it: each item's origin tells which failed item it is.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ...queue.queue import NewItem
from ...queue.sqlite.memory import Memory
from ...queue.sqlite.rows import JOB
from ...queue.sqlite.submit import submit
from ...sqlite.insert import insert
from ..rules import refusals, retrying
from ..rules.item_state import ItemState
from . import callback
from .ends import mark

#: Failed items of a job after one of them.
_FAILED = f"""
SELECT i.item, p.payload, p.key FROM job_items AS i JOIN job_payloads AS p ON p.item = i.item
WHERE i.job = ? AND i.state = {ItemState.FAILED} AND i.item > ? ORDER BY i.item LIMIT ?
"""
#: The last failed item of a job that was copied into another one: items that feed the other job are newer.
_LAST = """
SELECT coalesce((SELECT origin FROM job_items INDEXED BY job_items_origins
    WHERE origin <= (SELECT max(item) FROM job_items WHERE job = ?1) AND job = ?2 ORDER BY origin DESC LIMIT 1), -1)
"""
#: Condition: jobs that gather after a job with failed items. They gather the items tried again (rules/retrying.py).
_ANEW = """
o.gather = 1 AND o.job IN (
    WITH RECURSIVE behind (job) AS (
        SELECT p.job FROM jobs AS f JOIN job_parents AS p ON p.parent = f.job WHERE f.tree = ?1 AND f.failed > 0
        UNION SELECT p.job FROM behind AS b JOIN job_parents AS p ON p.parent = b.job)
    SELECT job FROM behind)
"""
_PAIRS = f"""
SELECT o.job, n.job, n.kind FROM jobs AS o JOIN jobs AS n ON n.tree = ?2 AND n.place = o.place
WHERE o.tree = ?1 AND NOT ({_ANEW}) ORDER BY o.place
"""
_NAMES = f"SELECT o.name FROM jobs AS o WHERE o.tree = ?1 AND {_ANEW} ORDER BY o.place"
_COPIED = "place, name, kind, prefix, suffix, most, final, gather, each"


class RetryStep(NamedTuple):
    """One step of another try: the id of the new tree; whether there may be more steps; and after the last one the
    number of its items, and the jobs that gather only these. `behind`: job of the tree → the last failed item that was
    copied into it."""

    id: str
    more: bool = True
    items: int = 0
    behind: Mapping[int, int] = {}
    anew: Sequence[str] = ()


def go_on(
    connection: sqlite3.Connection, memory: Memory, asked: tuple[str, RetryStep], who: str, max_waiting: int, now: int
) -> RetryStep:
    """Copies some items, after those of the step before. `asked`: the former tree's id, and that step."""
    former_id, step = asked
    former = _former(connection, former_id)
    id, tree = _tree(connection, former_id, step.id)
    if tree is None:
        tree = _copy(connection, memory, former, (former_id, id), who, now)
    sealed, root = connection.execute("SELECT sealed, job FROM jobs WHERE tree = ? AND place = 0", (tree,)).fetchone()
    if not sealed:
        behind = _take_along(connection, memory, (former, tree), step.behind, max_waiting, now)
        if behind is not None:
            return RetryStep(id, behind=behind)
        connection.execute("UPDATE jobs SET sealed = 1 WHERE job = ?", (root,))
        mark(connection, memory, root)
    (count,) = connection.execute(
        "SELECT count(*) FROM job_items AS i JOIN jobs AS j ON j.job = i.job JOIN job_items AS f ON f.item = i.origin"
        " JOIN jobs AS o ON o.job = f.job WHERE j.tree = ? AND o.tree = ?",
        (tree, former),
    ).fetchone()
    anew = [name for (name,) in connection.execute(_NAMES, (former,)).fetchall()]
    return RetryStep(id, more=False, items=count, anew=anew)


def _former(connection: sqlite3.Connection, id: str) -> int:
    row = connection.execute(
        "SELECT tree, complete_at, (SELECT coalesce(sum(failed), 0) FROM jobs WHERE tree = t.tree) FROM job_trees AS t"
        " WHERE id = ? AND deleted = 0",
        (id,),
    ).fetchone()
    if row is None:
        raise refusals.unknown(id)
    if row[1] is None:
        raise refusals.not_over(id)
    if not row[2]:
        raise refusals.none_failed(id)
    return int(row[0])


def _tree(connection: sqlite3.Connection, former_id: str, id: str) -> tuple[str, int | None]:
    """The id and number of the tree that was begun for this: the one with the requested id, or another one while it is
    open; None: there is none. Raises Conflict if another tree has the id."""
    definition = retrying.definition_of(former_id)
    row = connection.execute("SELECT tree, definition FROM job_trees WHERE id = ?", (id,)).fetchone()
    if row is not None and row[1] != definition:
        raise refusals.another(id)
    if row is not None:
        return id, row[0]
    begun: tuple[str, int] | None = connection.execute(
        "SELECT id, tree FROM job_trees WHERE definition = ? AND definition >= 'failed' AND complete_at IS NULL"
        " AND ending = '' AND deleted = 0 ORDER BY tree LIMIT 1",
        (definition,),
    ).fetchone()
    return (id, None) if begun is None else begun


def _copy(connection: sqlite3.Connection, memory: Memory, former: int, ids: tuple[str, str], who: str, now: int) -> int:
    """Makes the new tree, with the same jobs. The former tree keeps its key."""
    (tree,) = connection.execute(
        "INSERT INTO job_trees (id, type, key, policy, most_failed, created_by, created_at, definition)"
        " SELECT ?, type, '', policy, most_failed, ?, ?, ? FROM job_trees WHERE tree = ? RETURNING tree",
        (ids[1], who, now, retrying.definition_of(ids[0]), former),
    ).fetchone()
    connection.execute(
        f"INSERT INTO jobs (tree, {_COPIED}) SELECT ?, {_COPIED} FROM jobs WHERE tree = ?", (tree, former)
    )
    connection.execute(
        "INSERT INTO job_parents (parent, job) SELECT np.job, nj.job FROM job_parents AS e"
        " JOIN jobs AS p ON p.job = e.parent JOIN jobs AS j ON j.job = e.job"
        " JOIN jobs AS np ON np.tree = ?1 AND np.place = p.place JOIN jobs AS nj ON nj.tree = ?1 AND nj.place = j.place"
        " WHERE p.tree = ?2",
        (tree, former),
    )
    connection.execute(
        "INSERT INTO job_bounds (job, max_failures) SELECT n.job, b.max_failures FROM job_bounds AS b"
        " JOIN jobs AS o ON o.job = b.job JOIN jobs AS n ON n.tree = ? AND n.place = o.place WHERE o.tree = ?",
        (tree, former),
    )
    connection.execute(
        "INSERT INTO job_tree_events (tree, bits) SELECT ?, bits FROM job_tree_events WHERE tree = ?", (tree, former)
    )
    callback.copy(connection, former, int(tree))
    memory.jobs.open += 1
    memory.jobs.learn(connection)
    return int(tree)


def _take_along(
    connection: sqlite3.Connection,
    memory: Memory,
    trees: tuple[int, int],
    begin: Mapping[int, int],
    max_waiting: int,
    now: int,
) -> dict[int, int] | None:
    """Copies the next failed items from one tree to the other. Returns the last copied item of each job; None: all are
    copied."""
    pairs = connection.execute(_PAIRS, trees).fetchall()
    behind, size = {**begin}, 0
    rows: list[tuple[int, int, int, bytes, str]] = []
    for old, job, kind in pairs:
        if job not in behind:
            (behind[job],) = connection.execute(_LAST, (old, job)).fetchone()
        found = connection.execute(_FAILED, (old, behind[job], retrying.TAKEN - len(rows)))
        for item, payload, key in found:
            rows.append((item, job, kind, bytes(payload), key))
            behind[job] = item
            size += len(payload)
            if size >= retrying.TAKEN_BYTES:
                break
        found.close()
        if full := len(rows) >= retrying.TAKEN or size >= retrying.TAKEN_BYTES:
            break
    kinds = memory.kinds.kinds
    items = [NewItem(kinds[kind], payload, key=key) for _, _, kind, payload, key in rows]
    made = submit(connection, memory, items, max_waiting, now, JOB) if items else []
    taken = [(int(one.id, 16), row[1], row[0]) for one, row in zip(made, rows, strict=True)]
    insert(connection, "job_items (item, job, origin)", taken)
    for job, count in Counter(row[1] for row in rows).items():
        connection.execute("UPDATE jobs SET pending = pending + ? WHERE job = ?", (count, job))
    return behind if full else None
