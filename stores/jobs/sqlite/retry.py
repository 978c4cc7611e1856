"""Another tree of what failed in one that is over: the same jobs, and in each the items that failed there, with what
they were given.

It is filled some items at a time, and sealed with the last. A crash between leaves it open, and whoever asks again with
the same id goes on: an item's origin says which one it is.
"""

from __future__ import annotations

import sqlite3

from ...queue.queue import NewItem
from ...queue.sqlite.memory import Memory
from ...queue.sqlite.rows import JOB
from ...queue.sqlite.submit import submit
from ...sqlite.insert import insert
from ..rules import refusals
from . import callback
from .ends import mark

#: Items that one write takes along.
SOME = 1000
#: Failed items of a job behind the last one of them that was taken along: what feeds the other job is newer than they.
_FAILED = """
SELECT i.item, p.payload, p.key FROM job_items AS i JOIN job_payloads AS p ON p.item = i.item
WHERE i.job = ?1 AND i.state = 2 AND i.item > coalesce((SELECT origin FROM job_items INDEXED BY job_items_origins
    WHERE origin <= (SELECT max(item) FROM job_items WHERE job = ?1) AND job = ?2 ORDER BY origin DESC LIMIT 1), -1)
ORDER BY i.item LIMIT ?3
"""
_COPIED = "place, name, kind, prefix, suffix, most, final, gather, each"


def go_on(
    connection: sqlite3.Connection, memory: Memory, ids: tuple[str, str], who: str, max_waiting: int, now: int
) -> tuple[int, bool]:
    """Takes some items along; how many there are by now, and whether there may be more."""
    former, tree = _former(connection, ids[0]), _tree(connection, ids)
    new = tree is None
    if tree is None:
        tree = _copy(connection, memory, former, ids, who, now)
    sealed, root = connection.execute("SELECT sealed, job FROM jobs WHERE tree = ? AND place = 0", (tree,)).fetchone()
    more = False
    if new or not sealed:
        more = _take_along(connection, memory, former, tree, max_waiting, now)
        if not more:
            connection.execute("UPDATE jobs SET sealed = 1 WHERE job = ?", (root,))
            mark(connection, memory, root)
    (count,) = connection.execute(
        "SELECT count(*) FROM job_items AS i JOIN jobs AS j ON j.job = i.job JOIN job_items AS f ON f.item = i.origin"
        " JOIN jobs AS o ON o.job = f.job WHERE j.tree = ? AND o.tree = ?",
        (tree, former),
    ).fetchone()
    return count, more


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


def _tree(connection: sqlite3.Connection, ids: tuple[str, str]) -> int | None:
    """The tree that was begun for these; None: none was. Raises Conflict where the id is another tree's."""
    row = connection.execute("SELECT tree, definition FROM job_trees WHERE id = ?", (ids[1],)).fetchone()
    if row is None:
        return None
    tree, definition = row
    if definition != _definition(ids[0]):
        raise refusals.another(ids[1])
    return int(tree)


def _definition(former: str) -> str:
    """What a tree of failed items is made of, by which it is known when it is asked for again."""
    return f"failed items of {former}"


def _copy(connection: sqlite3.Connection, memory: Memory, former: int, ids: tuple[str, str], who: str, now: int) -> int:
    """The same jobs once more. The key stays the former one's."""
    (tree,) = connection.execute(
        "INSERT INTO job_trees (id, type, key, policy, most_failed, created_by, created_at, definition)"
        " SELECT ?, type, '', policy, most_failed, ?, ?, ? FROM job_trees WHERE tree = ? RETURNING tree",
        (ids[1], who, now, _definition(ids[0]), former),
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
    connection: sqlite3.Connection, memory: Memory, former: int, tree: int, max_waiting: int, now: int
) -> bool:
    """The next failed items; whether there may be more. What gathers is made when its parents are complete."""
    pairs = connection.execute(
        "SELECT o.job, n.job, n.kind FROM jobs AS o JOIN jobs AS n ON n.tree = ?2 AND n.place = o.place"
        " WHERE o.tree = ?1 AND o.gather = 0 ORDER BY o.place",
        (former, tree),
    ).fetchall()
    rows: list[tuple[int, int, int, bytes, str]] = []
    for old, job, kind in pairs:
        found = connection.execute(_FAILED, (old, job, SOME - len(rows))).fetchall()
        rows += [(item, job, kind, payload, key) for item, payload, key in found]
        if len(rows) >= SOME:
            break
    kinds = memory.kinds.kinds
    items = [NewItem(kinds[kind], bytes(payload), key=key) for _, _, kind, payload, key in rows]
    made = submit(connection, memory, items, max_waiting, now, JOB) if items else []
    taken = [(int(one.id, 16), row[1], row[0]) for one, row in zip(made, rows, strict=True)]
    insert(connection, "job_items (item, job, origin)", taken)
    for job in {row[1] for row in rows}:
        count = sum(row[1] == job for row in rows)
        connection.execute("UPDATE jobs SET pending = pending + ? WHERE job = ?", (count, job))
    return len(rows) == SOME
