"""Laws of a retry of a tree that was cut off before its answer: the next retry goes on with it, and nothing runs
twice."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from ...model.errors import Conflict
from ...model.job import TreeRetry, TreeSpec
from ...stores.jobs.rules import retrying
from .jobs_engine import JobsEngine, fill, job, make, shown, tree_of, work


async def failed(engine: JobsEngine, items: int) -> TreeSpec:
    """A tree that is over, and whose items all failed."""
    tree = await make(engine, tree_of(job("a"), job("b", "a")))
    await fill(engine, tree, *(f"{n}".encode() for n in range(items)))
    await engine.jobs.seal(tree.id, "")
    await work(engine, tree, lambda name, payload: None, rounds=100)
    return tree


class JobsRetryLaws:
    """Laws of retries of trees. An engine's test derives from them and gives a fixture `engine`."""

    async def test_another_try_that_was_cut_off_goes_on_though_another_id_is_asked_for(
        self, engine: JobsEngine
    ) -> None:
        # Given another try that was begun, and cut off before it was answered
        tree = await failed(engine, 2500)
        begun = asyncio.create_task(engine.jobs.retry(tree.id, "first", "ann"))
        while await engine.jobs.show("first") is None:
            pass
        begun.cancel()
        with suppress(asyncio.CancelledError):
            await begun
        # When it is asked for again by who does not know that id
        assert await engine.jobs.retry(tree.id, "second", "bob") == TreeRetry("first", 2500)
        # Then there is one other tree, filled and sealed, which runs each item once
        assert await engine.jobs.show("second") is None
        ran = await work(engine, tree_of(*tree.jobs), lambda name, payload: payload.strip(b"<>"), rounds=100)
        assert sorted(payload for name, payload in ran if name == "a") == sorted(f"{n}".encode() for n in range(2500))
        found = await shown(engine, tree_of(*tree.jobs, id="first"))
        assert (found.state, found.succeeded, found.created_by) == ("complete", 5000, "ann")

    async def test_another_try_is_one_until_it_is_over_or_ends(self, engine: JobsEngine) -> None:
        tree = await failed(engine, 3)
        other = await make(engine, tree_of(job("a"), id="other"))
        assert await engine.jobs.retry(tree.id, "one", "") == TreeRetry("one", 3)
        assert await engine.jobs.retry(tree.id, "two", "") == TreeRetry("one", 3)
        with pytest.raises(Conflict, match="with another definition"):
            await engine.jobs.retry(tree.id, other.id, "")
        # When it is cancelled, then the next one is another
        await engine.jobs.change("one", "cancel", "")
        assert await engine.jobs.retry(tree.id, "two", "") == TreeRetry("two", 3)
        assert await engine.jobs.retry(tree.id, "one", "") == TreeRetry("one", 3), "asked again, the answer is the same"
        # And so it is once that is over
        await work(engine, tree, lambda name, payload: payload)
        assert (await shown(engine, tree_of(*tree.jobs, id="two"))).state == "complete"
        assert await engine.jobs.retry(tree.id, "three", "") == TreeRetry("three", 3)

    async def test_another_try_goes_in_steps_of_a_bounded_size(
        self, engine: JobsEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(retrying, "TAKEN_BYTES", 2)
        tree = await failed(engine, 25)
        await engine.reopen()
        assert await engine.jobs.retry(tree.id, "again", "") == TreeRetry("again", 25)
        found = await shown(engine, tree_of(*tree.jobs, id="again"))
        assert (found.pending, found.jobs[0].sealed) == (25, True)

    async def test_another_try_that_several_ask_for_at_once_is_one(
        self, engine: JobsEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Given a tree whose items fail in both of its jobs, and another try that is made in many steps
        monkeypatch.setattr(retrying, "TAKEN", 2)
        tree = await make(engine, tree_of(job("a"), job("b", "a")))
        await fill(engine, tree, *(b"%d" % n for n in range(10)))
        await engine.jobs.seal(tree.id, "")
        await work(engine, tree, lambda name, payload: payload if name == "a" and payload < b"5" else None)
        # When it is asked for several times at once, as a call is whose answer was lost
        made = await asyncio.gather(*(engine.jobs.retry(tree.id, "again", "") for _ in range(3)))
        # Then all are told of one tree, which has each failed item once
        assert made == [TreeRetry("again", 10)] * 3
        ran = await work(engine, tree, lambda name, payload: payload.strip(b"<>"), rounds=100)
        assert sorted(payload for name, payload in ran if name == "a") == [b"%d" % n for n in range(5, 10)]
        assert len([payload for name, payload in ran if name == "b"]) == 10

    async def test_what_gathers_is_tried_again_with_the_list_that_it_was_given(self, engine: JobsEngine) -> None:
        # Given a tree of which only the job that gathers failed
        tree = await make(engine, tree_of(job("a"), job("sum", "a", gather=True), job("b", "sum")))
        await fill(engine, tree, b"1", b"2", b"3")
        await engine.jobs.seal(tree.id, "")
        ran = await work(engine, tree, lambda name, payload: None if name == "sum" else payload)
        [given] = [payload for name, payload in ran if name == "sum"]
        # When it is tried again
        assert await engine.jobs.retry(tree.id, "again", "") == TreeRetry("again", 1)
        ran = await work(engine, tree, lambda name, payload: b"6")
        # Then it has the list that it had, once, and what comes after it is made of that
        assert ran == [("sum", given), ("b", b"<6>")]
        found = await shown(engine, tree_of(*tree.jobs, id="again"))
        assert (found.state, found.succeeded, found.failed) == ("complete", 2, 0)

    async def test_what_gathers_is_made_anew_where_something_before_it_failed(self, engine: JobsEngine) -> None:
        tree = await make(engine, tree_of(job("a"), job("b", "a"), job("sum", "b", gather=True)))
        await fill(engine, tree, b"1", b"2", b"3")
        await engine.jobs.seal(tree.id, "")
        fails = (("a", b"1"), ("sum", b"<[2,3]>"))
        await work(engine, tree, lambda name, payload: None if (name, payload) in fails else payload.strip(b"<>"))
        assert await engine.jobs.retry(tree.id, "again", "") == TreeRetry("again", 1, ["sum"]), "and says so"
        ran = await work(engine, tree, lambda name, payload: payload.strip(b"<>"))
        assert ran == [("a", b"1"), ("b", b"<1>"), ("sum", b"<[1]>")]

    async def test_a_gather_before_what_is_tried_again_is_not_run_over_nothing(self, engine: JobsEngine) -> None:
        # Given a tree whose failed item is behind a job that gathers
        tree = await make(engine, tree_of(job("a"), job("sum", "a", gather=True), job("b", "sum")))
        await fill(engine, tree, b"1", b"2")
        await engine.jobs.seal(tree.id, "")
        await work(engine, tree, lambda name, payload: None if name == "b" else b"3")
        # When that is tried again, then it alone runs
        assert await engine.jobs.retry(tree.id, "again", "") == TreeRetry("again", 1)
        assert await work(engine, tree, lambda name, payload: b"done") == [("b", b"<3>")]
        found = await shown(engine, tree_of(*tree.jobs, id="again"))
        assert (found.state, found.succeeded, found.failed) == ("complete", 1, 0)
