"""Laws of sweeps: the upkeep that the owner of a queue does now and then, independent of claims."""

from __future__ import annotations

from typing import Protocol, cast

from ...model.claim import State
from ...stores.queue.engines import OpenQueue
from ...stores.queue.lifecycle import WAITING
from ...stores.queue.queue import NewItem
from ...stores.queue.sweep_grace import GRACE
from .queue_engine import LEASE, MAIL, QueueEngine, put, state, take

#: Seconds: more than the retention.
DAYS = 8 * 86_400.0


class SteppedEngine(QueueEngine, Protocol):
    """An engine whose wall clock, or its server's, can be set."""

    def jump(self, seconds: float) -> None:
        """Sets the clock that its items' ends bear forward, or back."""


class SweepLaws:
    """The laws of sweeps of queues that are in the process."""

    async def test_leases_that_are_over_end_though_nobody_claims(self, engine: QueueEngine) -> None:
        queue = cast(OpenQueue, engine.queue)
        kept, given_up = await put(engine, NewItem(MAIL, b""), NewItem(MAIL, b""))
        leased = await take(engine)
        assert await queue.cancel([given_up]) == ["requested"]
        await queue.sweep()
        # When the store stood still with whoever has them, then the first sweep takes nothing from who goes on
        await engine.pass_time(2 * LEASE)
        await queue.sweep()
        assert (await queue.renew(leased.ids, leased.fence, LEASE, State.PROCESSING)).lost == []
        # When whoever has them is gone, and nobody runs anything
        for _ in range(2):
            await engine.pass_time(LEASE + GRACE / 1e6)
            await queue.sweep()
        # Then one waits again, and the other one has ended
        assert await state(engine, kept) in WAITING
        assert await state(engine, given_up) is State.CANCELLED
        assert (await take(engine)).ids == [kept]

    async def test_a_clock_that_is_set_forward_for_a_moment_makes_nothing_old(self, engine: QueueEngine) -> None:
        queue, stepped = cast(OpenQueue, engine.queue), cast(SteppedEngine, engine)
        # Given an item that is done, with a dedupe key
        [done] = await put(engine, NewItem(MAIL, b"", dedupe_key="k"))
        leased = await take(engine)
        await queue.settle(leased.fence, leased.ids, [])
        await queue.sweep()
        # When the clock is days ahead while the queue is swept, and right again
        stepped.jump(DAYS)
        for _ in range(3):
            await queue.sweep()
            await engine.pass_time(5)
        stepped.jump(-DAYS)
        await queue.sweep()
        # Then it is known, and its key too
        assert await state(engine, done) is State.SUCCESS
        assert await queue.submit([NewItem(MAIL, b"", dedupe_key="k")]) == [(done, True)]
