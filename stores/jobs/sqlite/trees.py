"""Trees on SQLite: created, extended, sealed, ended and removed, each in one transaction of the queue's writer."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from ....model.job import JobHolder, JobItem, TreeSpec, TreeState
from ...queue.intake import Callback
from ...queue.queue import NewItem
from ...queue.sqlite.memory import Memory
from ...queue.sqlite.rows import IDS, JOB, json_text
from ...queue.sqlite.submit import submit
from ...sqlite.insert import insert
from ..jobs import Feeding
from ..rules import refusals
from ..rules.events import mask_of
from ..rules.feeding import NOTHING
from ..rules.item_state import ItemState
from ..rules.overdue import CANCELLED, OverdueTrees
from ..rules.redriving import token_of
from ..rules.retrying import definition_of
from ..rules.tree import defined, is_final
from . import callback, queries
from .ends import end_tree, mark
from .redrive import first_life

#: Most rows that one step of the retention removes.
FORGOTTEN = 2000


def create(
    connection: sqlite3.Connection,
    memory: Memory,
    tree: TreeSpec,
    given: tuple[Sequence[Feeding], Callback | None],
    now: int,
) -> bool:
    """Makes a tree; returns True if it is new. `given`: the feedings of its jobs, and its callback."""
    feedings, done = given
    definition = defined(tree)
    known = connection.execute("SELECT definition FROM job_trees WHERE id = ?", (tree.id,)).fetchone()
    if known is not None:
        if known[0] != definition:
            raise refusals.another(tree.id)
        return False
    key = memory.key_rule(tree.jobs[0].tenant, tree.key) if tree.key else ""
    if key:
        other = connection.execute(
            "SELECT id FROM job_trees WHERE type = ? AND key = ? AND key <> ''", (tree.type, key)
        ).fetchone()
        if other is not None:
            raise refusals.key_taken(tree, other[0])
    if memory.jobs.open >= refusals.MOST_OPEN:
        raise refusals.too_many(memory.jobs.open)
    (number,) = connection.execute(
        "INSERT INTO job_trees (id, type, key, policy, most_failed, created_by, created_at, definition)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?) RETURNING tree",
        (tree.id, tree.type, key, tree.policy, tree.most_failed, tree.created_by, now, definition),
    ).fetchone()
    _make_jobs(connection, memory, number, tree, feedings)
    if tree.events:
        insert(connection, "job_tree_events (tree, bits)", [(number, mask_of(tree.events))])
    if done is not None:
        callback.keep(connection, memory, number, done)
    memory.jobs.open += 1
    return True


def _make_jobs(
    connection: sqlite3.Connection, memory: Memory, number: int, tree: TreeSpec, feedings: Sequence[Feeding]
) -> None:
    numbers: dict[str, int] = {}
    for place, (job, feeding) in enumerate(zip(tree.jobs, feedings, strict=True)):
        if len(feeding.prefix) + len(feeding.suffix) + len(NOTHING) > feeding.most:
            raise refusals.no_room(job.name, feeding.most)
        (numbers[job.name],) = connection.execute(
            "INSERT INTO jobs (tree, place, name, kind, prefix, suffix, most, final, gather, each)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING job",
            (
                number,
                place,
                job.name,
                memory.kinds.number(connection, feeding.kind),
                feeding.prefix,
                feeding.suffix,
                feeding.most,
                is_final(job, tree.jobs),
                job.gather,
                job.each,
            ),
        ).fetchone()
        if job.parents and not job.gather:
            room = feeding.most - len(feeding.prefix) - len(feeding.suffix)
            memory.jobs.fits = min(memory.jobs.fits, room)
            memory.jobs.each |= job.each
    bounds = [(numbers[job.name], most) for job in tree.jobs if (most := job.max_failures_per_item)]
    insert(connection, "job_bounds (job, max_failures)", bounds)
    memory.jobs.bounded |= bool(bounds)
    edges = [(numbers[parent], numbers[job.name]) for job in tree.jobs for parent in job.parents]
    insert(connection, "job_parents (parent, job)", edges)


def add(
    connection: sqlite3.Connection,
    memory: Memory,
    found: tuple[str, str],
    token: str,
    items: Sequence[JobItem],
    bounds: tuple[int, int],
    now: int,
    holder: JobHolder | None = None,
) -> int:
    """Adds items to a job; returns how many this call added, now or when it came first. `bounds`: most workloads that
    wait, and most bytes that trees keep."""
    if holder is not None:
        found = _held(connection, found, holder)
        token = token_of(token, holder.workload, first_life(connection, holder.workload))
    tree, name = found
    row = _find(connection, tree, name)
    job, kind, sealed, ending, complete_at, _ = row
    known = connection.execute("SELECT items FROM job_calls WHERE job = ? AND token = ?", (job, token)).fetchone()
    if known is not None:
        return int(known[0])
    if ending or complete_at is not None:
        raise refusals.over(tree, complete=complete_at is not None)
    if sealed and holder is None:
        raise refusals.sealed(tree, name)
    kept = queries.kept(connection)
    if items and kept >= bounds[1]:
        raise refusals.full(kept, bounds[1])
    keys = _new_keys(connection, job, found, items)
    new = [NewItem(memory.kinds.kinds[kind], each.payload, key=each.key) for each in items]
    made = submit(connection, memory, new, bounds[0], now, JOB)
    insert(connection, "job_items (item, job)", [(int(each.id, 16), job) for each in made])
    insert(connection, "job_keys (job, key)", [(job, key) for key in keys])
    connection.execute("UPDATE jobs SET pending = pending + ? WHERE job = ?", (len(made), job))
    insert(connection, "job_calls (job, token, items)", [(job, token, len(made))])
    return len(made)


def _find(connection: sqlite3.Connection, tree: str, name: str) -> tuple[int, int, int, str, int | None, int]:
    """Finds a job by its tree's id and its name; without a name the root."""
    row = connection.execute(
        "SELECT j.job, j.kind, j.sealed, t.ending, t.complete_at,"
        " (SELECT count(*) FROM job_parents WHERE job = j.job)"
        " FROM job_trees AS t LEFT JOIN jobs AS j ON j.tree = t.tree AND (j.name = ?2 OR (?2 = '' AND j.place = 0))"
        " WHERE t.id = ?1",
        (tree, name),
    ).fetchone()
    if row is None:
        raise refusals.unknown(tree)
    if row[0] is None:
        names = connection.execute(
            "SELECT name FROM jobs WHERE tree = (SELECT tree FROM job_trees WHERE id = ?) ORDER BY place LIMIT 20",
            (tree,),
        ).fetchall()
        there = ", ".join(each for (each,) in names)
        raise refusals.nameless(tree, name, there)
    found: tuple[int, int, int, str, int | None, int] = row
    return found


