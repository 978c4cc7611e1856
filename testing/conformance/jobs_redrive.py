"""Laws of redrives: items that failed run again as new workloads, in their own trees."""

from __future__ import annotations

from collections import Counter

import pytest

from ...model import redrive
from ...model.claim import Leased, Settle, State
from ...model.job import ItemRedrive, JobHolder, JobItem, TreeRetry
from ...model.workload import NO_EXTRA, Headers, Kind
from ...stores.queue.queue import NewItem
from .jobs_engine import JobsEngine, fill, job, make, shown, take, tree_of, work

WEEK = 7 * 86_400.0


def shown_as(leased: Leased, payload: bytes) -> tuple[str, Headers]:
    """The origin and the headers that the function of an item with this payload sees."""
    index = leased.payloads.index(payload)
    seen = redrive.shown(leased.ids[index], leased.fence, leased.extras.get(index, NO_EXTRA).headers)
    return seen.origin, seen.headers


class JobsRedriveLaws:
    """Laws of redrives of items. An engine's test derives from them and gives a fixture `engine`."""

    async def test_an_item_that_failed_runs_again_in_its_tree_while_its_job_is_open(self, engine: JobsEngine) -> None:
        # Given an open job of which two items failed, behind which another one comes
        tree = await make(engine, tree_of(job("a"), job("b", "a")))
        await engine.jobs.add(tree.id, "", "call", [JobItem(b"1", key="k"), JobItem(b"2"), JobItem(b"3")])
        failed: dict[bytes, str] = {}
        while (leased := await take(engine, tree, ["a"])) is not None:
            failed |= dict(zip(leased.payloads, leased.ids, strict=True))
            ends = [Settle(id, leased.fence, State.FATAL_FAILURE, reason="bad") for id in leased.ids]
            assert await engine.queue.settle(leased.fence, [], ends) == []
        # When two of them are redriven, and the answer is lost, also by a crash
        ids = [failed[b"1"], failed[b"2"]]
        answers = await engine.jobs.redrive(ids)
        await engine.reopen()
        assert await engine.jobs.redrive(ids) == answers
        # Then both pend again as other workloads, what they were given is what they had, and their successes feed
        assert len({each.workload for each in answers} - {"", *failed.values()}) == 2
        found = await shown(engine, tree)
        assert (found.jobs[0].pending, found.jobs[0].failed) == (2, 1)
        await engine.jobs.seal(tree.id, "")
        ran = await work(engine, tree, lambda name, payload: payload)
        assert sorted(ran) == [("a", b"1"), ("a", b"2"), ("b", b"<1>"), ("b", b"<2>")]
        found = await shown(engine, tree)
        assert (found.state, found.succeeded, found.failed) == ("complete", 4, 1)

    async def test_a_settlement_of_the_former_workload_changes_nothing(self, engine: JobsEngine) -> None:
        tree = await make(engine, tree_of(job("a")))
        await fill(engine, tree, b"1", b"2")
        leased = await take(engine, tree)
        assert leased is not None
        bad, good = leased.ids
        late = [Settle(bad, leased.fence, State.FATAL_FAILURE, reason="bad")]
        await engine.queue.settle(leased.fence, [], late)
        [answer] = await engine.jobs.redrive([bad])
        await engine.queue.settle(leased.fence, [good], late)
        await engine.queue.settle(leased.fence, [], [Settle(bad, leased.fence, State.SUCCESS, result=b"1")])
        found = await shown(engine, tree)
        assert (found.pending, found.succeeded, found.failed) == (1, 1, 0)
        again = await take(engine, tree)
        assert again is not None
        assert again.ids == [answer.workload]

    async def test_an_item_may_fail_and_be_redriven_again_and_again(self, engine: JobsEngine) -> None:
        tree = await make(engine, tree_of(job("a"), policy="threshold", most_failed=1))
        await fill(engine, tree, b"1", b"2", b"3")
        ids: list[str] = []
        for _ in range(3):  # three failures, of which never more than one counts
            leased = await take(engine, tree)
            assert leased is not None
            bad, *others = sorted(leased.ids, key=lambda id: id not in ids)
            back = [Settle(id, leased.fence, State.NEW) for id in others]
            told = Settle(bad, leased.fence, State.FATAL_FAILURE, reason="bad")
            assert await engine.queue.settle(leased.fence, [], [told, *back]) == []
            [answer] = await engine.jobs.redrive([bad])
            ids = [answer.workload]
        assert await engine.jobs.seal(tree.id, "")
        await work(engine, tree, lambda name, payload: payload)
        found = await shown(engine, tree)
        assert (found.state, found.succeeded, found.failed) == ("complete", 3, 0)

    @pytest.mark.parametrize("most", [0, 3], ids=["unbounded", "bounded"])
    async def test_a_redriven_item_is_told_its_first_workload_as_its_origin(
        self, engine: JobsEngine, most: int
    ) -> None:
        tree = await make(engine, tree_of(job("a", max_failures_per_item=most)))
        await engine.jobs.add(tree.id, "", "call", [JobItem(b"1", key="k"), JobItem(b"2")])
        leased = await take(engine, tree)
        assert leased is not None
        first = dict(zip(leased.payloads, leased.ids, strict=True))
        assert all(shown_as(leased, payload) == (id, ()) for payload, id in first.items())
        for _ in range(2):  # and its first one again when it is redriven once more
            lost = [Settle(id, leased.fence, State.FATAL_FAILURE, reason="bad") for id in leased.ids]
            assert await engine.queue.settle(leased.fence, [], lost) == []
            answers = await engine.jobs.redrive(leased.ids)
            await engine.reopen()
            leased = await take(engine, tree)
            assert leased is not None
            assert sorted(leased.ids) == sorted(each.workload for each in answers)
            assert all(shown_as(leased, payload) == (id, ()) for payload, id in first.items())
            assert (leased.max_failures, len(leased.jobs)) == ({0: most, 1: most} if most else {}, 2)

    async def test_a_redriven_item_adds_nothing_twice_that_a_former_life_of_it_added(self, engine: JobsEngine) -> None:
        # Given an item whose runs add items to another job, under tokens of their workload, one more in each life
        tree = await make(engine, tree_of(job("a"), job("b", "a")))
        await fill(engine, tree, b"1")
        for life in range(3):
            leased = await take(engine, tree, ["a"])
            assert leased is not None
            run = JobHolder(leased.ids[0], leased.fence)
            for addition in range(life + 1):
                # When a run adds what a former life of its item has added, then it is answered as that was
                token, items = f"in-{run.workload}-{addition}", [JobItem(b"2")] * (addition + 1)
                assert await engine.jobs.add("", "b", token, items, run) == addition + 1
            lost = Settle(run.workload, leased.fence, State.FATAL_FAILURE, reason="bad")
            assert await engine.queue.settle(leased.fence, [], [lost]) == []
            await engine.jobs.redrive([run.workload])
            await engine.reopen()
        # Then each addition was made once, by whichever life made it first
        assert (await shown(engine, tree)).jobs[1].pending == 1 + 2 + 3

    async def test_what_is_over_or_did_not_fail_or_is_no_item_is_not_redriven(self, engine: JobsEngine) -> None:
        tree, other = await make(engine, tree_of(job("a"))), await make(engine, tree_of(job("a"), id="job-2"))
        [plain] = await engine.queue.submit([NewItem(Kind("plain", 2), b"1")])
        await fill(engine, tree, b"1", b"2")
        await fill(engine, other, b"1", b"2")
        leased, theirs = await take(engine, tree), await take(engine, other)
        assert leased is not None
        assert theirs is not None
        bad, good = leased.ids
        asked = [bad, good, plain.id, "no id", "f" * 16, "0" * 16]
        # While it has not ended
        pending = await engine.jobs.redrive(asked)
        assert ["has not ended" in each.refused for each in pending] == [True, True, False, False, False, False]
        assert pending[2:] == [ItemRedrive()] * 4
        # Once its job is complete
        told = Settle(bad, leased.fence, State.FATAL_FAILURE, reason="bad")
        await engine.queue.settle(leased.fence, [good], [told])
        await engine.jobs.seal(tree.id, "")
        complete = await engine.jobs.redrive(asked)
        assert "`tailrace job retry job-1`" in complete[0].refused
        assert "succeeded" in complete[1].refused
        # And while its tree ends
        told = Settle(theirs.ids[0], theirs.fence, State.FATAL_FAILURE, reason="bad")
        await engine.queue.settle(theirs.fence, [], [told])
        await engine.jobs.change(other.id, "cancel", "")
        [ends] = await engine.jobs.redrive([theirs.ids[0]])
        assert "which ends" in ends.refused
        assert (await shown(engine, tree)).failed == 1
        assert await engine.jobs.redrive([]) == []

    async def test_a_redriven_item_of_a_paused_tree_waits_until_it_is_resumed(self, engine: JobsEngine) -> None:
        tree = await make(engine, tree_of(job("a")))
        await fill(engine, tree, b"1")
        leased = await take(engine, tree)
        assert leased is not None
        told = Settle(leased.ids[0], leased.fence, State.FATAL_FAILURE, reason="bad")
        await engine.queue.settle(leased.fence, [], [told])
        await engine.jobs.change(tree.id, "pause", "")
        await engine.jobs.redrive(leased.ids)
        assert await take(engine, tree) is None
        await engine.jobs.change(tree.id, "resume", "")
        await engine.sweep()
        assert await take(engine, tree) is not None

    async def test_what_was_redriven_is_forgotten_with_its_tree(self, engine: JobsEngine) -> None:
        tree = await make(engine, tree_of(job("a")))
        await fill(engine, tree, b"1")
        leased = await take(engine, tree)
        assert leased is not None
        told = Settle(leased.ids[0], leased.fence, State.FATAL_FAILURE, reason="bad")
        await engine.queue.settle(leased.fence, [], [told])
        assert (await engine.jobs.redrive(leased.ids))[0].workload
        await engine.jobs.seal(tree.id, "")
        await work(engine, tree, lambda name, payload: payload)
        await engine.pass_time(WEEK + 1)
        while await engine.sweep():
            pass
        assert await engine.jobs.show(tree.id) is None
        assert await engine.jobs.redrive(leased.ids) == [ItemRedrive()]


