"""The laws of another try of a tree that was not answered: it goes on, and nothing of it runs twice."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest

from ...model.errors import Conflict
from ...model.job import TreeSpec
from ...stores.jobs.rules import retrying
from .jobs_engine import JobsEngine, fill, job, make, shown, tree_of, work


async def failed(engine: JobsEngine, items: int) -> TreeSpec:
    """A tree that is over, of which all items failed."""
    tree = await make(engine, tree_of(job("a"), job("b", "a")))
    await fill(engine, tree, *(f"{n}".encode() for n in range(items)))
    await engine.jobs.seal(tree.id, "")
    await work(engine, tree, lambda name, payload: None, rounds=100)
    return tree


class JobsRetryLaws:
    """Derive, and give a fixture `engine`."""

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
        assert await engine.jobs.retry(tree.id, "second", "bob") == ("first", 2500)
        # Then there is one other tree, filled and sealed, which runs each item once
        assert await engine.jobs.show("second") is None
        ran = await work(engine, tree_of(*tree.jobs), lambda name, payload: payload.strip(b"<>"), rounds=100)
        assert sorted(payload for name, payload in ran if name == "a") == sorted(f"{n}".encode() for n in range(2500))
        found = await shown(engine, tree_of(*tree.jobs, id="first"))
        assert (found.state, found.succeeded, found.created_by) == ("complete", 5000, "ann")

    async def test_another_try_is_one_until_it_is_over_or_ends(self, engine: JobsEngine) -> None:
        tree = await failed(engine, 3)
        other = await make(engine, tree_of(job("a"), id="other"))
        assert await engine.jobs.retry(tree.id, "one", "") == ("one", 3)
        assert await engine.jobs.retry(tree.id, "two", "") == ("one", 3)
        with pytest.raises(Conflict, match="it is another one"):
            await engine.jobs.retry(tree.id, other.id, "")
        # When it is cancelled, then the next one is another
        await engine.jobs.change("one", "cancel", "")
        assert await engine.jobs.retry(tree.id, "two", "") == ("two", 3)
        assert await engine.jobs.retry(tree.id, "one", "") == ("one", 3), "asked again, the answer is the same"
        # And so it is once that is over
        await work(engine, tree, lambda name, payload: payload)
        assert (await shown(engine, tree_of(*tree.jobs, id="two"))).state == "complete"
        assert await engine.jobs.retry(tree.id, "three", "") == ("three", 3)

    async def test_another_try_goes_in_steps_of_a_bounded_size(
        self, engine: JobsEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(retrying, "TAKEN_BYTES", 2)
        tree = await failed(engine, 25)
        await engine.reopen()
        assert await engine.jobs.retry(tree.id, "again", "") == ("again", 25)
        found = await shown(engine, tree_of(*tree.jobs, id="again"))
        assert (found.pending, found.jobs[0].sealed) == (25, True)
