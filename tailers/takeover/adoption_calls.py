"""Calls that ask other schedulers to confirm adoption: those that a row names and this tailer has no session with
(L12).

Each call takes a moment, beside the session. Items there run on under the leases that they have. The tailer that takes
the row opens a side, a second session (side_sessions.py), to hear how they end; where that fails, they are handed out
again when those leases are over.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from ...foundation.clock import Clock
from ...model.errors import TailraceError
from ...model.item_key import ItemKey
from ...model.lease import LeaseSizes, wait_for_scheduler
from ...stores.ownership.ownership import Owner
from ...wire.scheduler import SchedulerClient
from ..rules.flight_numbers import newest

#: Separator before the address in an id of a scheduler.
AT = "@"


class Elsewhere(NamedTuple):
    """Items of a row that run at a scheduler that confirmed, with the fence of each: none runs after `until`, by this
    host's monotonic clock, unless it is renewed."""

    scheduler: str
    until: float
    fences: dict[ItemKey, int]

    @property
    def address(self) -> str:
        """The address at which that scheduler listens."""
        return self.scheduler.partition(AT)[2]


class AdoptionCalls:
    """Calls to the schedulers of one row.

    Invariants: one that confirmed is not asked again about the same version of the row, since it holds that epoch to
    it; one that did not answer, or would not, is left alone for a heartbeat.
    """

    def __init__(self, source: str, partition: str, sizes: LeaseSizes, clock: Clock) -> None:
        self._source = source
        self._partition = partition
        self._sizes = sizes
        self._clock = clock
        self._confirmed: dict[str, tuple[int, Elsewhere]] = {}  # with the version of the row
        self._not_before: dict[str, float] = {}

    async def ask(self, row: Owner, but: str, seconds: float) -> list[Elsewhere]:
        """Asks the schedulers that a row lists, as it was read, except `but`, all at once and for at most so many
        seconds. Returns the answers of those that confirmed."""
        others = [name for name in row.schedulers if name != but]
        self._confirmed = {name: said for name, said in self._confirmed.items() if name in others}
        self._not_before = {name: until for name, until in self._not_before.items() if name in others}
        found = await asyncio.gather(*[self._answer(name, row, seconds) for name in others])
        return [each for each in found if each is not None]

    async def _answer(self, scheduler: str, row: Owner, seconds: float) -> Elsewhere | None:
        version, known = self._confirmed.get(scheduler, (0, None))
        if known is not None and version == row.version:
            return known
        if self._clock.monotonic() < self._not_before.get(scheduler, 0.0):
            return None
        found = await self._ask(scheduler, row, seconds)
        if found is None:
            self._not_before[scheduler] = self._clock.monotonic() + self._sizes.heartbeat
        else:
            self._confirmed[scheduler] = (row.version, found)
        return found

    async def _ask(self, scheduler: str, row: Owner, seconds: float) -> Elsewhere | None:
        _, _, address = scheduler.partition(AT)
        if not address:
            return None
        client = SchedulerClient(address)
        try:
            answer = await client.adopt(scheduler, self._source, self._partition, row.epoch, row.version, seconds)
        except TailraceError:
            return None
        finally:
            await client.close()
        if not answer.confirmed:
            return None
        until = self._clock.monotonic() + wait_for_scheduler(self._sizes, answer.lease)
        found = [((flight.part, position), flight.fence) for flight in answer.flights for position in flight.positions]
        return Elsewhere(scheduler, until, newest(found))
