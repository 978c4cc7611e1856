"""Advances of jobs: does the due steps of each, a bounded number at a time. The transaction that ends an item also does
the steps that follow; steps that are left are marked, and done with the next look at the queue."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from ...queue.sqlite.memory import Memory
from ...queue.sqlite.rows import PAUSED
from ...queue.sqlite.settle import cancel
from ..rules.ending import JobStands, JobStep, next_step
from ..rules.feeding import elements, payload_of
from ..rules.item_state import ItemState
from ..rules.retrying import is_made_of_failed
from ..rules.step_bounds import DROPPED_BYTES, EXPANDED, SOME
from .callback import tell
from .ends import Born, make, mark
from .events import tell_complete
from .gather import gathered_payload
from .memory import APART, FedJob

#: Most steps of one transaction, and written rows that count as one more step: together some milliseconds.
STEPS, ROWS = 64, 8


class _DueJob(NamedTuple):
    job: int
    tree: int
    name: str
    kind: int
    prefix: bytes
    suffix: bytes
    most: int
    gather: int
    each: int
    sealed: int
    pending: int
    looked: int
    complete_at: int | None
    ending: str
    paused: int
    parents: int
    open_parents: int

    @property
    def stands(self) -> JobStands:
        """The job in the form that the rule takes."""
        return JobStands(
            bool(self.sealed),
            self.pending,
            self.complete_at is not None,
            self.parents > 0,
            self.open_parents,
            bool(self.gather),
            bool(self.ending),
        )

    @property
    def fed(self) -> FedJob:
        """The job in the form that `make` takes."""
        return FedJob(self.job, self.name, self.kind, self.prefix, self.suffix, self.most, bool(self.each))


_READ = (
    "SELECT j.job, j.tree, j.name, j.kind, j.prefix, j.suffix, j.most, j.gather, j.each, j.sealed, j.pending,"
    " j.looked, j.complete_at, t.ending, t.paused, (SELECT count(*) FROM job_parents WHERE job = j.job),"
    " (SELECT count(*) FROM job_parents AS p JOIN jobs AS o ON o.job = p.parent"
    "  WHERE p.job = j.job AND o.complete_at IS NULL)"
    " FROM jobs AS j JOIN job_trees AS t ON t.tree = j.tree WHERE j.job = ?"
)


def advance(connection: sqlite3.Connection, memory: Memory, now: int) -> None:
    """Does due steps, at most STEPS, one of each tree in turn."""
    due, steps = memory.jobs.due, STEPS
    while due and steps > 0:
        job = due.turn()
        found = connection.execute(_READ, (job,)).fetchone()
        wrote = 0 if found is None else _step(connection, memory, _DueJob(*found), now)
        if not wrote:
            connection.execute("UPDATE jobs SET due = 0 WHERE job = ?", (job,))
            due.discard(job)
        steps -= 1 + wrote // ROWS


def _step(connection: sqlite3.Connection, memory: Memory, row: _DueJob, now: int) -> int:
    """Does one step of one job. Returns about how many rows it wrote; 0: nothing is left to do."""
    if row.complete_at is not None:
        return 0
    if row.ending:
        some = _cancel_some(connection, memory, row, now)
    else:
        some = _expand(connection, memory, row, now)
        if not some and not row.paused:
            some = _wake_some(connection, memory, row, now)
    if some:
        return some
    step = next_step(row.stands)
    if step is JobStep.GATHER_AND_SEAL:
        _gather(connection, memory, row, now)
    if step in (JobStep.SEAL, JobStep.GATHER_AND_SEAL):
        connection.execute("UPDATE jobs SET sealed = 1 WHERE job = ?", (row.job,))
    elif step is JobStep.COMPLETE:
        _complete(connection, memory, row, now)
        return 0
    return int(step is not JobStep.NOTHING)


def _cancel_some(connection: sqlite3.Connection, memory: Memory, row: _DueJob, now: int) -> int:
    """Cancels some pending items of a tree that ends; returns how many. Leased items end with their runs."""
    gone = _drop_some(connection, row) if row.each else 0
    if gone:
        connection.execute("UPDATE jobs SET pending = pending - ? WHERE job = ?", (gone, row.job))
        memory.jobs.taken_apart.pop(row.job, None)
    items = _pending(connection, row)
    for item in items:
        cancel(connection, memory, item, now)
    _looked(connection, row, items)
    return gone + len(items)


def _drop_some(connection: sqlite3.Connection, row: _DueJob) -> int:
    """Drops some lists that were to be expanded into items of a job; returns how many."""
    origins: list[int] = []
    size = 0
    rows = connection.execute(
        "SELECT origin, length(result) FROM job_expansions WHERE job = ? ORDER BY origin LIMIT ?", (row.job, SOME)
    ).fetchall()
    for origin, length in rows:
        size += length
        if origins and size > DROPPED_BYTES:
            break
        origins.append(origin)
    if origins:
        connection.execute("DELETE FROM job_expansions WHERE job = ? AND origin <= ?", (row.job, origins[-1]))
    return len(origins)


def _wake_some(connection: sqlite3.Connection, memory: Memory, row: _DueJob, now: int) -> int:
    """Makes items due that waited because their tree was paused, now that it is resumed; returns how many it looked
    at."""
    if row.looked < 0:
        return 0
    items = _pending(connection, row)
    for item in items:
        woken = connection.execute(
            "UPDATE tasks SET next_trigger = ? WHERE id = ? AND next_trigger = ? RETURNING kind", (now, item, PAUSED)
        ).fetchone()
        if woken is not None:
            memory.sooner(woken[0], now)
    _looked(connection, row, items)
    if not items:
        connection.execute("UPDATE jobs SET looked = -1 WHERE job = ?", (row.job,))
    return len(items)


def _pending(connection: sqlite3.Connection, row: _DueJob) -> list[int]:
    """The next pending items after the last one that was looked at."""
    if not row.pending:
        return []
    found = connection.execute(
        f"SELECT item FROM job_items WHERE job = ? AND item > ? AND state = {ItemState.PENDING} ORDER BY item LIMIT ?",
        (row.job, row.looked, SOME),
    ).fetchall()
    return [item for (item,) in found]


def _looked(connection: sqlite3.Connection, row: _DueJob, items: list[int]) -> None:
    if items:
        connection.execute("UPDATE jobs SET looked = ? WHERE job = ?", (items[-1], row.job))


def _expand(connection: sqlite3.Connection, memory: Memory, row: _DueJob, now: int) -> int:
    """Makes some items of a list that is being expanded; returns how many, plus one, or 0 if there is no list. The list
    counts as one pending item until it is used up."""
    if not row.each:
        return 0
    found = connection.execute(
        "SELECT origin, next FROM job_expansions WHERE job = ? ORDER BY origin LIMIT 1", (row.job,)
    ).fetchone()
    if found is None:
        return 0
    origin, begin = found
    all_ = _elements(connection, memory, row, origin)
    born = [
        Born(row.fed, origin, part, payload_of(row.prefix, all_[part], row.suffix, row.most, row.name))
        for part in range(begin, min(begin + EXPANDED, len(all_)))
    ]
    made = more = make(connection, memory, born, now).total()
    if begin + more < len(all_):
        connection.execute(
            "UPDATE job_expansions SET next = ? WHERE job = ? AND origin = ?", (begin + more, row.job, origin)
        )
    else:
        connection.execute("DELETE FROM job_expansions WHERE job = ? AND origin = ?", (row.job, origin))
        memory.jobs.taken_apart.pop(row.job, None)
        more -= 1
    connection.execute("UPDATE jobs SET pending = pending + ? WHERE job = ?", (more, row.job))
    return 1 + made


def _elements(connection: sqlite3.Connection, memory: Memory, row: _DueJob, origin: int) -> Sequence[bytes]:
    """The elements of a list, parsed once for all of its steps as long as only a few lists are being expanded."""
    apart = memory.jobs.taken_apart
    known = apart.get(row.job)
    if known is not None and known[0] == origin:
        return known[1]
    (result,) = connection.execute(
        "SELECT result FROM job_expansions WHERE job = ? AND origin = ?", (row.job, origin)
    ).fetchone()
    found = elements(bytes(result), row.name)
    if known is not None or len(apart) < APART:
        apart[row.job] = (origin, found)
    return found


def _gather(connection: sqlite3.Connection, memory: Memory, row: _DueJob, now: int) -> None:
    """Makes the one item of a job that gathers, from all results of its parents."""
    tree, definition, fed = connection.execute(
        "SELECT t.id, t.definition, EXISTS (SELECT 1 FROM job_parents AS p JOIN job_items AS i ON i.job = p.parent"
        " WHERE p.job = ?2) FROM job_trees AS t WHERE t.tree = ?1",
        (row.tree, row.job),
    ).fetchone()
    if not fed and is_made_of_failed(definition):
        return
    payload = gathered_payload(connection, row.fed, tree)
    made = make(connection, memory, [Born(row.fed, None, 0, payload)], now).total()
    connection.execute("UPDATE jobs SET pending = pending + ? WHERE job = ?", (made, row.job))


def _complete(connection: sqlite3.Connection, memory: Memory, row: _DueJob, now: int) -> None:
    connection.execute("UPDATE jobs SET complete_at = ?, due = 0 WHERE job = ?", (now, row.job))
    tell_complete(connection, memory, row.job, now)
    children = connection.execute("SELECT job FROM job_parents WHERE parent = ?", (row.job,)).fetchall()
    for (child,) in children:
        mark(connection, memory, child)
    whole = connection.execute(
        "UPDATE job_trees SET complete_at = ?1 WHERE tree = ?2 AND complete_at IS NULL"
        " AND NOT EXISTS (SELECT 1 FROM jobs WHERE tree = ?2 AND complete_at IS NULL)",
        (now, row.tree),
    ).rowcount
    if whole:
        tell(connection, memory, row.tree, now)
        memory.jobs.open -= 1
        memory.jobs.paused.discard(row.tree)
