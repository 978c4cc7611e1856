"""Memory of the writer for jobs: how many trees are open, which jobs have due steps, and which jobs they feed.

All of it is read again from the tables after a rollback. Only the writer thread changes it. While no tree is open the
tables of jobs are not read.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from ...queue.sqlite.rows import json_text
from .due_jobs import DueJobs

#: Most jobs whose row and children are remembered; with more all are forgotten at once.
KNOWN = 4096
#: Most lists whose elements are remembered between the steps of their expansion; others are read for each step.
APART = 8
#: The value of `fits` while there is no job.
_ANY = 1 << 62


class FedJob(NamedTuple):
    """A job that another one feeds: its number and name, the kind of its workloads, and the bytes around a result."""

    job: int
    name: str
    kind: int
    prefix: bytes
    suffix: bytes
    most: int
    each: bool


class HeardJob(NamedTuple):
    """A job whose tree has events: their bits, the tree's id and type, and the job's name."""

    bits: int
    tree: str
    type: str
    name: str


class KnownJob(NamedTuple):
    """A job as the end of an item needs it. `keeps`: its results are kept; `ending`: it feeds no other job any more;
    `heard`: None if it has no events."""

    tree: int
    feeds: list[FedJob]
    keeps: bool
    policy: str
    most_failed: int
    ending: bool
    heard: HeardJob | None


class JobMemory:
    """The memory of one writer. Invariants:

    open    number of trees that are not complete
    due     jobs whose row is marked as due
    paused  open trees that are paused
    taken_apart  lists that are being expanded: job → origin and elements; at most APART
    told    whether there may be events that are in no stream
    bounded  whether some job has its own bound on failures of an item
    unfit   number of results since the start that should have made an item and could not
    fits    a result of so many bytes fits every payload that is made of one; `each`: some lists are expanded
    """

    def __init__(self) -> None:
        self.open = 0
        self.due = DueJobs()
        self.paused: set[int] = set()
        self.fits = _ANY
        self.each = self.bounded = False
        self.told = False
        self.unfit = 0
        self.taken_apart: dict[int, tuple[int, Sequence[bytes]]] = {}
        self._known: dict[int, KnownJob] = {}

    def reload(self, connection: sqlite3.Connection) -> None:
        """Reads everything from the tables."""
        self._known.clear()
        self.told = connection.execute("SELECT 1 FROM job_events LIMIT 1").fetchone() is not None
        self.taken_apart.clear()
        (self.open,) = connection.execute("SELECT count(*) FROM job_trees WHERE complete_at IS NULL").fetchone()
        self.due = DueJobs(connection.execute("SELECT tree, job FROM jobs WHERE due = 1"))
        self.paused = set()
        self.fits, self.each, self.bounded = _ANY, False, False
        if self.open:
            paused = "SELECT tree FROM job_trees WHERE paused = 1 AND complete_at IS NULL"
            self.paused = {tree for (tree,) in connection.execute(paused)}
            self.learn(connection)

    def learn(self, connection: sqlite3.Connection) -> None:
        """Reads the bounds of results, and whether failures are bounded."""
        self.fits, self.each = connection.execute(
            "SELECT coalesce(min(most - length(prefix) - length(suffix)), 0), coalesce(max(each), 0) FROM jobs"
        ).fetchone()
        self.bounded = connection.execute("SELECT 1 FROM job_bounds LIMIT 1").fetchone() is not None

    def changed(self) -> None:
        """Forgets the known jobs, because a tree ends or was removed."""
        self._known.clear()

    def job(self, connection: sqlite3.Connection, job: int) -> KnownJob:
        """Returns a job; reads it if it is not known."""
        known = self._known.get(job)
        return self.jobs(connection, [job])[job] if known is None else known

    def jobs(self, connection: sqlite3.Connection, jobs: Collection[int]) -> Mapping[int, KnownJob]:
        """Returns these jobs, among others; reads the unknown ones together."""
        unknown = [job for job in jobs if job not in self._known]
        if unknown:
            if len(self._known) + len(unknown) > KNOWN:
                self._known.clear()
                unknown = [*jobs]
            self._known |= _read(connection, unknown)
        return self._known


def _read(connection: sqlite3.Connection, jobs: Sequence[int]) -> dict[int, KnownJob]:
    which = json_text(jobs)
    rows = connection.execute(
        "SELECT j.job, j.tree, j.final, t.policy, t.most_failed, t.ending <> '', coalesce(e.bits, 0), t.id, t.type,"
        " j.name FROM json_each(?) AS n CROSS JOIN jobs AS j ON j.job = n.value JOIN job_trees AS t ON t.tree = j.tree"
        " LEFT JOIN job_tree_events AS e ON e.tree = j.tree",
        (which,),
    ).fetchall()
    feeds: dict[int, list[FedJob]] = {job: [] for job in jobs}
    gathered: set[int] = set()
    for parent, gather, each, *child in connection.execute(
        "SELECT p.parent, j.gather, j.each, j.job, j.name, j.kind, j.prefix, j.suffix, j.most FROM json_each(?) AS n"
        " CROSS JOIN job_parents AS p ON p.parent = n.value JOIN jobs AS j ON j.job = p.job ORDER BY j.job",
        (which,),
    ):
        if gather:
            gathered.add(parent)
        else:
            feeds[parent].append(FedJob._make((*child, bool(each))))
    found: dict[int, KnownJob] = {}
    for job, tree, final, policy, most_failed, ending, *heard in rows:
        keeps, told = bool(final) or job in gathered, HeardJob._make(heard) if heard[0] else None
        found[job] = KnownJob(tree, feeds[job], keeps, policy, most_failed, bool(ending), told)
    return found
