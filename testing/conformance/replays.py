"""The laws that every store of replays obeys."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ...model.errors import InvalidRequest
from ...model.replay import Bound, Replay, ReplayOrder, ReplayState, Stretch, asked_for, may_move
from ...stores.replays.replays import KEPT, Replays
from .bench import StoreBench, StoreLaws

WHOLE = Replay(
    0,
    "t/é",
    (Stretch("p-0", 1 << 40, (1 << 40) + 9, ((1 << 40, (1 << 40) + 3), ((1 << 40) + 7, (1 << 40) + 8)), 6, 3),),
    "failed",
    12.5,
    "reporting",
    "ann@host",
    "why: è",
    1_700_000_000.125,
)


class ReplayLaws(StoreLaws[Replays]):
    """Laws of replays: a number is given once, and a replay that is over stays over."""

    async def test_a_replay_comes_back_whole(self, store: StoreBench[Replays]) -> None:
        kept = await store.engine.add(WHOLE)
        assert kept.number > 0
        for _ in range(2):
            assert await store.engine.get(kept.number) == kept
            assert await store.engine.list(10) == [kept]
            await store.reopen()
        assert await store.engine.get(kept.number + 1) is None

    async def test_the_newest_come_first_and_those_that_go_on_alone(self, store: StoreBench[Replays]) -> None:
        one, two, three = [await store.engine.add(WHOLE) for _ in range(3)]
        assert one.number < two.number < three.number
        await store.engine.move(two.number, ReplayState.CANCELLING, 1.0, {})
        await store.engine.move(two.number, ReplayState.CANCELLED, 1.0, {})
        assert [each.number for each in await store.engine.list(2)] == [three.number, two.number]
        assert [each.number for each in await store.engine.list(9, going=True)] == [three.number, one.number]

    async def test_what_is_asked_for_is_answered_once(self, store: StoreBench[Replays]) -> None:
        order = ReplayOrder("t/é", Bound(0), Bound(time=12.5), "failed", "p-0", dry_run=True)
        asked = await store.engine.add(asked_for(order, 7.0))
        assert (asked.state, asked.order) == (ReplayState.ASKED, order)
        assert await store.engine.list(9, going=True) == [asked]
        refused = await store.engine.add(asked_for(order, 7.0))
        begun = replace(asked, state=ReplayState.RUNNING, stretches=WHOLE.stretches, sparse=True)
        no = replace(refused, state=ReplayState.REFUSED, detail="no: é", ended_at=8.0)
        for answer in (begun, no):
            assert await store.engine.answer(answer) == answer
        await store.reopen()
        for late in (replace(begun, state=ReplayState.REFUSED, detail="late"), replace(no, state=ReplayState.RUNNING)):
            assert await store.engine.answer(late) == (begun if late.number == begun.number else no)
        assert await store.engine.get(begun.number) == begun
        assert await store.engine.list(9) == [no, begun]
        assert await store.engine.list(9, going=True) == [begun]
        with pytest.raises(InvalidRequest, match="no replay"):
            await store.engine.answer(replace(begun, number=1 << 40))

    async def test_what_is_over_keeps_its_counts_and_no_spans(self, store: StoreBench[Replays]) -> None:
        number = (await store.engine.add(WHOLE)).number
        await store.engine.move(number, ReplayState.RETRYING, 5.0, {"succeeded": 1})
        done = await store.engine.move(number, ReplayState.DONE, 6.0, {"succeeded": 5, "dead": 1})
        assert (done.state, done.ended_at, done.counts) == (ReplayState.DONE, 6.0, {"succeeded": 5, "dead": 1})
        assert done.stretches == tuple(stretch._replace(spans=()) for stretch in WHOLE.stretches)
        assert await store.engine.move(number, ReplayState.DONE, 9.0, {}) == done
        await store.reopen()
        assert await store.engine.get(number) == done

    async def test_there_are_no_other_moves(self, store: StoreBench[Replays]) -> None:
        for first in (ReplayState.PAUSED, ReplayState.RETRYING, ReplayState.CANCELLING):
            for state in ReplayState:
                number = (await store.engine.add(WHOLE)).number
                await store.engine.move(number, first, 1.0, {})
                if may_move(first, state):
                    assert (await store.engine.move(number, state, 2.0, {})).state is state
                else:
                    with pytest.raises(InvalidRequest, match="cannot become"):
                        await store.engine.move(number, state, 2.0, {})
                    found = await store.engine.get(number)
                    assert found is not None and found.state is first
        with pytest.raises(InvalidRequest, match="no replay"):
            await store.engine.move(1 << 40, ReplayState.PAUSED, 1.0, {})

    async def test_old_ones_are_forgotten_when_they_are_over_and_no_number_comes_again(
        self, store: StoreBench[Replays]
    ) -> None:
        small = Replay(0, "t", ())
        going = await store.engine.add(small)
        for _ in range(KEPT + 2):
            number = (await store.engine.add(small)).number
            await store.engine.move(number, ReplayState.CANCELLING, 1.0, {})
            await store.engine.move(number, ReplayState.CANCELLED, 1.0, {})
        last = await store.engine.add(small)
        numbers = [each.number for each in await store.engine.list(2 * KEPT)]
        assert len(numbers) == KEPT + 2 and numbers[0] == last.number > number and numbers[-1] == going.number
