"""Laws of items that are handed out: leases, fences, and cancelling them meanwhile."""

from __future__ import annotations

import pytest

from ...model.claim import Settle, State
from ...model.demand import Closed
from ...model.errors import InvalidRequest
from ...stores.queue.lifecycle import LEASED
from ...stores.queue.queue import NewItem
from .queue_engine import (
    LEASE,
    MAIL,
    QueueEngine,
    nothing,
    put,
    state,
    take,
    wanting,
)


class LeaseLaws:
    """The laws of a claim: how it is kept, lost and ended."""

    async def test_fences_rise_through_reopenings_and_clocks_that_jump_back(self, engine: QueueEngine) -> None:
        await put(engine, NewItem(MAIL, b""))
        fences = []
        for jump in (0.0, 0.0, -3600.0, 0.0, -3600.0):
            leased = await take(engine)
            fences.append(leased.fence)
            await engine.queue.settle(leased.fence, [], [Settle(leased.ids[0], leased.fence, State.NEW)])
            await engine.reopen()
            await engine.pass_time(jump)
            await engine.pass_time(0.001)
            await put(engine, NewItem(MAIL, b""))
        assert fences == sorted(set(fences))

    async def test_an_ended_lease_is_leased_again_under_a_higher_fence(self, engine: QueueEngine) -> None:
        await put(engine, NewItem(MAIL, b""))
        first = await take(engine)
        await engine.pass_time(LEASE + 1)
        second = await take(engine)
        assert second.ids == first.ids
        assert second.fence > first.fence
        assert second.attempts == [1]

    async def test_a_lease_that_is_over_this_moment_is_over_for_all_alike_or_for_nobody(
        self, engine: QueueEngine
    ) -> None:
        # Given an item whose lease is over this very moment, at a gate
        [id] = await put(engine, NewItem(MAIL, b""))
        first = await take(engine)
        await engine.pass_time(LEASE)
        # When somebody claims past it: an engine that may not have read all renewals yet leaves it a moment
        assert await nothing(engine, wanting(MAIL, closed=[Closed(MAIL.function)]))
        stands = await state(engine, id) in LEASED
        # Then its holder goes on only if nobody else may have it
        kept = not (await engine.queue.renew([id], first.fence, LEASE, State.PROCESSING)).lost
        assert stands or not kept
        await engine.pass_time(1)
        if kept:
            assert await nothing(engine)
            await engine.pass_time(LEASE + 1)
        second = await take(engine)
        assert (second.ids, second.attempts) == ([id], [1]) and second.fence > first.fence
        assert await engine.queue.settle(first.fence, [id], []) == [id]

    async def test_a_lease_holds_through_a_reopening_and_ends_in_its_time(self, engine: QueueEngine) -> None:
        await put(engine, NewItem(MAIL, b""))
        leased = await take(engine)
        await engine.reopen()
        assert await nothing(engine)
        assert (await engine.queue.renew(leased.ids, leased.fence, LEASE, State.PROCESSING)).lost == []
        await engine.reopen()
        await engine.pass_time(LEASE + 1)
        assert (await take(engine)).ids == leased.ids

    async def test_a_renewed_lease_lasts_from_its_renewal(self, engine: QueueEngine) -> None:
        await put(engine, NewItem(MAIL, b""))
        leased = await take(engine)
        for phase in (State.PROCESSING, State.PROCESSING):
            await engine.pass_time(LEASE * 0.7)
            renewed = await engine.queue.renew(leased.ids, leased.fence, LEASE, phase)
            assert (renewed.lost, renewed.cancel) == ([], [])
            assert await state(engine, leased.ids[0]) is phase
        assert await nothing(engine)
        assert await engine.queue.settle(leased.fence, leased.ids, []) == []

    async def test_an_item_left_out_of_a_renewal_ends_in_its_time(self, engine: QueueEngine) -> None:
        await put(engine, *(NewItem(MAIL, b"") for _ in range(3)))
        leased = await take(engine)
        await engine.pass_time(LEASE * 0.7)
        assert (await engine.queue.renew(leased.ids[:2], leased.fence, LEASE, State.PROCESSING)).lost == []
        await engine.pass_time(LEASE * 0.7)
        assert (await take(engine)).ids == leased.ids[2:]
        assert await engine.queue.settle(leased.fence, leased.ids, []) == leased.ids[2:]

    async def test_it_does_so_after_a_reopening_too_and_the_renewed_ones_go_on(self, engine: QueueEngine) -> None:
        await put(engine, *(NewItem(MAIL, b"") for _ in range(3)))
        leased = await take(engine)
        await engine.pass_time(LEASE * 0.7)
        assert (await engine.queue.renew(leased.ids[:2], leased.fence, LEASE, State.PROCESSING)).lost == []
        await engine.reopen()
        await engine.pass_time(LEASE * 0.7)
        assert (await take(engine)).ids == leased.ids[2:]
        assert await engine.queue.settle(leased.fence, leased.ids, []) == leased.ids[2:]

    async def test_a_renewal_names_what_is_lost(self, engine: QueueEngine) -> None:
        await put(engine, NewItem(MAIL, b""), NewItem(MAIL, b""))
        first = await take(engine)
        await engine.queue.settle(first.fence, first.ids[:1], [])
        await engine.pass_time(LEASE + 1)
        second = await take(engine)
        assert second.ids == first.ids[1:]
        unknown = "0" * 16
        renewed = await engine.queue.renew([*first.ids, unknown], first.fence, LEASE, State.PROCESSING)
        assert renewed.lost == [*first.ids, unknown]
        assert (await engine.queue.renew(second.ids, second.fence, LEASE, State.PROCESSING)).lost == []

    async def test_a_lease_is_renewed_as_processing_only(self, engine: QueueEngine) -> None:
        await put(engine, NewItem(MAIL, b""))
        leased = await take(engine)
        for phase in set(State) - {State.PROCESSING}:
            with pytest.raises(InvalidRequest, match=phase.label):
                await engine.queue.renew(leased.ids, leased.fence, LEASE, phase)

    async def test_an_item_whose_holder_died_goes_before_all_that_came_later(self, engine: QueueEngine) -> None:
        await put(engine, NewItem(MAIL, b"lost"))
        await take(engine)
        await put(engine, NewItem(MAIL, b"waits"))
        await engine.pass_time(LEASE + 1)
        assert (await take(engine)).payloads == [b"lost", b"waits"]


