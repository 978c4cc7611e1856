"""Memory of the writer for jobs: how many trees are open, which jobs have something to be done, and what they feed.

All of it is read again from the tables after a rollback. Only the writer thread changes it. While no tree is open
nothing of jobs is asked of the tables.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

#: Jobs whose row and children are remembered; forgotten all at once when there are more.
KNOWN = 4096
#: A result of so many bytes fits any payload, while there is no job.
_ANY = 1 << 62


class FedJob(NamedTuple):
    """One job that is fed by another: its number and name, its workloads' kind, and the bytes around a result."""

    job: int
    name: str
    kind: int
    prefix: bytes
    suffix: bytes
    most: int
    each: bool


class KnownJob(NamedTuple):
    """A job as the end of an item needs it. `keeps`: its results are kept; `ending`: nothing is fed any more."""

    tree: int
    feeds: list[FedJob]
    keeps: bool
    policy: str
    most_failed: int
    ending: bool


class JobMemory:
    """The memory of one writer. Invariants:

    open    trees that are not complete
    due     jobs whose row is marked so
    paused  open trees that are
    taken_apart  the result that is being expanded: its job, its origin and its elements
    fits    a result of so many bytes fits every payload that is made of one; `each`: some are taken apart
    """

    def __init__(self) -> None:
        self.open = 0
        self.due: set[int] = set()
        self.paused: set[int] = set()
        self.fits = _ANY
        self.each = False
        self.taken_apart: tuple[int, int, Sequence[bytes]] | None = None
        self._known: dict[int, KnownJob] = {}

    def reload(self, connection: sqlite3.Connection) -> None:
        """Reads everything from the tables."""
        self._known.clear()
        self.taken_apart = None
        (self.open,) = connection.execute("SELECT count(*) FROM job_trees WHERE complete_at IS NULL").fetchone()
        self.due = {job for (job,) in connection.execute("SELECT job FROM jobs WHERE due = 1")}
        self.paused = set()
        self.fits, self.each = _ANY, False
        if self.open:
            paused = "SELECT tree FROM job_trees WHERE paused = 1 AND complete_at IS NULL"
            self.paused = {tree for (tree,) in connection.execute(paused)}
            self.learn(connection)

    def learn(self, connection: sqlite3.Connection) -> None:
        """Reads what results are to fit."""
        self.fits, self.each = connection.execute(
            "SELECT coalesce(min(most - length(prefix) - length(suffix)), 0), coalesce(max(each), 0) FROM jobs"
        ).fetchone()

    def changed(self) -> None:
        """Some tree ends, or is forgotten: what is known of jobs is read again."""
        self._known.clear()

    def job(self, connection: sqlite3.Connection, job: int) -> KnownJob:
        """A job, read when it is not known."""
        known = self._known.get(job)
        if known is None:
            if len(self._known) >= KNOWN:
                self._known.clear()
            known = self._known[job] = _read(connection, job)
        return known


def _read(connection: sqlite3.Connection, job: int) -> KnownJob:
    tree, final, policy, most_failed, ending = connection.execute(
        "SELECT j.tree, j.final, t.policy, t.most_failed, t.ending <> '' FROM jobs AS j"
        " JOIN job_trees AS t ON t.tree = j.tree WHERE j.job = ?",
        (job,),
    ).fetchone()
    children = connection.execute(
        "SELECT j.job, j.name, j.kind, j.prefix, j.suffix, j.most, j.each, j.gather FROM job_parents AS p"
        " JOIN jobs AS j ON j.job = p.job WHERE p.parent = ? ORDER BY j.job",
        (job,),
    ).fetchall()
    feeds = [FedJob._make((*child[:6], bool(child[6]))) for child in children if not child[7]]
    gathered = any(child[7] for child in children)
    return KnownJob(tree, feeds, bool(final) or gathered, policy, most_failed, bool(ending))
