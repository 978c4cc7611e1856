"""Deduplication of submissions: one row for each dedupe key, and one row for all tokens of a large call.

A client that submits many workloads in one call gives them a token and a count (sdk/chunks.py), and
gateway/submission_columns.py takes the call apart again. Keys of that form are a *run*: its items have consecutive
ids too, so the first and last of both tell which item each key belongs to, whichever other items come with it later.
A row for each item would take a third of the time of storing it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from ....model.tenant_key import KeyRule, tenant_key
from ...sqlite.insert import insert
from ..admission import SUBMISSION_PREFIX, dedupe_name
from ..queue import NewItem
from .rows import IDS, json_text

#: Fewest items of a run: a row for each of fewer takes no longer than to recognise the run.
LEAST = 64
#: Hexadecimal digits of the count at the end of a token.
DIGITS = 6

#: Parameters: function, first and last key. Gives a row if one of the keys is known. Runs do not overlap, so it is
#: enough to look at the last run that begins before the end of this one.
_MEETS = """
SELECT 1 WHERE coalesce((SELECT last >= ?2 AND length(last) = length(?2) FROM runs WHERE function = ?1 AND first <= ?3
    ORDER BY first DESC LIMIT 1), 0)
  OR EXISTS (SELECT 1 FROM dedupe WHERE function = ?1 AND key BETWEEN ?2 AND ?3)
"""
#: End of the statement that inserts ⟨function, key, id⟩: skips keys that belong to a run.
_NEW = """
WHERE NOT coalesce((SELECT r.last >= v.column2 AND length(r.last) = length(v.column2) FROM runs AS r
    WHERE r.function = v.column1 AND r.first <= v.column2 ORDER BY r.first DESC LIMIT 1), 0)
ON CONFLICT DO NOTHING
"""
_FIND = """
SELECT j.value ->> 0, j.value ->> 1, d.id, r.first, r.id FROM json_each(?) AS j
LEFT JOIN dedupe AS d ON d.function = j.value ->> 0 AND d.key = j.value ->> 1
LEFT JOIN runs AS r ON r.function = j.value ->> 0 AND r.first =
    (SELECT max(first) FROM runs WHERE function = j.value ->> 0 AND first <= j.value ->> 1)
"""
_FORGET = """
DELETE FROM runs WHERE last_id BETWEEN ? AND ?
    AND NOT EXISTS (SELECT 1 FROM tasks WHERE tasks.id BETWEEN runs.id AND runs.last_id)
"""


class _DedupeRun(NamedTuple):
    function: str
    first: str
    last: str


def stems(connection: sqlite3.Connection) -> set[tuple[str, str]]:
    """Function of each run, and the beginning of its tokens."""
    return {(function, first[:-DIGITS]) for function, first in connection.execute("SELECT function, first FROM runs")}


def note(
    connection: sqlite3.Connection,
    runs: set[tuple[str, str]],
    items: Sequence[NewItem],
    numbers: Sequence[int],
    rule: KeyRule = tenant_key,
) -> dict[tuple[str, str], int]:
    """Notes the item of each dedupe key. Returns the ids of keys, by ⟨function, key⟩, if some were known before or come
    twice; nearly always none was, and one or two statements tell so. `runs`: function and stem of each run, kept up to
    date. `rule`: the key of a tenant as it is kept."""
    run = _run(items)
    if run is not None and connection.execute(_MEETS, run).fetchone() is None:
        connection.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?)", (*run, numbers[0], numbers[-1]))
        runs.add((run.function, run.first[:-DIGITS]))
        return {}
    wanted = [
        (item.kind.function, dedupe_name(item, rule), number)
        for item, number in zip(items, numbers, strict=True)
        if item.dedupe_key
    ]
    if not wanted:
        return {}
    before = connection.total_changes
    if runs and not runs.isdisjoint([(function, key[:-DIGITS]) for function, key, _ in wanted]):
        insert(connection, "dedupe (function, key, id)", wanted, select=_NEW)
    else:
        insert(connection, "dedupe (function, key, id)", wanted, behind="ON CONFLICT DO NOTHING")
    if connection.total_changes - before == len(wanted):
        return {}
    found = {}
    for function, key, id, first, first_id in connection.execute(_FIND, (json_text(wanted),)).fetchall():
        if id is not None:
            found[function, key] = id
        elif (count := _count(key)) >= 0:  # else it is no client's token, so it is in no run
            found[function, key] = first_id + count - _count(first)
    return found


def forget(connection: sqlite3.Connection, runs: set[tuple[str, str]], gone: Sequence[int]) -> None:
    """Removes the dedupe keys of these removed items, whose ids are in order, and the runs of which no item is left."""
    connection.execute(f"DELETE FROM dedupe WHERE id IN {IDS}", (json_text(gone),))
    if runs and connection.execute(_FORGET, (gone[0], gone[-1] + 16**DIGITS)).rowcount:
        runs.clear()
        runs.update(stems(connection))


def _run(items: Sequence[NewItem]) -> _DedupeRun | None:
    """The run that the items make, or None."""
    if len(items) < LEAST:
        return None
    first, function = items[0].dedupe_key, items[0].kind.function
    stem = first[:-DIGITS]
    if not stem.startswith(SUBMISSION_PREFIX) or (begin := _count(first)) < 0:
        return None
    for number, item in enumerate(items, begin):
        if item.dedupe_key != f"{stem}{number:06x}" or item.kind.function != function:
            return None
    return _DedupeRun(function, first, items[-1].dedupe_key)


def _count(token: str) -> int:
    """The count at the end of a token; -1: it has none."""
    try:
        return int(token[-DIGITS:], 16)
    except ValueError:
        return -1