def _held(connection: sqlite3.Connection, found: tuple[str, str], holder: JobHolder) -> tuple[str, str]:
    """The tree and job to which the holder of an item may add. Raises Conflict for a run that has no item any more, and
    InvalidRequest for a job that may be complete before the run ends."""
    row = connection.execute(
        "SELECT t.id, j.name, j.job FROM job_items AS i JOIN tasks AS w ON w.id = i.item JOIN jobs AS j"
        " ON j.job = i.job JOIN job_trees AS t ON t.tree = j.tree"
        f" WHERE i.item = ? AND i.state = {ItemState.PENDING} AND w.fence = ? AND w.state BETWEEN 2 AND 9",
        (refusals.check_holder(holder), holder.fence),
    ).fetchone()
    if row is None:
        raise refusals.stale(holder)
    tree, own, job = row
    wanted = found[1] or own
    behind = connection.execute(
        "WITH RECURSIVE behind (job) AS (SELECT ?"
        " UNION SELECT p.job FROM behind AS b JOIN job_parents AS p ON p.parent = b.job)"
        " SELECT 1 FROM behind JOIN jobs USING (job) WHERE name = ?",
        (job, wanted),
    ).fetchone()
    if found[0] not in ("", tree) or behind is None:
        raise refusals.elsewhere(holder, found[0] or tree, wanted)
    return tree, wanted


def _new_keys(connection: sqlite3.Connection, job: int, said: tuple[str, str], items: Sequence[JobItem]) -> list[str]:
    """The dedupe keys of items to be added. Raises Conflict, before anything is written, if one is known."""
    keys = [each.dedupe_key for each in items if each.dedupe_key]
    known = refusals.twice(items)
    if keys and known is None:
        row = connection.execute(
            f"SELECT key FROM job_keys WHERE job = ? AND key IN {IDS} LIMIT 1", (job, json_text(keys))
        ).fetchone()
        known = None if row is None else row[0]
    if known is not None:
        raise refusals.known_item(*said, known)
    return keys


def seal(connection: sqlite3.Connection, memory: Memory, tree: str, name: str) -> bool:
    """Seals a job; returns True if it was open."""
    job, _, sealed, _, _, parents = _find(connection, tree, name)
    if parents:
        raise refusals.sealed_by_parents(tree, name)
    if sealed:
        return False
    connection.execute("UPDATE jobs SET sealed = 1 WHERE job = ?", (job,))
    mark(connection, memory, job)
    return True


def change(connection: sqlite3.Connection, memory: Memory, tree: str, what: str, why: str) -> str:
    """Cancels or deletes a tree: one write to its row, which takes effect at once."""
    row = connection.execute("SELECT tree, ending, complete_at FROM job_trees WHERE id = ?", (tree,)).fetchone()
    if row is None:
        raise refusals.unknown(tree)
    number, ending, complete_at = row
    if what == "delete":
        connection.execute("UPDATE job_trees SET deleted = 1 WHERE tree = ?", (number,))
    if complete_at is not None:
        return "done" if what == "delete" else "over"
    if not ending:
        end_tree(connection, memory, number, TreeState.CANCELLED, why)
    return "over" if ending and what == "cancel" else "done"


