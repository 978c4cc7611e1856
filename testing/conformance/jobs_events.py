"""Laws of the events of jobs: an event of an item or a job waits beside them until a stream has it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from ...model.claim import Settle, State
from ...model.errors import InvalidRequest
from ...model.job import JobItem, TreeRetry
from ...stores.jobs.jobs import JobEventRow, JobOutbox
from ...stores.jobs.rules.events import stream_of
from .jobs_engine import JobsEngine, fill, job, make, shown, take, tree_of, work

ALL = ("item_succeeded", "item_failed", "job_completed")


def outbox(engine: JobsEngine) -> JobOutbox:
    jobs = engine.jobs
    assert isinstance(jobs, JobOutbox)
    return jobs


def told(rows: Sequence[JobEventRow]) -> list[tuple[Any, ...]]:
    """Each event with its job, and the reason of a failure or the counts of ended items."""
    events = [json.loads(row.payload)["event"] for row in rows]
    for row, event in zip(rows, events, strict=True):
        assert stream_of(row.bit) == f"jobs.{event['event']}"
        assert event["tree"] == row.tree
    more = [event.get("reason", (event.get("succeeded"), event.get("failed"))) for event in events]
    return [(event["event"], event["job"], why) for event, why in zip(events, more, strict=True)]


class JobEventsLaws:
    """Laws of the events of jobs. An engine's test derives from them and gives a fixture `engine`."""

    async def test_each_end_of_an_item_and_of_a_job_is_told_once_in_its_order(self, engine: JobsEngine) -> None:
        # Given a tree that tells of everything, and one that tells of nothing
        tree = await make(engine, tree_of(job("a"), job("b", "a"), events=ALL))
        silent = await make(engine, tree_of(job("a"), id="silent"))
        for each in (tree, silent):
            await fill(engine, each, b"1", b"2")
            await engine.jobs.seal(each.id, "")
        # When all of both end, over a restart
        await work(engine, tree, lambda name, payload: None if payload == b"2" else payload)
        await work(engine, silent, lambda name, payload: payload)
        await engine.reopen()
        await shown(engine, tree)
        # Then the first one's events wait, each once, a job's behind those of its items
        rows = await outbox(engine).take_events(100, 30.0)
        assert {(event, name, str(why)) for event, name, why in told(rows)} == {
            ("item_succeeded", "a", "(None, None)"),
            ("item_failed", "a", "it fails"),
            ("item_succeeded", "b", "(None, None)"),
            ("job_completed", "a", "(1, 1)"),
            ("job_completed", "b", "(1, 0)"),
        }
        assert len({json.loads(row.payload)["event"]["id"] for row in rows}) == 5
        assert told(rows)[-1] == ("job_completed", "b", (1, 0))
        # And they are gone when somebody says that a stream has them
        await outbox(engine).forget_events([row.number for row in rows])
        await engine.pass_time(60)
        assert await outbox(engine).take_events(100, 30.0) == []

    async def test_events_that_were_taken_and_not_forgotten_are_taken_again(self, engine: JobsEngine) -> None:
        tree = await make(engine, tree_of(job("a"), events=("item_succeeded",)))
        await fill(engine, tree, b"1", b"2", b"3")
        await work(engine, tree, lambda name, payload: payload)
        first = await outbox(engine).take_events(2, 30.0)
        await engine.reopen()
        await engine.pass_time(60)
        again = await outbox(engine).take_events(100, 30.0)
        assert (len(first), len(again)) == (2, 3)
        assert again[:2] == first

    async def test_only_what_was_asked_for_is_told(self, engine: JobsEngine) -> None:
        tree = await make(engine, tree_of(job("a"), events=("item_failed",)))
        await fill(engine, tree, b"1", b"2")
        await engine.jobs.seal(tree.id, "")
        await work(engine, tree, lambda name, payload: None if payload == b"1" else payload)
        assert told(await outbox(engine).take_events(100, 30.0)) == [("item_failed", "a", "it fails")]
        with pytest.raises(InvalidRequest, match="item_faild"):
            await make(engine, tree_of(job("a"), id="odd", events=("item_faild",)))

    async def test_another_try_tells_too_and_a_late_end_tells_nothing(self, engine: JobsEngine) -> None:
        tree = await make(engine, tree_of(job("a"), events=ALL))
        await engine.jobs.add(tree.id, "", "call", [JobItem(b"1")])
        leased = await take(engine, tree)
        assert leased is not None
        bad = [Settle(leased.ids[0], leased.fence, State.FATAL_FAILURE, reason="bad")]
        for _ in range(2):
            await engine.queue.settle(leased.fence, [], bad)
        await engine.jobs.seal(tree.id, "")
        await shown(engine, tree)
        rows = await outbox(engine).take_events(100, 30.0)
        assert [event for event, _, _ in told(rows)] == ["item_failed", "job_completed"]
        await outbox(engine).forget_events([row.number for row in rows])
        assert await engine.jobs.retry(tree.id, "again", "") == TreeRetry("again", 1)
        await work(engine, tree, lambda name, payload: payload)
        rows = await outbox(engine).take_events(100, 30.0)
        assert {row.tree for row in rows} == {"again"}
        assert [event for event, _, _ in told(rows)] == ["item_succeeded", "job_completed"]
