"""Laws of a queue about who has an item when two want it: its holder, who renews or ends it, and whoever comes next."""

from __future__ import annotations

import asyncio

from ...sdk.model.claim import Leased, State
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
