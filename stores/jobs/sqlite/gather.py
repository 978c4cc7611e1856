"""Gathers on SQLite: the payload for the one item of a job that gathers, and the results of the parent jobs that its
run reads."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence

from ....model.gathered import GatheredJob
from ....model.job import JobHolder, ResultPage
from ..rules import gathering, refusals
from ..rules.item_state import ItemState
from .memory import FedJob
from .queries import FinishedJob, page

#: Finds the item of a job that gathers, if it is leased under this fence.
_HELD = (
    "SELECT 1 FROM job_items AS i JOIN tasks AS w ON w.id = i.item JOIN jobs AS j ON j.job = i.job"
    f" WHERE i.item = ? AND i.state = {ItemState.PENDING} AND j.gather = 1 AND w.fence = ? AND w.state BETWEEN 2 AND 9"
)
#: The job for which the item was made first: an item that is tried again in another tree gathers the former tree's
#: results.
_FIRST = """
WITH RECURSIVE came (job, origin) AS (
    SELECT job, origin FROM job_items WHERE item = ?
    UNION ALL SELECT i.job, i.origin FROM came AS c JOIN job_items AS i ON i.item = c.origin)
SELECT job FROM came WHERE origin IS NULL
"""


def gathered_payload(connection: sqlite3.Connection, fed: FedJob, tree: str) -> bytes:
    """The payload of a gathering item, in the order of parents and their items. Reads no more results than fit."""
    parents = connection.execute(
        "SELECT o.job, o.name, o.succeeded, o.failed FROM job_parents AS p JOIN jobs AS o ON o.job = p.parent"
        " WHERE p.job = ? ORDER BY o.job",
        (fed.job,),
    ).fetchall()
    room = gathering.room_for(fed.prefix, fed.suffix, fed.most)
    results = _results(connection, [job for job, *_ in parents])
    found = gathering.within(results, sum(succeeded for _, _, succeeded, _ in parents), room)
    return gathering.payload_of(fed.prefix, fed.suffix, found, tree, (GatheredJob(*each) for _, *each in parents))


def _results(connection: sqlite3.Connection, jobs: Sequence[int]) -> Iterator[bytes]:
    for job in jobs:
        rows = connection.execute(
            "SELECT r.result FROM job_items AS i JOIN job_results AS r ON r.item = i.item WHERE i.job = ?"
            " ORDER BY i.item",
            (job,),
        )
        for (result,) in rows:
            yield bytes(result)


def gathered(connection: sqlite3.Connection, holder: JobHolder, after: str, limit: int, max_bytes: int) -> ResultPage:
    """Returns a page of the results that a run's item gathers. Raises Conflict for a run that has no such item."""
    item = refusals.check_holder(holder, refusals.reads_nothing)
    if connection.execute(_HELD, (item, holder.fence)).fetchone() is None:
        raise refusals.reads_nothing(holder)
    first = connection.execute(_FIRST, (item,)).fetchone()
    if first is None:
        raise refusals.gathers_no_more(holder)
    jobs = connection.execute(
        "SELECT o.place, o.job, o.name FROM job_parents AS p JOIN jobs AS o ON o.job = p.parent WHERE p.job = ?"
        " ORDER BY o.place",
        first,
    ).fetchall()
    return page(connection, [FinishedJob(*each) for each in jobs], after, limit, max_bytes)
