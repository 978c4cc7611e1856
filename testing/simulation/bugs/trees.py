"""Mistakes with trees of jobs, in the queue's own file."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from itertools import count
from typing import Any
from weakref import WeakValueDictionary

from ....model.claim import State
from ....model.job import ResultPage
from ....stores.jobs.rules.ending import next_step
from ....stores.jobs.rules.feeding import NOTHING
from ....stores.jobs.rules.redriving import ItemStands, why_not
from ....stores.jobs.sqlite import advance as advance_
from ....stores.jobs.sqlite import ends as ends_
from ....stores.jobs.sqlite import gather as gather_
from ....stores.jobs.sqlite import jobs as jobs_
from ....stores.jobs.sqlite import queries
from ....stores.jobs.sqlite import redrive as redrive_
from ....stores.jobs.sqlite import retry as retry_
from ....stores.jobs.sqlite import trees as trees_
from ....stores.jobs.sqlite.callback import tell
from ....stores.jobs.sqlite.due_jobs import DueJobs
from ....stores.jobs.sqlite.ends import ItemEnd
from ....stores.jobs.sqlite.memory import JobMemory
from ....stores.jobs.sqlite.settling import settle_with_jobs
from ....stores.queue.ids import id_number
from ....stores.queue.sqlite import claim as claim_
from ....stores.queue.sqlite import leases as leases_
from ....stores.queue.sqlite import queue as queue_
from ....stores.queue.sqlite.queue import SqliteQueue
from ..planting import Bug, bug, instead

# ---- additions


@bug
def _an_addition_knows_its_tree_from_before_the_seal() -> Bug:
    """Reads the row of the job in another transaction than it writes in."""
    real, read = trees_._find, dict[tuple[int, str, str], Any]()

    def find(connection: Any, tree: str, name: str) -> Any:
        row = real(connection, tree, name)
        former = read.setdefault((id(connection), tree, name), row)
        return (*row[:2], *former[2:5], row[5])

    return instead(trees_, "_find", find)


@bug
def _an_addition_that_is_made_again_adds_again() -> Bug:
    real, calls = trees_.add, count()

    def add(connection: Any, memory: Any, found: Any, token: str, *given: Any) -> int:
        return real(connection, memory, found, f"{token}-{next(calls)}", *given)

    return instead(trees_, "add", add)


# ---- ends of items


@bug
def _two_last_items_that_end_at_once_each_see_the_other_one_pend() -> Bug:
    real = ends_._count

    def counted(connection: Any, memory: Any, job: int, succeeded: int, failed: int) -> None:
        before = job in memory.jobs.due
        real(connection, memory, job, succeeded, failed)
        if succeeded + failed > 1 and not before:
            connection.execute("UPDATE jobs SET due = 0 WHERE job = ?", (job,))
            memory.jobs.due.discard(job)

    return instead(ends_, "_count", counted)


@bug
def _a_settlement_under_an_older_fence_ends_its_item() -> Bug:
    real = settle_with_jobs

    def settle(connection: Any, memory: Any, fence: int, succeeded: Any, others: Any, now: int) -> list[str]:
        refused = real(connection, memory, fence, succeeded, others, now)
        results = {each.id: each.result for each in others if each.state is State.SUCCESS}
        late = [ItemEnd(id_number(id), True, results[id] or NOTHING) for id in refused if id in results]
        ends_.note_ends(connection, memory, late, now)
        return refused

    return instead(queue_, "settle_with_jobs", settle)


@bug
@contextlib.contextmanager
def _items_are_made_of_a_result_after_its_transaction() -> Iterator[None]:
    make, collect = ends_.make, SqliteQueue._collect

    def later(connection: Any, memory: Any, born: Any, now: int) -> Counter[int]:
        memory.jobs.__dict__.setdefault("later", []).append((now, born))
        return Counter()

    def and_make(self: SqliteQueue, connection: Any, **options: Any) -> bool:
        now, memory = self._now(), self._memory
        waiting = memory.jobs.__dict__.get("later", [])
        memory.jobs.__dict__["later"] = [each for each in waiting if each[0] == now]
        for born in [each[1] for each in waiting if each[0] != now]:
            for job, made in make(connection, memory, born, now).items():
                connection.execute("UPDATE jobs SET pending = pending + ? WHERE job = ?", (made, job))
        return collect(self, connection, **options)

    with instead(ends_, "make", later), instead(SqliteQueue, "_collect", and_make):
        yield


@bug
@contextlib.contextmanager
def _a_result_for_which_there_is_no_room_becomes_an_item() -> Iterator[None]:
    def payload(prefix: bytes, result: bytes, suffix: bytes, most: int, job: str) -> bytes:
        return prefix + result + suffix

    with instead(ends_, "payload_of", payload):
        yield


@bug
def _a_result_for_which_there_is_no_room_fails_what_is_settled_with_it() -> Bug:
    return instead(ends_, "_unfit", lambda connection, memory, job, result: "")


@bug
def _an_item_that_is_cancelled_with_its_lease_pends_for_ever() -> Bug:
    return instead(leases_, "note_ends", lambda connection, memory, ends, now: None)


@bug
def _a_failed_item_does_not_end_its_tree() -> Bug:
    return instead(ends_, "_apply_policy", lambda connection, memory, failed: None)


# ---- other lives


@bug
def _an_item_of_a_complete_job_has_another_life() -> Bug:
    def never(stands: ItemStands, tree: str) -> str:
        return why_not(stands._replace(complete=False, ending=False), tree)

    return instead(redrive_, "why_not", never)


@bug
def _an_item_that_has_another_life_counts_as_failed_still() -> Bug:
    real = redrive_._begin

    def begin(connection: Any, life: Any, item: int) -> None:
        real(connection, life, item)
        connection.execute("UPDATE jobs SET failed = failed + 1 WHERE job = ?", (life.job,))

    return instead(redrive_, "_begin", begin)


@bug
def _the_end_of_a_former_life_ends_its_item() -> Bug:
    """Knows an item by a number of its own, and not by its life."""
    real = settle_with_jobs

    def settle(connection: Any, memory: Any, fence: int, succeeded: Any, others: Any, now: int) -> list[str]:
        refused = real(connection, memory, fence, succeeded, others, now)
        lives = "SELECT item FROM job_redrives WHERE former = ?"
        found = [connection.execute(lives, (id_number(id),)).fetchone() for id in refused]
        late = [ItemEnd(row[0], False, reason="a former life") for row in found if row is not None]
        ends_.note_ends(connection, memory, late, now)
        return refused

    return instead(queue_, "settle_with_jobs", settle)


# ---- advances


@bug
def _what_is_due_of_trees_is_not_read_when_their_queue_is_opened() -> Bug:
    real = JobMemory.reload

    def reload(self: JobMemory, connection: Any) -> None:
        real(self, connection)
        self.due = DueJobs()

    return instead(JobMemory, "reload", reload)


@bug
def _a_job_does_not_hear_that_its_parents_are_complete() -> Bug:
    return instead(advance_, "mark", lambda connection, memory, job: None)


@bug
def _a_job_waits_for_all_of_its_parents_but_one() -> Bug:
    real = next_step
    return instead(advance_, "next_step", lambda job: real(job._replace(open_parents=max(0, job.open_parents - 1))))


@bug
def _a_result_that_is_taken_apart_in_steps_loses_all_but_the_first() -> Bug:
    real = advance_._expand

    def expand(connection: Any, memory: Any, row: Any, now: int) -> int:
        wrote = real(connection, memory, row, now)
        gone = connection.execute("DELETE FROM job_expansions WHERE job = ? AND next > 0", (row.job,)).rowcount
        connection.execute("UPDATE jobs SET pending = pending - ? WHERE job = ?", (gone, row.job))
        return wrote

    return instead(advance_, "_expand", expand)


@bug
def _a_result_that_is_taken_apart_in_steps_begins_anew_when_its_store_does() -> Bug:
    """Loses the place where the taking apart goes on, as if it were not durable."""
    real = JobMemory.reload

    def reload(self: JobMemory, connection: Any) -> None:
        real(self, connection)
        connection.execute("UPDATE job_expansions SET next = 0")

    return instead(JobMemory, "reload", reload)


@bug
def _the_end_of_each_job_is_told_as_that_of_its_tree() -> Bug:
    real = advance_._complete

    def complete(connection: Any, memory: Any, row: Any, now: int) -> None:
        before = memory.jobs.open
        real(connection, memory, row, now)
        if memory.jobs.open == before:
            tell(connection, memory, row.tree, now)

    return instead(advance_, "_complete", complete)


# ---- pauses


@bug
def _items_of_a_paused_tree_are_handed_out() -> Bug:
    return instead(claim_, "_pause", lambda connection, rows: set())


@bug
def _what_waited_while_its_tree_was_paused_is_not_due_again() -> Bug:
    return instead(advance_, "_wake_some", lambda connection, memory, row, now: 0)


# ---- another try


def _with_anew(condition: str) -> Bug:
    """Has jobs that fit the condition, on the former tree's job `o`, make their item anew."""
    return instead(retry_, "_PAIRS", retry_._PAIRS.replace(retry_._ANEW, condition))


@bug
def _a_gathering_item_that_failed_alone_is_not_tried_again() -> Bug:
    return _with_anew("o.gather = 1")


@bug
def _a_gathering_item_is_tried_again_beside_those_that_it_gathers() -> Bug:
    return _with_anew("0")


class _NoLocks(WeakValueDictionary[Any, Any]):
    """Locks that nobody shares."""

    def setdefault(self, key: Any, default: Any = None) -> Any:
        return default


@bug
def _another_try_that_is_asked_for_twice_is_made_by_two() -> Bug:
    return instead(jobs_, "WeakValueDictionary", _NoLocks)


# ---- gathered results


@bug
def _a_gathering_item_that_is_tried_again_reads_the_results_of_its_own_tree() -> Bug:
    return instead(gather_, "_FIRST", "SELECT job FROM job_items WHERE item = ?")


@bug
def _a_page_of_gathered_results_begins_after_one_that_was_not_given() -> Bug:
    real = queries.page

    def page(connection: Any, jobs: Any, after: str, limit: int, max_bytes: int) -> ResultPage:
        found = real(connection, jobs, after, limit + 1, max_bytes)
        return found._replace(results=found.results[:limit])

    return instead(gather_, "page", page)