class CancellingLaws:
    """The laws of cancelling: how a user ends a submitted item."""

    async def test_an_item_that_waits_is_cancelled_at_once(self, engine: QueueEngine) -> None:
        [id] = await put(engine, NewItem(MAIL, b""))
        assert await engine.queue.cancel([id, "0" * 16]) == ["cancelled", "unknown"]
        assert await nothing(engine)
        assert await state(engine, id) is State.CANCELLED
        assert await engine.queue.cancel([id]) == ["ended"]

    async def test_the_holder_of_a_leased_item_is_told_at_its_renewal(self, engine: QueueEngine) -> None:
        await put(engine, NewItem(MAIL, b""), NewItem(MAIL, b""))
        leased = await take(engine)
        assert await engine.queue.cancel(leased.ids[:1]) == ["requested"]
        renewed = await engine.queue.renew(leased.ids, leased.fence, LEASE, State.PROCESSING)
        assert (renewed.lost, renewed.cancel) == ([], leased.ids[:1])

    @pytest.mark.parametrize("back", [State.NEW, State.RETRIABLE_FAILURE])
    async def test_a_cancelled_item_that_is_returned_ends(self, engine: QueueEngine, back: State) -> None:
        await put(engine, NewItem(MAIL, b""))
        leased = await take(engine)
        await engine.queue.cancel(leased.ids)
        settle = Settle(leased.ids[0], leased.fence, back)
        assert await engine.queue.settle(leased.fence, [], [settle]) == []
        assert await engine.queue.settle(leased.fence, [], [settle]) == []
        assert await state(engine, leased.ids[0]) is State.CANCELLED
        assert await nothing(engine)

    async def test_a_cancelled_item_whose_holder_died_is_not_handed_out_again(self, engine: QueueEngine) -> None:
        await put(engine, NewItem(MAIL, b""))
        leased = await take(engine)
        await engine.queue.cancel(leased.ids)
        await engine.pass_time(LEASE + 1)
        assert await nothing(engine)
        assert await state(engine, leased.ids[0]) is State.CANCELLED

    async def test_a_cancelled_item_may_still_succeed(self, engine: QueueEngine) -> None:
        await put(engine, NewItem(MAIL, b""))
        leased = await take(engine)
        await engine.queue.cancel(leased.ids)
        assert await engine.queue.settle(leased.fence, leased.ids, []) == []
        assert await state(engine, leased.ids[0]) is State.SUCCESS
