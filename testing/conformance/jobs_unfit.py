"""Laws of results of which no item of the next job can be made: a settlement names them, for their dead letters."""

from __future__ import annotations

from ...model.claim import Settle, State
from .jobs_engine import LEASE, MOST, JobsEngine, fill, job, make, shown, take, tree_of, work

RESULTS = {b"large": b"1" * (MOST - 1), b"odd": b"7", b"fits": b"[1]"}


class JobsUnfitLaws:
    """Laws of unfit results. An engine's test derives from them and gives a fixture `engine`."""

    async def test_who_settles_a_result_of_which_no_item_can_be_made_hears_why(self, engine: JobsEngine) -> None:
        # Given items whose results are too large for one job, no list for another one, and right
        tree = await make(engine, tree_of(job("a"), job("b", "a"), job("c", "a", each=True)))
        await fill(engine, tree, *RESULTS)
        leased = await take(engine, tree, ["a"])
        assert leased is not None
        id_of = {payload: id for id, payload in zip(leased.ids, leased.payloads, strict=True)}
        ends = [
            Settle(id_of[payload], leased.fence, State.SUCCESS, result=result) for payload, result in RESULTS.items()
        ]
        # When they are settled, and the answer is lost
        for again in (False, True):
            told = await engine.queue.settle_results(leased.fence, [], ends)
            # Then it says of two that they failed, and why
            assert told.unfit.keys() == {id_of[b"large"], id_of[b"odd"]}
            assert f"its result has {MOST - 1} bytes" in told.unfit[id_of[b"large"]]
            assert "it is no list" in told.unfit[id_of[b"odd"]]
            assert not told.refused or again
        assert [each.failed for each in (await shown(engine, tree)).jobs] == [2, 0, 0]
        # And once one has another life, only the other one is told
        [life] = await engine.jobs.redrive([id_of[b"odd"]])
        assert life.workload
        told = await engine.queue.settle_results(leased.fence, [], ends)
        assert told.unfit.keys() == {id_of[b"large"]}

    async def test_what_failed_in_another_run_is_none_of_these(self, engine: JobsEngine) -> None:
        # Given an item that was lost, and failed in the run that had it next
        tree = await make(engine, tree_of(job("a"), job("b", "a")))
        await fill(engine, tree, b"1")
        former = await take(engine, tree)
        assert former is not None
        await engine.pass_time(LEASE + 1)
        await take(engine, tree, ["b"])
        leased = await take(engine, tree)
        assert leased is not None
        assert leased.ids == former.ids
        lost = Settle(leased.ids[0], leased.fence, State.FATAL_FAILURE, reason="a bug")
        await engine.queue.settle(leased.fence, [], [lost])
        # When the former run is settled
        late = Settle(former.ids[0], former.fence, State.SUCCESS, result=RESULTS[b"large"])
        told = await engine.queue.settle_results(former.fence, [], [late])
        # Then it is refused, and nothing is said of it
        assert (told.refused, told.unfit) == (former.ids, {})

    async def test_plain_settlements_are_answered_as_ever(self, engine: JobsEngine) -> None:
        tree = await make(engine, tree_of(job("a"), job("b", "a")))
        await fill(engine, tree, b"1", b"2")
        leased = await take(engine, tree)
        assert leased is not None
        one, two = leased.ids
        told = await engine.queue.settle_results(
            leased.fence, [one], [Settle(two, leased.fence, State.SUCCESS, result=b"2")]
        )
        assert (told.refused, told.unfit) == ([], {})
        assert sorted(await work(engine, tree, lambda name, payload: payload)) == [("b", b"<2>"), ("b", b"<null>")]
