"""Events of trees on SQLite: written in the transaction that they tell of, and taken by the relay."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from ....model.job import JobEvent
from ...queue.ids import id_text
from ...queue.sqlite.memory import Memory
from ...queue.sqlite.rows import IDS, json_text
from ...sqlite.insert import insert
from ..jobs import JobEventRow
from ..rules.events import BITS, event_of
from .memory import HeardJob


def tell_items(
    connection: sqlite3.Connection, memory: Memory, ends: Iterable[tuple[HeardJob, int, bool, str]], now: int
) -> None:
    """Writes events of ended items. `ends`: job, item, whether it succeeded, and why it failed."""
    rows: list[tuple[int, str, bytes]] = []
    for job, item, succeeded, reason in ends:
        event = JobEvent.ITEM_SUCCEEDED if succeeded else JobEvent.ITEM_FAILED
        if job.bits & BITS[event]:
            more = {} if succeeded else {"reason": reason}
            payload = event_of(event, job.tree, job.type, job.name, id_text(item), now / 1e6, **more)
            rows.append((BITS[event], job.tree, payload))
    _put(connection, memory, rows)


def tell_complete(connection: sqlite3.Connection, memory: Memory, job: int, now: int) -> None:
    """Writes the event of a complete job."""
    heard = memory.jobs.job(connection, job).heard
    if heard is None or not heard.bits & BITS[JobEvent.JOB_COMPLETED]:
        return
    succeeded, failed = connection.execute("SELECT succeeded, failed FROM jobs WHERE job = ?", (job,)).fetchone()
    payload = event_of(
        JobEvent.JOB_COMPLETED, heard.tree, heard.type, heard.name, "", now / 1e6, succeeded=succeeded, failed=failed
    )
    _put(connection, memory, [(BITS[JobEvent.JOB_COMPLETED], heard.tree, payload)])


def _put(connection: sqlite3.Connection, memory: Memory, rows: Sequence[tuple[int, str, bytes]]) -> None:
    if rows:
        insert(connection, "job_events (bit, tree, payload)", rows)
        memory.jobs.told = True


def take(connection: sqlite3.Connection, memory: Memory, limit: int) -> list[JobEventRow]:
    """Returns the oldest events. Only one process has the file, so no other relay takes them."""
    found = connection.execute(
        "SELECT number, bit, tree, payload FROM job_events ORDER BY number LIMIT ?", (limit,)
    ).fetchall()
    memory.jobs.told = bool(found)
    return [JobEventRow(*row) for row in found]


def forget(connection: sqlite3.Connection, numbers: Sequence[int]) -> None:
    """Removes events that are in their streams."""
    connection.execute(f"DELETE FROM job_events WHERE number IN {IDS}", (json_text([*numbers]),))
