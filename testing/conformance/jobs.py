"""The laws of jobs, for every engine of them."""

from __future__ import annotations

import json

import pytest

from ...model.claim import Settle, State
from ...model.errors import Conflict, InvalidPayload, InvalidRequest
from ...model.job import JobHolder, JobItem, TreeRetry
from ...model.workload import Kind
from ...stores.queue.queue import NewItem
from .jobs_engine import LEASE, MOST, JobsEngine, fill, job, make, shown, take, told, tree_of, work

WEEK = 7 * 86_400.0
HOSTILE = ["a\0b", "\ud800", "x" * 100_000]


class JobsLaws:
    """Laws of the life of a job. An engine's test derives from them and gives a fixture `engine`."""

    async def test_a_result_becomes_an_item_at_once_without_waiting_for_siblings(self, engine: JobsEngine) -> None:
        # Given two items of a job that another one comes after
        tree = await make(engine, tree_of(job("a"), job("b", "a")))
        await fill(engine, tree, b"1", b"2")
        leased = await take(engine, tree)
        assert leased is not None
        # When one of them succeeds
        done = Settle(leased.ids[0], leased.fence, State.SUCCESS, result=b"one")
        await engine.queue.settle(leased.fence, [], [done])
        # Then what comes after it can run, though the other one still runs and nothing is sealed
        following = await take(engine, tree, ["b"])
        assert following is not None
        assert following.payloads == [b"<one>"]

    async def test_a_repeated_or_late_settlement_makes_no_second_item(self, engine: JobsEngine) -> None:
        tree = await make(engine, tree_of(job("a"), job("b", "a")))
        await fill(engine, tree, b"1")
        first = await take(engine, tree)
        assert first is not None
        await engine.pass_time(LEASE + 1)
        second = await take(engine, tree)
        assert second is not None
        for leased, refused in ((first, first.ids), (second, []), (second, []), (first, first.ids)):
            done = Settle(leased.ids[0], leased.fence, State.SUCCESS, result=b"1")
            assert await engine.queue.settle(leased.fence, [], [done]) == refused
        found = await shown(engine, tree)
        assert [(each.pending, each.succeeded) for each in found.jobs] == [(0, 1), (1, 0)]

    async def test_sealing_reaches_every_job_once_its_parents_are_complete(self, engine: JobsEngine) -> None:
        tree = await make(engine, tree_of(job("a"), job("b", "a"), job("c", "a"), job("d", "b", "c", gather=True)))
        await fill(engine, tree, b"1", b"2")
        assert await engine.jobs.seal(tree.id, "")
        ran = await work(engine, tree, lambda name, payload: json.dumps(name).encode())
        assert ran[-1] == ("d", b'<["b","b","c","c"]>')
        found = await shown(engine, tree)
        assert found.state == "complete"
        assert all(each.complete_at for each in found.jobs)
        page = await engine.jobs.results(tree.id, "", 100, 1 << 20)
        assert [(each.job, each.result) for each in page.results] == [("d", b'"d"')]

    async def test_an_empty_job_that_is_sealed_is_complete_with_all_behind_it(self, engine: JobsEngine) -> None:
        tree = await make(engine, tree_of(job("a"), job("b", "a"), job("c", "b")))
        assert await engine.jobs.seal(tree.id, "a")
        assert (await shown(engine, tree)).state == "complete"
        assert not await engine.jobs.seal(tree.id, "a"), "twice is harmless"

    async def test_one_read_tells_which_of_many_trees_are_not_over(self, engine: JobsEngine) -> None:
        # Given a tree that is over, one that is deleted, and two that are open
        over, gone = await make(engine, tree_of(job("a"))), await make(engine, tree_of(job("a"), id="gone"))
        left, paused = [await make(engine, tree_of(job("a"), id=id)) for id in ("left", "paused")]
        await engine.jobs.seal(over.id, "")
        await engine.jobs.change(gone.id, "delete", "")
        await engine.jobs.change(paused.id, "pause", "")
        # When they are asked for, with others that never were
        asked = [over.id, gone.id, left.id, paused.id, "never", *HOSTILE[:1]]
        # Then the open ones are told
        assert sorted(await engine.jobs.still_open(asked)) == [left.id, paused.id]
        assert await engine.jobs.still_open([]) == []

    async def test_nothing_is_added_to_a_sealed_job(self, engine: JobsEngine) -> None:
        tree = await make(engine, tree_of(job("a")))
        await fill(engine, tree, b"1", call="first")
        await engine.jobs.seal(tree.id, "")
        with pytest.raises(Conflict, match="sealed: nothing can be added"):
            await fill(engine, tree, b"2", call="second")
        await fill(engine, tree, b"1", call="first")  # it was heard before the seal, and its answer was lost
        assert (await shown(engine, tree)).pending == 1

    async def test_an_addition_that_is_repeated_adds_nothing_and_a_dedupe_key_is_refused(
        self, engine: JobsEngine
    ) -> None:
        tree = await make(engine, tree_of(job("a")))
        item = JobItem(b"1", dedupe_key="k")
        assert await engine.jobs.add(tree.id, "a", "one", [item, JobItem(b"2")]) == 2
        assert await engine.jobs.add(tree.id, "a", "one", [item, JobItem(b"2")]) == 2
        for items in ([item], [JobItem(b"3", dedupe_key="n"), JobItem(b"4", dedupe_key="n")]):
            with pytest.raises(Conflict, match="dedupe key"):
                await engine.jobs.add(tree.id, "a", "two", items)
        assert (await shown(engine, tree)).pending == 2

    async def test_a_run_adds_items_to_its_own_job_and_behind_it_until_it_loses_its_item(
        self, engine: JobsEngine
    ) -> None:
        # Given a sealed job, of which one item runs
        tree = await make(engine, tree_of(job("a"), job("b", "a"), job("c", "b"), job("d", "a")))
        await fill(engine, tree, b"1")
        await engine.jobs.seal(tree.id, "")
        leased = await take(engine, tree)
        assert leased is not None
        run = JobHolder(leased.ids[0], leased.fence)
        found = await engine.jobs.show("", run.workload)
        assert found is not None
        assert (found.id, found.job_of_item) == (tree.id, "a")
        # When the run adds to its own job and behind it, and repeats that
        for _ in range(2):
            assert await engine.jobs.add("", "", "in-1", [JobItem(b"2"), JobItem(b"3", key="k")], run) == 2
            assert await engine.jobs.add(tree.id, "c", "in-2", [JobItem(b"4")], run) == 1
        with pytest.raises(InvalidRequest, match="adds to its own job and to jobs after it"):
            await engine.jobs.add("job-2", "", "in-3", [JobItem(b"5")], run)
        with pytest.raises(InvalidRequest, match="adds to its own job and to jobs after it"):
            await engine.jobs.add("", "x", "in-3", [JobItem(b"5")], run)
        # Then they are items like the others, and who runs one behind it adds nothing before it
        assert [each.pending for each in (await shown(engine, tree)).jobs] == [3, 0, 1, 0]
        behind = await take(engine, tree, ["c"])
        assert behind is not None
        with pytest.raises(InvalidRequest, match="adds to its own job and to jobs after it"):
            await engine.jobs.add("", "a", "in-4", [JobItem(b"5")], JobHolder(behind.ids[0], behind.fence))
        await engine.queue.settle(behind.fence, behind.ids, [])
        # And a run whose lease is over adds nothing more, nor does one that never was
        await engine.pass_time(LEASE + 1)
        await take(engine, tree, ["d"])
        again = await take(engine, tree, ["a"])
        assert again is not None
        strangers = [run, run._replace(fence=1), JobHolder("0" * 16, 5), JobHolder("x", 1 << 62)]
        for stranger in strangers:
            with pytest.raises(Conflict, match="has no item of a job any more"):
                await engine.jobs.add("", "", "in-5", [JobItem(b"5")], stranger)
        await engine.queue.settle(again.fence, again.ids, [])
        await work(engine, tree, lambda name, payload: b"1")
        found = await shown(engine, tree)
        assert (found.state, [each.succeeded for each in found.jobs]) == ("complete", [3, 3, 4, 3])

    async def test_nothing_that_is_known_of_a_forgotten_tree_is_taken_for_the_next_one_s(
        self, engine: JobsEngine
    ) -> None:
        # Given a tree that has run, was deleted and is forgotten
        former = await make(engine, tree_of(job("a"), job("b", "a"), id="former"))
        await fill(engine, former, b"1")
        await engine.jobs.seal(former.id, "")
        await work(engine, former, lambda name, payload: b"1")
        await engine.jobs.change(former.id, "delete", "")
        while await engine.sweep():
            pass
        assert await engine.jobs.show(former.id) is None
        # When another one of another shape runs
        tree = await make(engine, tree_of(job("a", final=True), job("b", "a"), job("c", "a")))
        await fill(engine, tree, b"1")
        await engine.jobs.seal(tree.id, "")
        await work(engine, tree, lambda name, payload: json.dumps(name).encode())
        # Then it is as if the former had never been
        found = await shown(engine, tree)
        assert (found.state, [each.succeeded for each in found.jobs]) == ("complete", [1, 1, 1])
        page = await engine.jobs.results(tree.id, "", 100, 1 << 20)
        assert [each.result for each in page.results] == [b'"a"', b'"b"', b'"c"']

    async def test_each_element_of_a_result_becomes_an_item(self, engine: JobsEngine) -> None:
        tree = await make(engine, tree_of(job("a"), job("b", "a", each=True)))
        await fill(engine, tree, b"1", b"2", b"3")
        await engine.jobs.seal(tree.id, "")
        results = {b"1": b'[1, "two", {"three": 3}]', b"2": b"[]"}
        ran = await work(engine, tree, lambda name, payload: results.get(payload, b"null") if name == "a" else b"0")
        assert sorted(ran[3:]) == [("b", b'<"two">'), ("b", b"<1>"), ("b", b'<{"three": 3}>')]
        assert (await shown(engine, tree)).state == "complete"

    async def test_a_large_expansion_goes_on_after_it_was_cut(self, engine: JobsEngine) -> None:
        tree = await make(engine, tree_of(job("a"), job("b", "a", each=True)))
        await fill(engine, tree, b"1")
        leased = await take(engine, tree)
        assert leased is not None
        many = b"[" + b",".join([b"1"] * 70_000) + b"]"
        await engine.queue.settle(leased.fence, [], [Settle(leased.ids[0], leased.fence, State.SUCCESS, result=many)])
        await engine.reopen()
        while (await shown(engine, tree)).jobs[1].pending != 70_000:
            await engine.sweep()

    async def test_a_result_that_fits_no_payload_fails_its_item_and_makes_none(self, engine: JobsEngine) -> None:
        tree = await make(engine, tree_of(job("a"), job("b", "a"), job("c", "a", each=True)))
        await fill(engine, tree, b"large", b"odd", b"fits")
        await engine.jobs.seal(tree.id, "")
        results = {b"large": b"1" * (MOST - 1), b"odd": b"7"}
        ran = await work(engine, tree, lambda name, payload: results.get(payload, b"[1]"))
        assert sorted(ran[3:]) == [("b", b"<[1]>"), ("c", b"<1>")]
        found = await shown(engine, tree)
        assert (found.state, found.jobs[0].failed) == ("complete", 2)

    async def test_a_pause_notes_its_right_and_is_lifted_only_by_who_saw_it(self, engine: JobsEngine) -> None:
        # Given a tree that somebody paused
        tree, jobs = await make(engine, tree_of(job("a"))), engine.jobs
        await fill(engine, tree, b"1")
        assert await jobs.hold(tree.id, "operate:a@acme", "") == "done"
        # When another one pauses it too, then nobody resumes it who has not seen that
        assert await jobs.hold(tree.id, "operate", "operate:a@acme") == "done"
        await engine.reopen()
        jobs = engine.jobs
        for seen in ("", "operate:a@acme"):
            assert await jobs.hold(tree.id, "", seen) == "moved"
            assert await jobs.hold(tree.id, "operate:a@acme", seen) == "moved"
        found = await shown(engine, tree)
        assert (found.state, found.paused_with) == ("paused", "operate")
        assert await take(engine, tree) is None
        # And who has may, or whoever needs not look
        assert await jobs.hold(tree.id, "", "operate") == "done"
        assert (await shown(engine, tree)).paused_with == ""
        await jobs.hold(tree.id, "operate", None)
        assert await jobs.hold(tree.id, "", None) == "done"
        assert [name for name, _ in await work(engine, tree, lambda name, payload: b"1")] == ["a"]
        # And nothing is held of a tree that ends
        await jobs.change(tree.id, "cancel", "enough")
        assert await jobs.hold(tree.id, "operate", "") == "over"

    async def test_nothing_of_a_paused_tree_starts_until_it_is_resumed(self, engine: JobsEngine) -> None:
        tree = await make(engine, tree_of(job("a"), job("b", "a")))
        other = await make(engine, tree_of(job("a"), id="job-2"))
        await fill(engine, tree, *([b"1"] * 300))
        await fill(engine, other, b"2")
        await engine.jobs.change(tree.id, "pause", "")
        for _ in range(3):
            assert await take(engine, tree) is None
        await engine.reopen()
        assert await take(engine, tree) is None
        assert await take(engine, other) is not None
        await engine.jobs.change(tree.id, "resume", "")
        await engine.jobs.seal(tree.id, "")
        assert len(await work(engine, tree, lambda name, payload: b"1")) == 600
        assert (await shown(engine, tree)).state == "complete"

    async def test_failed_items_are_tried_again_in_another_tree_once_the_first_is_over(
        self, engine: JobsEngine
    ) -> None:
        # Given a tree of which all items failed
        tree = await make(engine, tree_of(job("a"), job("b", "a")))
        await fill(engine, tree, *(f"{n}".encode() for n in range(1500)))
        with pytest.raises(Conflict, match="is not over"):
            await engine.jobs.retry(tree.id, "again", "ann")
        await engine.jobs.seal(tree.id, "")
        await work(engine, tree, lambda name, payload: None, rounds=100)
        # When they are tried again, and the answer is lost
        for _ in range(2):
            assert await engine.jobs.retry(tree.id, "again", "ann") == TreeRetry("again", 1500)
        # Then there is one other tree with what they were given, and no more
        again = tree_of(*tree.jobs, id="again")
        assert (await shown(engine, again)).pending == 1500
        ran = await work(engine, tree, lambda name, payload: payload.strip(b"<>"), rounds=100)
        assert sorted(payload for name, payload in ran if name == "a") == sorted(f"{n}".encode() for n in range(1500))
        found = await shown(engine, again)
        assert (found.state, found.succeeded, found.failed, found.created_by) == ("complete", 3000, 0, "ann")
        with pytest.raises(InvalidRequest, match="no item of the job 'again' failed"):
            await engine.jobs.retry("again", "more", "ann")

    async def test_failed_items_are_not_put_into_somebody_elses_tree(self, engine: JobsEngine) -> None:
        # Given a tree of which all items failed, and another one that is still filled
        tree, other = await make(engine, tree_of(job("a"))), await make(engine, tree_of(job("a"), id="other"))
        await fill(engine, tree, b"1")
        await engine.jobs.seal(tree.id, "")
        await work(engine, tree, lambda name, payload: None)
        # When they are tried again in a tree of the other one's id, then nothing becomes of it
        with pytest.raises(Conflict, match="the job 'other' exists already, with another definition"):
            await engine.jobs.retry(tree.id, other.id, "ann")
        found = await shown(engine, other)
        assert (found.pending, found.jobs[0].sealed) == (0, False)

    async def test_an_item_that_failed_behind_another_job_is_tried_again_there(self, engine: JobsEngine) -> None:
        tree = await make(engine, tree_of(job("a"), job("b", "a")))
        await fill(engine, tree, b"1", b"2", b"3")
        await engine.jobs.seal(tree.id, "")
        fails = (("a", b"1"), ("b", b"<2>"))
        await work(engine, tree, lambda name, payload: None if (name, payload) in fails else payload)
        assert await engine.jobs.retry(tree.id, "again", "") == TreeRetry("again", 2)
        ran = await work(engine, tree, lambda name, payload: payload)
        assert sorted(ran) == [("a", b"1"), ("b", b"<1>"), ("b", b"<2>")]

    async def test_at_most_one_item_of_a_key_runs_whatever_the_tree(self, engine: JobsEngine) -> None:
        trees = [await make(engine, tree_of(job("a"), id=id)) for id in ("one", "two")]
        for tree in trees:
            await engine.jobs.add(tree.id, "", "call", [JobItem(b"1", key="k"), JobItem(b"2", key="k")])
        running = [leased for tree in trees if (leased := await take(engine, tree)) is not None]
        assert [len(leased.ids) for leased in running] == [1]

    async def test_the_end_of_a_tree_is_told_once_and_not_before_it(self, engine: JobsEngine) -> None:
        # Given trees whose ends are to be told
        whole, cut = tree_of(job("a"), job("b", "a"), on_done="f"), tree_of(job("a"), id="job-2", on_done="f")
        for tree in (whole, cut):
            await make(engine, tree)
            await fill(engine, tree, b"1", b"2")
        # When one ends as all of its items have, and the other one is cancelled
        await engine.jobs.seal(whole.id, "")
        assert await told(engine) == []
        await work(engine, whole, lambda name, payload: None if payload == b"<1>" else payload)
        await engine.reopen()
        [event] = await told(engine)
        await engine.jobs.change(cut.id, "cancel", "enough")
        await engine.sweep()
        [other] = await told(engine)
        # Then each end was told, with how it went, and is told no more
        assert isinstance(event.pop("at"), float)
        expected = {"id": "job-1:done", "job": "job-1", "type": "law", "state": "complete", "succeeded": 3, "failed": 1}
        assert event == expected | {"why": ""}
        assert (other["id"], other["state"], other["why"]) == ("job-2:done", "cancelled", "enough")
        # And another try of what failed is told likewise
        assert await engine.jobs.retry(whole.id, "again", "") == TreeRetry("again", 1)
        await work(engine, whole, lambda name, payload: payload)
        assert [each["id"] for each in await told(engine)] == ["again:done"]
        assert await told(engine) == []

    async def test_results_come_in_pages_and_those_of_failed_items_say_why(self, engine: JobsEngine) -> None:
        tree = await make(engine, tree_of(job("a"), job("b", "a", final=True), job("c", "b")))
        await fill(engine, tree, *(str(n).encode() for n in range(25)))
        await engine.jobs.seal(tree.id, "")
        await work(
            engine, tree, lambda name, payload: None if name == "b" and payload == b"<7>" else payload.strip(b"<>")
        )
        found, after = [], ""
        while True:
            page = await engine.jobs.results(tree.id, after, 10, 1 << 20)
            found += page.results
            after = page.after
            if not after:
                break
        assert sorted(int(each.result) for each in found if each.succeeded and each.job == "b") == [
            n for n in range(25) if n != 7
        ]
        assert [each.reason for each in found if not each.succeeded] == ["it fails"]
        small = await engine.jobs.results(tree.id, "", 10, 1)
        assert len(small.results) == 1
        assert small.after
        # And pages that are bounded by their bytes have them all, too
        again, pages = [*small.results], 1
        while small.after:
            small = await engine.jobs.results(tree.id, small.after, 100, 7)
            again, pages = [*again, *small.results], pages + 1
        assert again == found
        assert pages > 4

    async def test_a_tree_is_made_once_and_its_key_is_of_one_tree(self, engine: JobsEngine) -> None:
        tree = tree_of(job("a"), key="k")
        await make(engine, tree)
        await make(engine, tree)
        with pytest.raises(Conflict, match="with another definition"):
            await make(engine, tree_of(job("b")))
        with pytest.raises(Conflict, match="has the key 'k' already"):
            await make(engine, tree_of(job("a"), id="job-2", key="k"))
        assert [each.id for each in await engine.jobs.trees("", "", 10)] == ["job-1"]

    async def test_the_key_of_a_tree_is_the_tenants_of_its_first_job(self, engine: JobsEngine) -> None:
        for tenant in ("", "a", "b"):
            await make(engine, tree_of(job("a", tenant=tenant), id=f"job-{tenant}", key="k"))
            with pytest.raises(Conflict, match="has the key 'k' already"):
                await make(engine, tree_of(job("a", tenant=tenant), id="other", key="k"))
        assert [each.key for each in await engine.jobs.trees("", "", 10)] == ["k", "k", "k"]
        found = await engine.jobs.show("job-a")
        assert found is not None and (found.key, found.jobs[0].tenant) == ("k", "a")

    async def test_a_tree_is_kept_for_its_time_and_then_forgotten_whole(self, engine: JobsEngine) -> None:
        tree = await make(engine, tree_of(job("a"), key="k"))
        await fill(engine, tree, *([b"1"] * 2500))
        await engine.jobs.seal(tree.id, "")
        await work(engine, tree, lambda name, payload: b"1")
        await engine.pass_time(WEEK - 60)
        await engine.sweep()
        assert (await shown(engine, tree)).state == "complete"
        await engine.pass_time(120)
        while await engine.sweep():
            assert await engine.jobs.show(tree.id) is None
        await make(engine, tree_of(job("a"), id="job-2", key="k"))

    async def test_what_is_no_tree_is_refused_and_changes_nothing(self, engine: JobsEngine) -> None:
        refused = {
            "wait for each other": tree_of(job("a"), job("b", "a", "c"), job("c", "b")),
            "does not have": tree_of(job("a"), job("b", "x")),
            "two jobs": tree_of(job("a"), job("a")),
            "comes after none": tree_of(job("a"), job("b")),
            "is its root": tree_of(job("a", "b"), job("b", "a")),
            "expected 1 to 256": tree_of(*(job(f"j{n}", *(["j0"] if n else [])) for n in range(257))),
            "at most 100": tree_of(*(job(f"j{n}", *([f"j{n - 1}"] if n else [])) for n in range(101))),
            "policy": tree_of(job("a"), policy="sometimes"),
            "most_failed": tree_of(job("a"), policy="threshold", most_failed=-1),
            "gather and each": tree_of(job("a"), job("b", "a", gather=True, each=True)),
        }
        for why, tree in refused.items():
            with pytest.raises(InvalidRequest, match=why):
                await make(engine, tree)
        for text in HOSTILE:
            for tree in (tree_of(job("a"), id=text), tree_of(job(text)), tree_of(job("a"), key=text)):
                with pytest.raises(InvalidRequest):
                    await make(engine, tree)
        assert await engine.jobs.trees("", "", 10) == []

    async def test_what_cannot_be_added_is_refused_whole(self, engine: JobsEngine) -> None:
        tree = await make(engine, tree_of(job("a"), job("b", "a")))
        bad = [JobItem(b"1" * (MOST + 1)), *(JobItem(b"1", key=text) for text in HOSTILE)]
        bad += [JobItem(b"1", dedupe_key=text) for text in HOSTILE]
        for item in bad:
            with pytest.raises((InvalidRequest, InvalidPayload)):
                await engine.jobs.add(tree.id, "", "call", [JobItem(b"1"), item])
        for id, name in (("nobody", ""), (tree.id, "x"), (tree.id, "\ud800"), ("\ud800", "")):
            with pytest.raises(InvalidRequest):
                await engine.jobs.add(id, name, "call", [JobItem(b"1")])
        with pytest.raises(InvalidRequest, match="sealed when they are complete"):
            await engine.jobs.seal(tree.id, "b")
        assert (await shown(engine, tree)).pending == 0

    async def test_plain_workloads_beside_a_tree_are_none_of_it(self, engine: JobsEngine) -> None:
        tree = await make(engine, tree_of(job("a"), job("b", "a")))
        await fill(engine, tree, b"1")
        await engine.queue.submit([NewItem(Kind(f"{tree.id}:a", 2), b"plain")])
        leased = await take(engine, tree)
        assert leased is not None
        assert [leased.payloads[index] for index in leased.jobs] == [b"1"]
        assert await engine.queue.settle(leased.fence, leased.ids, []) == []
        found = await shown(engine, tree)
        assert [(each.pending, each.succeeded) for each in found.jobs] == [(0, 1), (1, 0)]
