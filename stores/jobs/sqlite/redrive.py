"""Redrives of failed items in their own trees: each continues with another workload.

An item is known by its workload, so a late settlement of the former workload finds no item and changes nothing.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from ....model.job import ItemRedrive
from ....model.redrive import ORIGIN
from ...queue.ids import id_number, id_text
from ...queue.queue import NewItem
from ...queue.sqlite.memory import Memory
from ...queue.sqlite.rows import JOB
from ...queue.sqlite.submit import submit
from ...sqlite.insert import insert
from ..rules.item_state import ItemState
from ..rules.redriving import ItemStands, why_not


class _Life(NamedTuple):
    """An item to be redriven: the workload that failed, its job and tree, and its next workload."""

    former: int
    job: int
    tree: int
    new: NewItem


def redrive(
    connection: sqlite3.Connection, memory: Memory, workloads: Sequence[str], max_waiting: int, now: int
) -> list[ItemRedrive]:
    """Redrives items; returns the answers in the order of the workloads."""
    answers: dict[str, ItemRedrive] = {}
    lives: dict[str, _Life] = {}
    for workload in workloads:
        if workload not in answers and workload not in lives:
            found = _look(connection, memory, workload)
            if isinstance(found, ItemRedrive):
                answers[workload] = found
            else:
                lives[workload] = found
    if lives:
        made = submit(connection, memory, [life.new for life in lives.values()], max_waiting, now, JOB)
        for (workload, life), one in zip(lives.items(), made, strict=True):
            _begin(connection, life, id_number(one.id))
            answers[workload] = ItemRedrive(one.id)
    return [answers[workload] for workload in workloads]


def _look(connection: sqlite3.Connection, memory: Memory, workload: str) -> ItemRedrive | _Life:
    number = id_number(workload)
    known = connection.execute("SELECT item FROM job_redrives WHERE former = ?", (number,)).fetchone()
    if known is not None:
        return ItemRedrive(id_text(known[0]))
    row = connection.execute(
        "SELECT i.state, j.complete_at IS NOT NULL, t.ending <> '', t.id, j.job, t.tree, j.kind, p.payload, p.key"
        " FROM job_items AS i JOIN jobs AS j ON j.job = i.job JOIN job_trees AS t ON t.tree = j.tree"
        " LEFT JOIN job_payloads AS p ON p.item = i.item WHERE i.item = ?",
        (number,),
    ).fetchone()
    if row is None:
        return ItemRedrive()
    state, complete, ending, tree_id, job, tree, kind, payload, key = row
    why = why_not(ItemStands(state, bool(complete), bool(ending)), tree_id)
    if why:
        return ItemRedrive(refused=why)
    headers = ((ORIGIN, first_life(connection, workload)),)
    return _Life(number, job, tree, NewItem(memory.kinds.kinds[kind], bytes(payload), key=key, headers=headers))


def first_life(connection: sqlite3.Connection, workload: str) -> str:
    """The first workload of the item that has this workload now."""
    life = id_number(workload)
    while row := connection.execute("SELECT former FROM job_redrives WHERE item = ?", (life,)).fetchone():
        (life,) = row
    return id_text(life)


def _begin(connection: sqlite3.Connection, life: _Life, item: int) -> None:
    connection.execute(
        f"UPDATE job_items SET item = ?, state = {ItemState.PENDING}, reason = '' WHERE item = ?", (item, life.former)
    )
    connection.execute("DELETE FROM job_payloads WHERE item = ?", (life.former,))
    insert(connection, "job_redrives (former, item, job)", [(life.former, item, life.job)])
    connection.execute("UPDATE jobs SET pending = pending + 1, failed = failed - 1 WHERE job = ?", (life.job,))
    connection.execute("UPDATE job_trees SET failed = failed - 1 WHERE tree = ?", (life.tree,))