def hold(connection: sqlite3.Connection, memory: Memory, tree: str, right: str, seen: str | None) -> str:
    """Pauses a tree with this right, or resumes it without one: a write to its row, which takes effect at once."""
    row = connection.execute(
        "SELECT t.tree, t.paused, iif(t.paused, coalesce(p.right, ''), ''), t.ending <> '' OR t.complete_at IS NOT NULL"
        " FROM job_trees AS t LEFT JOIN job_pauses AS p ON p.tree = t.tree WHERE t.id = ?",
        (tree,),
    ).fetchone()
    if row is None:
        raise refusals.unknown(tree)
    number, paused, noted, over = row
    if over:
        return "over"
    if seen is not None and seen != noted:
        return "moved"
    connection.execute("DELETE FROM job_pauses WHERE tree = ?", (number,))
    if right:
        insert(connection, "job_pauses (tree, right)", [(number, right)])
        connection.execute("UPDATE job_trees SET paused = 1 WHERE tree = ?", (number,))
        memory.jobs.paused.add(number)
    elif paused:
        connection.execute("UPDATE job_trees SET paused = 0 WHERE tree = ?", (number,))
        connection.execute("UPDATE jobs SET due = 1, looked = 0 WHERE tree = ? AND complete_at IS NULL", (number,))
        memory.jobs.paused.discard(number)
        rows = connection.execute("SELECT job FROM jobs WHERE tree = ? AND due = 1", (number,)).fetchall()
        for (job,) in rows:
            memory.jobs.due.add(number, job)
    return "done"


def cancel(connection: sqlite3.Connection, memory: Memory, late: OverdueTrees) -> int:
    """Cancels some of the trees that are open for too long; returns how many."""
    rows = connection.execute(
        "SELECT tree FROM job_trees WHERE complete_at IS NULL AND ending = '' AND created_at >= ? AND created_at < ?"
        " LIMIT ?",
        (late.since, late.before, CANCELLED),
    ).fetchall()
    for (tree,) in rows:
        end_tree(connection, memory, tree, TreeState.CANCELLED, late.why)
    return len(rows)


def forget(connection: sqlite3.Connection, memory: Memory, before: int) -> int:
    """Removes some rows of the oldest tree that was complete before a time or is deleted; returns how many. Jobs of the
    next tree may get the same numbers. A tree whose gather failed and is tried again is kept as long as that other try
    (rules/retrying.py), because its results may be read there."""
    row = connection.execute(
        "SELECT t.tree FROM job_trees AS t WHERE t.complete_at IS NOT NULL AND (t.complete_at < ? OR t.deleted = 1)"
        " AND NOT (EXISTS (SELECT 1 FROM jobs AS j WHERE j.tree = t.tree AND j.gather = 1 AND j.failed > 0) AND EXISTS"
        " (SELECT 1 FROM job_trees AS r WHERE r.definition = ? || t.id AND r.definition >= 'failed')) LIMIT 1",
        (before, definition_of("")),
    ).fetchone()
    if row is None:
        return 0
    connection.execute("UPDATE job_trees SET deleted = 1 WHERE tree = ? AND deleted = 0", row)  # never seen in part
    jobs = json_text([job for (job,) in connection.execute("SELECT job FROM jobs WHERE tree = ?", row).fetchall()])
    items = [
        item
        for (item,) in connection.execute(
            f"SELECT item FROM job_items WHERE job IN {IDS} LIMIT ?", (jobs, FORGOTTEN)
        ).fetchall()
    ]
    if items:
        for table in ("job_results", "job_payloads", "job_items"):
            connection.execute(f"DELETE FROM {table} WHERE item IN {IDS}", (json_text(items),))
        return len(items)
    for table, second in _SECOND.items():
        gone = connection.execute(
            f"DELETE FROM {table} WHERE (job, {second}) IN"
            f" (SELECT job, {second} FROM {table} WHERE job IN {IDS} LIMIT ?)",
            (jobs, FORGOTTEN),
        ).rowcount
        if gone:
            return gone
    for table in ("job_expansions", "job_parents", "job_bounds", "jobs"):
        connection.execute(f"DELETE FROM {table} WHERE job IN {IDS}", (jobs,))
    for table in ("job_callbacks", "job_tree_events", "job_pauses", "job_trees"):
        connection.execute(f"DELETE FROM {table} WHERE tree = ?", row)
    memory.jobs.changed()
    return 1


_SECOND = {"job_keys": "key", "job_calls": "token", "job_redrives": "former"}
