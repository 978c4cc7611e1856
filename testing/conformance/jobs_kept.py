"""Laws of the bytes that trees keep until they are forgotten: they are bounded where items are added."""

from __future__ import annotations

import pytest

from ...model.claim import Settle, State
from ...model.errors import Overloaded
from ...model.job import JobItem
from .jobs_engine import KEPT, MOST, JobsEngine, fill, job, make, shown, take, tree_of, work

#: Seconds behind which an engine has looked at what is kept.
LOOKED = 1.5
#: The result of an item, or the payload of one that failed.
MUCH = b'"' + b"x" * (MOST - 100) + b'"'
MANY = KEPT // len(MUCH) + 1


class JobsKeptLaws:
    """Laws of the bytes that trees keep. An engine's test derives from them and gives a fixture `engine`."""

    @pytest.mark.parametrize("fails", [False, True])
    async def test_nothing_is_added_while_trees_keep_too_much(self, engine: JobsEngine, fails: bool) -> None:
        # Given trees that keep as much as may be, in results or in what failed items were given
        full, other = [await make(engine, tree_of(job("a"), job("b", "a"), id=id)) for id in ("full", "other")]
        await fill(engine, full, *[MUCH] * MANY, call="heard")
        await fill(engine, other, b"1")
        await engine.jobs.seal(full.id, "")
        await work(engine, full, lambda name, payload: None if fails else MUCH)
        assert (await shown(engine, full)).state == "complete"
        await engine.pass_time(LOOKED)
        # When more is added, then it is refused with what to do, and nothing changed
        with pytest.raises(Overloaded, match=rf"jobs keep \d+ bytes .* at most {KEPT} are kept .*job_bytes.*delete"):
            await engine.jobs.add(other.id, "", "more", [JobItem(b"2")])
        assert (await shown(engine, other)).pending == 1
        # But what was heard is answered, and what is there goes on, with its results and children
        assert await engine.jobs.add(other.id, "", "call", [JobItem(b"1")]) == 1
        assert await engine.jobs.add(other.id, "", "none", []) == 0
        ran = await work(engine, other, lambda name, payload: MUCH)
        assert [name for name, _ in ran] == ["a", "b"]
        # And once a tree is forgotten there is room
        await engine.jobs.change(full.id, "delete", "too much")
        while await engine.jobs.show(full.id) is not None or await engine.sweep():
            await engine.sweep()
        await engine.pass_time(LOOKED)
        await fill(engine, other, b"3", call="again")
        await engine.jobs.seal(other.id, "")
        await work(engine, other, lambda name, payload: b"3")
        assert (await shown(engine, other)).succeeded == 4

    async def test_what_is_redriven_is_kept_no_more(self, engine: JobsEngine) -> None:
        # Given a tree whose failed items were given as much as may be kept
        tree = await make(engine, tree_of(job("a")))
        await fill(engine, tree, *[MUCH] * MANY)
        failed: list[str] = []
        while (leased := await take(engine, tree)) is not None:
            failed += leased.ids
            ends = [Settle(id, leased.fence, State.FATAL_FAILURE, reason="it fails") for id in leased.ids]
            assert await engine.queue.settle(leased.fence, [], ends) == []
        await engine.pass_time(LOOKED)
        with pytest.raises(Overloaded):
            await fill(engine, tree, b"1", call="more")
        # When one of them is tried again, then there is room until it fails again
        [again] = await engine.jobs.redrive(failed[:1])
        assert again.workload and not again.refused
        await engine.pass_time(LOOKED)
        await fill(engine, tree, b"1", call="more")
