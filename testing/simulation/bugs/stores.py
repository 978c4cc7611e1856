"""Mistakes in the queue, in streams and their takeover, and in the delay service."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from typing import Any
from unittest import mock

from ....delay_service.mover import Rung
from ....model.outcome import Outcome
from ....stores.queue.ids import id_number
from ....stores.queue.sqlite import claim as sqlite_claim
from ....stores.queue.sqlite import queue as queue_
from ....stores.queue.sqlite import settle as sqlite_settle
from ....tailers.departures.departure import settle
from ....tailers.departures.departures import Departures
from ....tailers.departures.destinations import Destinations
from ....tailers.departures.queue_settlements import QueueSettlements
from ....tailers.pumps import pump as pump_
from ....tailers.pumps.queue_pump import QueuePump
from ....tailers.pumps.stream_pump import StreamPump
from ....tailers.rules import settlement as settlement_
from ....tailers.rules.departure_steps import Step, Way
from ....tailers.rules.frontier import Frontier
from ....tailers.rules.held import HeldPositions as HeldItems
from ....tailers.takeover import epoch as epoch_
from ....tailers.takeover.epoch import Epoch
from ..planting import Bug, breaks, bug, instead

# ---- the queue


@bug
def _queue_accepts_a_stale_fence() -> Bug:
    def any_fence(real: Any) -> Any:
        def settle(connection: Any, memory: Any, fence: int, items: Any, now: int) -> Any:
            refused = []
            for each in items:
                number = id_number(getattr(each, "id", each))
                row = connection.execute("SELECT fence FROM tasks WHERE id = ?", (number,)).fetchone()
                refused += real(connection, memory, row[0] if row is not None else fence, [each], now)
            return refused

        return settle

    stack = contextlib.ExitStack()
    stack.enter_context(instead(queue_, "succeed", any_fence(sqlite_settle.succeed)))
    stack.enter_context(instead(queue_, "end", any_fence(sqlite_settle.end)))
    return stack


@bug
def _queue_fences_go_back_with_the_clock() -> Bug:
    real = sqlite_claim.claim

    def claim(connection: Any, memory: Any, *rest: Any) -> Any:
        memory.fence = 0
        connection.execute("UPDATE tasks SET fence = 0 WHERE state < 2")
        return real(connection, memory, *rest)

    return instead(queue_, "claim", claim)


@breaks("L1", by="two at once")
def _queue_ends_leases_early() -> Bug:
    real = sqlite_claim.claim

    def told(connection: Any, memory: Any, demand: Any, gates: Any, seconds: float, *rest: Any) -> Any:
        leased = real(connection, memory, demand, gates, seconds / 4, *rest)
        if not isinstance(leased, float):
            leased.lease = seconds
        return leased

    return instead(queue_, "claim", told)


@bug
def _queue_ignores_due_times() -> Bug:
    real = sqlite_settle.end

    def end(connection: Any, memory: Any, fence: int, others: Any, now: int) -> Any:
        return real(connection, memory, fence, [each._replace(delay=0.0) for each in others], now)

    return instead(queue_, "end", end)


@bug
def _queue_forgets_the_letter_of_what_it_buries() -> Bug:
    real = QueueSettlements.end

    def end(self: QueueSettlements, *args: Any) -> None:
        real(self, *args)
        self._letters.clear()

    return instead(QueueSettlements, "end", end)


@breaks("L1", by="granted")
def _queue_claims_are_not_renewed() -> Bug:
    async def renew(self: QueuePump, out: Any, ended: Any) -> None:
        out.place.until = self.clock.monotonic() + self.sizes.source

    return instead(QueuePump, "_renew", renew)


# ---- streams


@bug
def _frontier_is_off_by_one() -> Bug:
    real = Frontier.advance

    def advance(self: Frontier) -> bool:
        moved = real(self)
        if self._bits:
            del self._bits[:1]
            self.position += 1
        return moved

    return instead(Frontier, "advance", advance)


@breaks("L15", by="the checkpoint passed")
def _settled_before_it_is_parked() -> Bug:
    real = Departures._add

    def add(self: Departures, departing: Any, due_in: float | None = None) -> None:
        real(self, departing, due_in)
        if departing.leg.way is Way.PARK:
            settle([departing])

    return instead(Departures, "_add", add)


@bug
def _a_held_item_is_forgotten() -> Bug:
    real = HeldItems.hold

    def hold(self: HeldItems, kind: Any, positions: Iterable[int], not_before: float = 0.0, **options: Any) -> None:
        real(self, kind, [] if not_before else positions, not_before, **options)

    return instead(HeldItems, "hold", hold)


@bug
def _a_throttled_item_does_not_wait() -> Bug:
    real = settlement_.settle

    def settle(ended: Any, *args: Any) -> Any:
        settled = real(ended, *args)
        return settled._replace(delay=0.0) if ended.outcome == Outcome.THROTTLED else settled

    return instead(pump_, "settle", settle)


@breaks("L11", by="two at once")
def _takeover_without_waiting() -> Bug:
    return instead(epoch_, "free_at", lambda seen, drift, adopted=False: seen.since)


@bug
def _fences_start_again_in_a_new_epoch() -> Bug:
    def next_fence(self: Epoch, above: int = 0) -> int:
        self.__dict__["_counted"] = counted = self.__dict__.get("_counted", 0) + 1
        return int(counted)

    return instead(Epoch, "next_fence", next_fence)


@bug
def _a_lost_session_forgets_its_items() -> Bug:
    real = StreamPump.session_lost

    def lost(self: StreamPump, wait: float, unsent: Any) -> None:
        if self.flights:
            self.flights.pop(next(iter(self.flights)))
        real(self, wait, unsent)

    return instead(StreamPump, "session_lost", lost)


@breaks("L15", by="the checkpoint passed")
def _a_park_is_not_written() -> Bug:
    real = Destinations._deliver

    async def deliver(self: Destinations, append: Any, ways: Any, batch: Any) -> None:
        """Marks parks as done without appending them."""
        for each in batch:
            if each.leg.way is Way.PARK:
                each.leg = each.leg._replace(step=Step.DONE)
        await real(self, append, ways, batch)

    return instead(Destinations, "_deliver", deliver)


# ---- the delay service


@bug
def _mover_passes_before_it_appends() -> Bug:
    real = Rung.move

    async def move(self: Rung) -> Any:
        with mock.patch.object(self, "_log", _Forgetful(self._log)):
            return await real(self)

    return instead(Rung, "move", move)


class _Forgetful:
    """A log that answers an append before it is written."""

    def __init__(self, log: Any) -> None:
        self._log = log

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def append(self, stream: str, partition: int, records: Any) -> int:
        asyncio.get_running_loop().call_later(0.5, lambda: asyncio.ensure_future(self._log.append(stream, 0, records)))
        return 0

    async def append_together(self, grouped: Any) -> None:
        for stream, records in grouped.items():
            await self.append(stream, 0, records)
