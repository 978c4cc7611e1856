"""Reads of items of a queue on SQLite, and of what is beside them: their status, attempts, headers, and results that
did not fit."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from ....model.claim import State
from ....model.tries import Try
from ....model.workload import Headers
from ...jobs.rules.item_state import ItemState
from ..ids import created_at, id_number, id_text
from ..lifecycle import LEASED, next_trigger
from ..queue import Status
from .claim import headers_of
from .memory import Memory
from .rows import BLOCKED, IDS, json_text


def status(memory: Memory, id: str, row: Any, now: int, monotonic: int) -> Status:
    """The status of an item, of a row of `find.COLUMNS` without the id. `now` and `monotonic` are µs of both clocks."""
    state, kind, attempts, crashes, trigger, ended, reason, progress, due, fence = row
    until = memory.leased_until(fence, id_number(id)) if state in LEASED else 0
    if until:
        until += now - monotonic
    return Status(
        id=id,
        state=State(state),
        kind=memory.kinds.kinds[kind],
        attempts=attempts,
        crashes=crashes,
        created_at=min(created_at(id_number(id)), now / 1e6),
        due=(next_trigger(State(state), due if (trigger or 0) >= BLOCKED else trigger, until) or 0) / 1e6,
        ended_at=(ended or 0) / 1e6,
        reason=reason or "",
        progress=progress or "",
    )


def held(connection: sqlite3.Connection) -> dict[str, int]:
    """Number of items of each tenant that have not ended."""
    live = "SELECT kind, count(*) AS n FROM tasks WHERE ended IS NULL GROUP BY kind"
    return dict(
        connection.execute(f"SELECT k.tenant, sum(l.n) FROM ({live}) AS l JOIN kinds AS k USING (kind) GROUP BY 1")
    )


def tries(connection: sqlite3.Connection, ids: Sequence[str]) -> dict[str, tuple[Try, ...]]:
    """The past attempts of items, by id."""
    rows = connection.execute(f"SELECT id, tries FROM tries WHERE id IN {IDS}", (_numbers(ids),)).fetchall()
    return {id_text(number): tuple(Try(*fields) for fields in json.loads(text)) for number, text in rows}


def headers(connection: sqlite3.Connection, ids: Sequence[str]) -> dict[str, Headers]:
    """The headers of items that have some, by id."""
    which = f"SELECT id, headers FROM entities WHERE headers <> '' AND id IN {IDS}"
    rows = connection.execute(which, (_numbers(ids),)).fetchall()
    return {id_text(number): headers_of(told) for number, told in rows}


def unfit(connection: sqlite3.Connection, fence: int, ids: Sequence[str]) -> dict[str, str]:
    """Items of jobs that were settled as successes under this fence but failed because of their results, with the
    reason, by id."""
    rows = connection.execute(
        "SELECT i.item, i.reason FROM job_items AS i JOIN tasks AS t ON t.id = i.item"
        f" WHERE i.item IN {IDS} AND i.state = {ItemState.FAILED} AND t.fence = ?"
        f" AND t.state = {State.FATAL_FAILURE:d}",
        (_numbers(ids), fence),
    ).fetchall()
    return {id_text(number): reason for number, reason in rows}


def _numbers(ids: Sequence[str]) -> str:
    return json_text([id_number(each) for each in ids])