class JobsBoundsLaws:
    """Laws of bounds on the failures of an item. An engine's test derives from them and gives a fixture `engine`."""

    async def test_a_bound_on_failures_travels_with_each_claim_of_its_job(self, engine: JobsEngine) -> None:
        # Given a tree in which one job bounds how often an item fails, by every way in which items are made
        jobs = (
            job("a", max_failures_per_item=3),
            job("b", "a"),
            job("c", "b", each=True, max_failures_per_item=12),
            job("d", "c", gather=True, max_failures_per_item=1),
        )
        bounds = {"a": 3, "b": 0, "c": 12, "d": 1}
        tree = await make(engine, tree_of(*jobs))
        [plain] = await engine.queue.submit([NewItem(Kind(f"{tree.id}:a", 2), b"1")])
        await engine.jobs.add(tree.id, "", "call", [JobItem(b"1"), JobItem(b"bad", key="k")])
        await engine.jobs.seal(tree.id, "")
        seen: Counter[str] = Counter()
        # When all of it runs, and what failed is tried again in another tree
        for again in ("", "again"):
            if again:
                assert await engine.jobs.retry(tree.id, again, "") == TreeRetry(again, 1, ["d"])
            while (leased := await take(engine, tree)) is not None:
                ends = []
                for index, (id, kind, payload) in enumerate(
                    zip(leased.ids, leased.kinds, leased.payloads, strict=True)
                ):
                    # Then each claim says it of the items of these jobs, and of no others
                    name = kind.function.rpartition(":")[2]
                    assert leased.max_failures.get(index, 0) == (0 if id == plain.id else bounds[name])
                    seen[name] += 1
                    state = State.FATAL_FAILURE if payload == b"bad" and not again else State.SUCCESS
                    ends.append(Settle(id, leased.fence, state, reason="", result=b"[1,2]"))
                assert await engine.queue.settle(leased.fence, [], ends) == []
                await engine.reopen()
        assert seen == {"a": 4, "b": 2, "c": 4, "d": 2}

    async def test_an_item_of_a_bounded_job_has_no_headers_whoever_looks(self, engine: JobsEngine) -> None:
        tree = await make(engine, tree_of(job("a", max_failures_per_item=3)))
        await fill(engine, tree, b"1")
        leased = await take(engine, tree)
        assert leased is not None
        [plain] = await engine.queue.submit([NewItem(Kind("plain", 2), b"2", headers=(("color", "red"),))])
        ids = [leased.ids[0], plain.id]
        # When somebody asks for the headers of its workload, then a bound is none
        assert await engine.queue.headers(ids) == {plain.id: (("color", "red"),)}
        content = await engine.queue.peek(leased.ids[0], 100)
        assert content is not None
        assert (content.payload, content.headers) == (b"1", ())
