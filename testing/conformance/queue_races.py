"""Laws of races for an item of a queue: between its holder, callers who renew or end it, and the next claim."""

from __future__ import annotations

import asyncio

from ...model.claim import Leased, State
from ...stores.queue.queue import NewItem
from .queue_engine import LEASE, MAIL, QueueEngine, nothing, put, state, take, wanting


class RaceLaws:
    """The holder of a lease against all others."""

    async def test_what_runs_ten_times_its_lease_and_is_renewed_is_nobody_elses(self, engine: QueueEngine) -> None:
        # Given an item that is leased
        await put(engine, NewItem(MAIL, b""))
        leased = await take(engine)
        # When it is renewed three times in each lease, for ten leases, then nobody else is given it meanwhile
        for _ in range(30):
            await engine.pass_time(LEASE / 3)
            assert await nothing(engine)
            assert (await engine.queue.renew(leased.ids, leased.fence, LEASE, State.PROCESSING)).lost == []
        # And its end counts
        assert await engine.queue.settle(leased.fence, leased.ids, []) == []
        assert await state(engine, leased.ids[0]) is State.SUCCESS

    async def test_an_end_that_meets_a_rescue_counts_or_is_refused(self, engine: QueueEngine) -> None:
        # Given items whose lease is over, and a holder that lives
        ids = await put(engine, *(NewItem(MAIL, b"") for _ in range(40)))
        first = await take(engine)
        assert sorted(first.ids) == sorted(ids)
        await engine.pass_time(LEASE + 1)
        # When it ends them one by one while somebody else is given what has no holder
        ends = [engine.queue.settle(first.fence, [each], []) for each in first.ids]
        claims = [engine.queue.lease(wanting(), LEASE, 0) for _ in range(3)]
        half = len(ends) // 2
        found = await asyncio.gather(*ends[:half], *claims, *ends[half:])
        refused = {id for answer in found if isinstance(answer, list) for id in answer}
        again = [id for answer in found if isinstance(answer, Leased) for id in answer.ids]
        # Then each item ended or was handed out again, under a higher fence, and never both
        ended = set(ids) - refused
        assert not ended & set(again) and len(again) == len(set(again))
        assert all([await state(engine, each) is State.SUCCESS for each in ended])
        later = await engine.queue.lease(wanting(), LEASE, 0)
        assert {*again, *(later.ids if later is not None else ())} == refused
        assert all(answer.fence > first.fence for answer in found if isinstance(answer, Leased))

    async def test_what_cannot_be_stored_fails_alone_whatever_shares_its_write(self, engine: QueueEngine) -> None:
        # Given submissions of one moment, of which some say what no store can keep
        await put(engine, NewItem(MAIL, b""))  # what comes in one moment shares a write from now on
        bad = [
            NewItem(MAIL._replace(tenant="half \ud800"), b""),
            NewItem(MAIL, b"", headers=(("half", "\udfff"),)),
            NewItem(MAIL, b"", key="half \ud800"),
            NewItem(MAIL._replace(priority=1 << 70), b""),
        ]
        good = [NewItem(MAIL, str(number).encode()) for number in range(len(bad) + 1)]
        lone = [good[0], *(each for pair in zip(bad, good[1:], strict=True) for each in pair)]
        # When they come, Then the others are stored
        found = await asyncio.gather(*(engine.queue.submit([each]) for each in lone), return_exceptions=True)
        refused = [each for each, answer in zip(lone, found, strict=True) if isinstance(answer, BaseException)]
        assert not [each for each in refused if each in good], found
        assert {*(await take(engine)).payloads} == {b"", *(each.payload for each in good)}

    async def test_a_settlement_that_makes_no_sense_fails_alone_whatever_shares_its_write(
        self, engine: QueueEngine
    ) -> None:
        # Given items that are out one by one
        await put(engine, *(NewItem(MAIL, b"") for _ in range(4)))
        out = [await take(engine, wanting(total=1)) for _ in range(4)]
        # When they are settled in one moment with settlements under fences that cannot be, or of ids that are none
        sound = [engine.queue.settle(each.fence, each.ids, []) for each in out]
        odd = [
            engine.queue.settle(fence, ids, [])
            for fence, ids in ((1 << 70, out[0].ids), (-1, out[0].ids), (out[0].fence, ["no id", "\ud800"]))
        ]
        found = await asyncio.gather(
            sound[0], odd[0], sound[1], odd[1], sound[2], odd[2], sound[3], return_exceptions=True
        )
        # Then the others count, and those are refused in one way or the other
        assert found[::2] == [[]] * 4
        assert all(isinstance(each, Exception) or each for each in found[1::2]), found
        assert [await state(engine, each.ids[0]) for each in out] == [State.SUCCESS] * 4
