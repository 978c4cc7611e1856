"""Laws of trees that end early: by their policy, or because somebody asks for it."""

from __future__ import annotations

from ...model.claim import Settle, State
from ...model.demand import Cell, Demand
from .jobs_engine import LEASE, JobsEngine, fill, job, make, shown, take, told, tree_of, work

DAY = 86_400.0


class JobsEndingLaws:
    """Laws of trees that end early. An engine's test derives from them and gives a fixture `engine`."""

    async def test_nothing_more_of_a_tree_that_ends_is_handed_out_however_much_of_it_waits(
        self, engine: JobsEngine
    ) -> None:
        # Given two trees of more items than one step cancels, one of which a failure ends
        strict = await make(engine, tree_of(job("a"), id="strict", policy="fail_tree"))
        tree = await make(engine, tree_of(job("a")))
        for each in (strict, tree):
            for call in range(3):
                await fill(engine, each, *[b"1"] * 900, call=f"call-{call}")
        leased = await engine.queue.lease(Demand({Cell("strict:a", 2): 1}, frozenset(), 1), LEASE, 0)
        assert leased is not None
        # When both are to end
        lost = Settle(leased.ids[0], leased.fence, State.FATAL_FAILURE, reason="it fails")
        await engine.queue.settle(leased.fence, [], [lost])
        assert await engine.jobs.change(tree.id, "cancel", "enough") == "done"
        assert await take(engine, tree) is None
        while (await shown(engine, strict)).state != "ending" and not (await shown(engine, strict)).complete_at:
            await engine.sweep()  # a policy is in force with an advance
        # Then nothing of them is handed out, and all of it ends
        assert await take(engine, strict) is None
        for each, state in ((strict, "failed"), (tree, "cancelled")):
            while not (found := await shown(engine, each)).complete_at:
                await engine.sweep()
            assert (found.state, [one.failed for one in found.jobs]) == (state, [2700])

    async def test_cancelling_ends_what_waits_and_feeds_nothing_more(self, engine: JobsEngine) -> None:
        tree = await make(engine, tree_of(job("a"), job("b", "a")))
        await fill(engine, tree, *([b"1"] * 700))
        leased = await take(engine, tree)
        assert leased is not None
        await engine.queue.settle(leased.fence, [], [Settle(id, leased.fence, State.NEW) for id in leased.ids[2:]])
        assert await engine.jobs.change(tree.id, "cancel", "enough") == "done"
        while (await shown(engine, tree)).pending > 2:
            await engine.sweep()
        one, two = leased.ids[:2]
        ends = [Settle(one, leased.fence, State.SUCCESS, result=b"1"), Settle(two, leased.fence, State.NEW)]
        await engine.queue.settle(leased.fence, [], ends)
        found = await shown(engine, tree)
        assert (found.state, found.why, found.succeeded, found.failed) == ("cancelled", "enough", 1, 699)
        assert await engine.jobs.change(tree.id, "cancel", "again") == "over"

    async def test_other_trees_go_on_while_an_older_one_of_many_items_is_being_cancelled(
        self, engine: JobsEngine
    ) -> None:
        # Given a tree of many items, and a younger one of which the last item runs
        older, tree = await make(engine, tree_of(job("a"), id="older")), await make(engine, tree_of(job("a")))
        for call in range(3):
            await fill(engine, older, *[b"1"] * 900, call=f"call-{call}")
        await fill(engine, tree, b"1")
        await engine.jobs.seal(tree.id, "")
        leased = await take(engine, tree)
        assert leased is not None
        # When the older one is cancelled, and the younger one's item ends meanwhile
        await engine.jobs.change(older.id, "cancel", "enough")
        assert await engine.queue.settle(leased.fence, leased.ids, []) == []
        await engine.sweep()
        # Then the younger one does not wait until all items of the older one are cancelled
        assert (await shown(engine, tree)).state == "complete"

    async def test_a_failed_item_makes_none_and_the_policy_says_what_becomes_of_the_tree(
        self, engine: JobsEngine
    ) -> None:
        expected = {"continue": ("complete", 3, 2), "fail_tree": ("failed", 0, 5), "threshold": ("failed", 0, 5)}
        for policy, (state, succeeded, failed) in expected.items():
            jobs = (job("a"), job("b", "a"))
            tree = await make(engine, tree_of(*jobs, id=policy, policy=policy, most_failed=1))
            await fill(engine, tree, b"bad", b"bad", b"1", b"2", b"3")
            await engine.jobs.seal(tree.id, "")
            leased = await take(engine, tree)
            assert leased is not None
            bad = [Settle(id, leased.fence, State.FATAL_FAILURE, reason="bad") for id in leased.ids[:2]]
            back = [Settle(id, leased.fence, State.NEW) for id in leased.ids[2:]]
            await engine.queue.settle(leased.fence, [], back)
            await engine.queue.settle(leased.fence, [], bad)
            await work(engine, tree, lambda name, payload: b"1")
            found = await shown(engine, tree)
            assert (found.state, found.jobs[0].succeeded, found.jobs[0].failed) == (state, succeeded, failed)
            assert bool(found.why) is (state == "failed")

    async def test_what_is_open_for_too_long_is_cancelled_and_says_why(self, engine: JobsEngine) -> None:
        # Given a tree that nobody seals, one that is paused, and a younger one
        abandoned = await make(engine, tree_of(job("a"), job("b", "a"), id="abandoned", on_done="f"))
        paused, younger = tree_of(job("a"), id="paused"), tree_of(job("a"), id="younger")
        await make(engine, paused)
        for tree in (abandoned, paused):
            await fill(engine, tree, b"1", b"2")
        await engine.jobs.change(paused.id, "pause", "")
        await engine.pass_time(2 * DAY)
        await make(engine, younger)
        await fill(engine, younger, b"1")
        # When they are not too old yet, then they stay; the day after, two are cancelled, and the younger one is not
        for days, states in ((87.9, ["running", "paused", "running"]), (0.2, ["cancelled", "cancelled", "running"])):
            await engine.pass_time(days * DAY)
            while await engine.sweep():
                pass
            assert [(await shown(engine, each)).state for each in (abandoned, paused, younger)] == states
        found = await shown(engine, abandoned)
        assert (found.why, found.pending) == ("it was open for longer than 90d (job_max_age of stores.yaml)", 0)
        assert [(each["job"], each["state"]) for each in await told(engine)] == [("abandoned", "cancelled")]
        # And they are known for their retention, as any other
        await engine.pass_time(8 * DAY)
        while await engine.sweep():
            pass
        assert await engine.jobs.show(paused.id) is None

    async def test_a_clock_that_is_set_forward_for_a_moment_makes_no_job_old(self, engine: JobsEngine) -> None:
        # Given a job that is complete, and one that is open
        done, open_ = tree_of(job("a"), id="done"), tree_of(job("a"), id="open")
        for tree in (done, open_):
            await make(engine, tree)
            await fill(engine, tree, b"1")
        await engine.jobs.seal(done.id, "a")
        await work(engine, done, lambda name, payload: b"2")
        assert (await shown(engine, done)).state == "complete"
        # When the clock is months ahead while the store is swept, and right again
        engine.jump(100 * DAY)
        for _ in range(3):
            await engine.sweep()
            await engine.pass_time(5)
        engine.jump(-100 * DAY)
        await engine.sweep()
        # Then both are there as they were
        assert [(await shown(engine, each)).state for each in (done, open_)] == ["complete", "running"]
