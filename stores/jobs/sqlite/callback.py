"""Callbacks of trees on SQLite: kept with the tree, and stored as a workload by the transaction that completes it."""

from __future__ import annotations

import sqlite3

from ...queue.intake import Callback
from ...queue.queue import NewItem
from ...queue.sqlite.memory import Memory
from ...queue.sqlite.submit import UNBOUNDED, submit
from ...sqlite.insert import insert
from ..rules.callback import TreeEnd, event_of


def keep(connection: sqlite3.Connection, memory: Memory, tree: int, done: Callback) -> None:
    """Keeps the callback of a tree until it is over."""
    row = (tree, memory.kinds.number(connection, done.kind), done.prefix, done.suffix)
    insert(connection, "job_callbacks (tree, kind, prefix, suffix)", [row])


def copy(connection: sqlite3.Connection, former: int, tree: int) -> None:
    """Gives another tree the same callback."""
    connection.execute(
        "INSERT INTO job_callbacks SELECT ?, kind, prefix, suffix FROM job_callbacks WHERE tree = ?", (tree, former)
    )


def tell(connection: sqlite3.Connection, memory: Memory, tree: int, now: int) -> None:
    """Stores the callback of a tree that is over as a workload, if it has one."""
    kept = connection.execute("SELECT kind, prefix, suffix FROM job_callbacks WHERE tree = ?", (tree,)).fetchone()
    if kept is None:
        return
    kind, prefix, suffix = kept
    id, type_, ending, why, succeeded, failed = connection.execute(
        "SELECT t.id, t.type, t.ending, t.why, sum(j.succeeded), sum(j.failed) FROM job_trees AS t JOIN jobs AS j"
        " ON j.tree = t.tree WHERE t.tree = ?",
        (tree,),
    ).fetchone()
    event = event_of(TreeEnd(id, type_, ending, succeeded, failed, why, now / 1e6))
    item = NewItem(memory.kinds.kinds[kind], prefix + event + suffix)
    submit(connection, memory, [item], UNBOUNDED, now, born=True)
