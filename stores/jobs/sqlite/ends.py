"""Ends of items: an item's end, its children, its result and the counters of its job, all in the transaction that ends
its workload.

Order: the workload under its fence (the queue did that); then the item, from pending to its end (if no row changed it
had ended already, and nothing follows); then result, children with their workloads, and counters.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from ....model.claim import Settle, State
from ...queue.ids import id_number
from ...queue.queue import NewItem
from ...queue.sqlite.memory import Memory
from ...queue.sqlite.rows import IDS, JOB, json_text
from ...queue.sqlite.submit import UNBOUNDED, submit
from ...sqlite.insert import insert
from ..rules.ending import ends_tree
from ..rules.feeding import NOTHING, NoList, TooLarge, elements, payload_of
from ..rules.item_state import ItemState
from ..rules.refusals import why_ends
from .events import tell_items
from .memory import FedJob

#: Most characters of an item's reason.
REASON = 500

_decode = msgspec.json.Decoder().decode


class ItemEnd(NamedTuple):
    """The end of an item's workload. `reason`: why it failed."""

    item: int
    succeeded: bool
    result: bytes = NOTHING
    reason: str = ""


class Born(NamedTuple):
    """A new item that a parent's result makes: its job, the parent's item, its index among the parts, and its
    payload."""

    fed: FedJob
    origin: int | None
    part: int
    payload: bytes


def results_of(
    connection: sqlite3.Connection, memory: Memory, others: Sequence[Settle]
) -> tuple[dict[int, bytes], list[Settle]]:
    """Splits settlements into results of successes, by item, and the rest. A result of which no item can be made
    becomes a failure, before anything is written."""
    won = {id_number(each.id): each for each in others if each.result is not None and each.state is State.SUCCESS}
    rest = [each for each in others if each.result is None or each.state is not State.SUCCESS]
    results = {number: each.result or NOTHING for number, each in won.items()}
    jobs = memory.jobs
    if jobs.open and results and (jobs.each or max(map(len, results.values())) > jobs.fits):
        for item, job in _of(connection, results):
            why = _unfit(connection, memory, job, results[item])
            if why:
                jobs.unfit += 1
                del results[item]
                rest.append(won[item]._replace(state=State.FATAL_FAILURE, reason=why, result=None))
    return results, rest


def _of(connection: sqlite3.Connection, items: Iterable[int]) -> list[tuple[int, int]]:
    """The pending items among these workloads, with their jobs."""
    (text,) = connection.execute(
        f"SELECT json_group_array(json_array(item, job)) FROM job_items WHERE item IN {IDS}"
        f" AND state = {ItemState.PENDING}",
        (json_text([*items]),),
    ).fetchone()
    found: list[tuple[int, int]] = _decode(text)
    return found


def _unfit(connection: sqlite3.Connection, memory: Memory, job: int, result: bytes) -> str:
    """The reason why no item can be made of a result; empty: items can be made."""
    for fed in memory.jobs.job(connection, job).feeds:
        try:
            for each in elements(result, fed.name) if fed.each else [result]:
                payload_of(fed.prefix, each, fed.suffix, fed.most, fed.name)
        except (TooLarge, NoList) as error:
            return str(error)
    return ""


def note_ends(connection: sqlite3.Connection, memory: Memory, ends: Sequence[ItemEnd], now: int) -> None:
    """Ends those of these items that are pending. `advance` does the steps that are due then."""
    if not ends:
        return
    by_item = {end.item: end for end in ends}
    rows = sorted(_of(connection, by_item))
    if not rows:
        return
    _write(connection, [by_item[item] for item, _ in rows])
    succeeded: Counter[int] = Counter()
    failed: Counter[int] = Counter()
    kept: list[tuple[int, bytes]] = []
    born: list[Born] = []
    expansions: list[tuple[int, int, bytes]] = []
    jobs = memory.jobs.jobs(connection, {job for _, job in rows})
    for item, job in rows:
        end = by_item[item]
        if not end.succeeded:
            failed[job] += 1
            continue
        succeeded[job] += 1
        known = jobs[job]
        if known.keeps:
            kept.append((item, end.result))
        for fed in () if known.ending else known.feeds:
            if fed.each:
                expansions.append((fed.job, item, end.result))
            else:
                payload = payload_of(fed.prefix, end.result, fed.suffix, fed.most, fed.name)
                born.append(Born(fed, item, 0, payload))
    insert(connection, "job_results (item, result)", kept)
    more = make(connection, memory, born, now)
    insert(connection, "job_expansions (job, origin, result)", expansions)
    more.update(job for job, _, _ in expansions)
    for job in {job for _, job in rows}:
        _count(connection, memory, job, succeeded[job], failed[job])
    for job, count in more.items():
        connection.execute("UPDATE jobs SET pending = pending + ? WHERE job = ?", (count, job))
    for job in {job for job, _, _ in expansions}:
        mark(connection, memory, job)
    heard = ((told, item, by_item[item]) for item, job in rows if (told := jobs[job].heard))
    tell_items(connection, memory, ((job, item, end.succeeded, end.reason[:REASON]) for job, item, end in heard), now)
    if failed:
        _apply_policy(connection, memory, failed)


