"""Deduplication of submissions: the dedupe keys, one row each, and the tokens of a large call, one row for all.

A client that submits many gives the workloads of a call one token and a count: sdk/chunks.py and
gateway/submission_columns.py, which takes them apart, write them as they are read here. What reads so here is a *run*:
its items have ids in a row too, so the first and the last of both tell of each one whose it is, whoever brings it again
and with whatever else. A row for each item would take a third of the time of storing it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from ...sqlite.insert import insert
from ..admission import SUBMISSION_PREFIX
from ..queue import NewItem
from .rows import IDS, json_text

#: Fewer items are no run: a row each takes no longer than to see it.
LEAST = 64
#: Hexadecimal digits of the count at the end of a token.
DIGITS = 6

#: Given function, first and last key: a row when one of the keys is known. Runs do not overlap, so the last one that
#: begins before the end of this one tells of all.
_MEETS = """
SELECT 1 WHERE coalesce((SELECT last >= ?2 AND length(last) = length(?2) FROM runs WHERE function = ?1 AND first <= ?3
    ORDER BY first DESC LIMIT 1), 0)
  OR EXISTS (SELECT 1 FROM dedupe WHERE function = ?1 AND key BETWEEN ?2 AND ?3)
"""
#: What follows the values of ⟨function, key, id⟩ that are of no run.
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
    """Of each run its function and what its tokens begin with."""
    return {(function, first[:-DIGITS]) for function, first in connection.execute("SELECT function, first FROM runs")}


def note(
    connection: sqlite3.Connection, runs: set[tuple[str, str]], items: Sequence[NewItem], numbers: Sequence[int]
) -> dict[tuple[str, str], int]:
    """Notes whose each dedupe key is. Returns what is known of ⟨function, key⟩, if some were somebody's before or come
    twice; nearly always none was, and one statement or two say so. `runs`: their stems, kept up to date."""
    run = _run(items)
    if run is not None and connection.execute(_MEETS, run).fetchone() is None:
        connection.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?)", (*run, numbers[0], numbers[-1]))
        runs.add((run.function, run.first[:-DIGITS]))
        return {}
    wanted = [
        (item.kind.function, item.dedupe_key, number)
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
        elif (count := _count(key)) >= 0:  # else it is no token of a client's, and nobody's
            found[function, key] = first_id + count - _count(first)
    return found


def forget(connection: sqlite3.Connection, runs: set[tuple[str, str]], gone: Sequence[int]) -> None:
    """The rows of these items are gone, in the order of their ids; so are runs of which none is left."""
    connection.execute(f"DELETE FROM dedupe WHERE id IN {IDS}", (json_text(gone),))
    if runs and connection.execute(_FORGET, (gone[0], gone[-1] + 16**DIGITS)).rowcount:
        runs.clear()
        runs.update(stems(connection))


def _run(items: Sequence[NewItem]) -> _DedupeRun | None:
    """What the items are, if it is one run."""
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