def keep_payloads(connection: sqlite3.Connection, ends: Sequence[ItemEnd]) -> None:
    """Keeps the payloads of failed items, before their workloads lose them."""
    lost = [end.item for end in ends if not end.succeeded]
    if lost:
        connection.execute(
            f"INSERT OR IGNORE INTO job_payloads SELECT id, payload, key FROM entities WHERE id IN {IDS}",
            (json_text(lost),),
        )


def _write(connection: sqlite3.Connection, ends: Sequence[ItemEnd]) -> None:
    """Moves items from pending to their ends."""
    won = [end.item for end in ends if end.succeeded]
    if won:
        connection.execute(f"UPDATE job_items SET state = {ItemState.SUCCEEDED} WHERE item IN {IDS}", (json_text(won),))
    lost = [(end.item, end.reason[:REASON]) for end in ends if not end.succeeded]
    if lost:
        connection.execute(
            f"UPDATE job_items SET state = {ItemState.FAILED}, reason = j.value ->> 1 FROM json_each(?) AS j"
            " WHERE job_items.item = j.value ->> 0",
            (json_text(lost),),
        )


def make(connection: sqlite3.Connection, memory: Memory, born: Sequence[Born], now: int) -> Counter[int]:
    """Makes items with their workloads; returns how many for each job. The caller counts them in the jobs' rows."""
    if not born:
        return Counter()
    kinds = memory.kinds.kinds
    items = [NewItem(kinds[each.fed.kind], each.payload) for each in born]
    made = submit(connection, memory, items, UNBOUNDED, now, JOB, born=True)
    rows = [(int(one.id, 16), each.fed.job, each.origin, each.part) for one, each in zip(made, born, strict=True)]
    insert(connection, "job_items (item, job, origin, part)", rows)
    return Counter(each.fed.job for each in born)


def _count(connection: sqlite3.Connection, memory: Memory, job: int, succeeded: int, failed: int) -> None:
    due, tree = connection.execute(
        "UPDATE jobs SET pending = pending - ?2 - ?3, succeeded = succeeded + ?2, failed = failed + ?3,"
        " due = due OR pending = ?2 + ?3 WHERE job = ?1 RETURNING due, tree",
        (job, succeeded, failed),
    ).fetchone()
    if due:
        memory.jobs.due.add(tree, job)


def mark(connection: sqlite3.Connection, memory: Memory, job: int) -> None:
    """Marks a job that has a due step."""
    (tree,) = connection.execute("UPDATE jobs SET due = 1 WHERE job = ? RETURNING tree", (job,)).fetchone()
    memory.jobs.due.add(tree, job)


def _apply_policy(connection: sqlite3.Connection, memory: Memory, failed: Counter[int]) -> None:
    by_tree: Counter[int] = Counter()
    for job, count in failed.items():
        by_tree[memory.jobs.job(connection, job).tree] += count
    for tree, count in by_tree.items():
        policy, most, all_failed, ending = connection.execute(
            "UPDATE job_trees SET failed = failed + ? WHERE tree = ? RETURNING policy, most_failed, failed, ending",
            (count, tree),
        ).fetchone()
        if not ending and ends_tree(policy, most, all_failed):
            end_tree(connection, memory, tree, "failed", why_ends(policy, all_failed, most))


def end_tree(connection: sqlite3.Connection, memory: Memory, tree: int, ending: str, why: str) -> None:
    """Ends a tree before its time. This takes effect at once, because the tree is paused from now on; its rows follow
    step by step."""
    connection.execute(
        "UPDATE job_trees SET ending = ?, why = ?, paused = 1 WHERE tree = ?", (ending, why[:REASON], tree)
    )
    memory.jobs.paused.add(tree)
    connection.execute("UPDATE jobs SET due = 1, looked = -1 WHERE tree = ? AND complete_at IS NULL", (tree,))
    jobs = connection.execute("SELECT job FROM jobs WHERE tree = ? AND complete_at IS NULL", (tree,)).fetchall()
    for (job,) in jobs:
        memory.jobs.due.add(tree, job)
    memory.jobs.changed()


__all__ = ["Born", "ItemEnd", "end_tree", "keep_payloads", "make", "mark", "note_ends", "results_of"]
