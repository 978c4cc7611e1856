"""A side: a tailer's second session, with a scheduler where something runs that it took over (L12).

It pushes nothing and has no use for credit. It asks that scheduler once more for the items that are set aside there, in
the session this time, and shows the row that the tailer has taken since; from then on it renews the items that run
there and hears how they end, until none are left. Where it is refused or lost, they are handed out again when the
leases that they have are over.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import count
from typing import NamedTuple

from ...foundation.clock import Clock
from ...foundation.together import together
from ...model.item_key import ItemKey
from ...model.lease import LeaseSizes
from ...model.workload import Outcomes
from ...stores.ownership.ownership import Owner
from ..rules.flight_numbers import flight_here, flights_of, ref_here, refs_of
from ..session import Inheritance, Renewal, SchedulerSession
from .adoption_calls import Elsewhere
from .epoch import Epoch
from .inherited import Inherited

#: Heartbeats without anything that runs there, after which a side ends: its scheduler heard of that in the first one.
IDLE = 2


class Heir(NamedTuple):
    """The tailer that took over, as all its sides know it: its row, the items that it took over, and the call to make
    when one of them ends."""

    epoch: Epoch
    inherited: Inherited
    wake: Callable[[], None]


class Side:
    """A side, by its number. Invariants: it renews and hears of its own flights alone; the row names its scheduler
    while it lives; `over` stays, and nothing is renewed from then on."""

    def __init__(self, number: int, at: Elsewhere, source: str, heir: Heir, sizes: LeaseSizes, clock: Clock) -> None:
        self.number = number
        self.scheduler = at.scheduler
        self.over = False
        self._joined = False
        self._source = source
        self._epoch, self._inherited, self._wake = heir
        self._heartbeat = sizes.heartbeat
        self._clock = clock
        self._opened = asyncio.Event()
        self._session = SchedulerSession(at.address, source, self, sizes, clock)

    async def join(self, row: Owner) -> Sequence[Inheritance]:
        """Adopts the items that the former owner, of this row, has there; by the numbers that they have here. Empty
        when that was refused, or did not come about within a heartbeat."""
        self._session.drain()
        self._session.start()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._heartbeat):
                await self._opened.wait()
                if self._session.scheduler == self.scheduler:
                    answer = await self._session.adopt(self._source, self._epoch.row, row.epoch, row.version)
                    self._joined = bool(answer.flights) and not self.over
                    return [
                        each._replace(flight=flight_here(self.number, each.flight))
                        for each in (answer.flights if self._joined else ())
                    ]
        return ()

    def begin(self) -> None:
        """Begins, since the adopted items are this tailer's: the row names the scheduler, and is shown."""
        self._epoch.joined(self.scheduler, self.number)
        self.show()

    def show(self) -> None:
        """Shows the row as it was written last."""
        if not self.over:
            self._session.show(self._source, self._epoch.row, self._epoch.number, self._epoch.version)

    def cancel(self, refs: Iterable[int]) -> None:
        """Asks that items be stopped: those of them that are this side's."""
        if mine := refs_of(self.number, refs):
            self._session.cancel(mine)

    async def run(self) -> None:
        """Renews and hears until the side is over, or nothing has been left there for a while."""
        idle = 0
        while idle < IDLE and not self.over:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._heartbeat):
                    await self._session.wait()
            idle = 0 if self._flights() else idle + 1
            if not self._session.connected and not self.wait():
                self._lose(0.0)  # it may never come back
        if not self.over:
            self.over = True
            self._epoch.left(self.scheduler, self._clock.monotonic(), self.number)
        await self.close()

    async def close(self) -> None:
        """Ends the session. Items that run there are adopted by the next owner, or end with their leases."""
        await self._session.close()

    def wait(self) -> float:
        """Seconds until nothing granted there can be running."""
        return self._session.wait_before_again()

    def _flights(self) -> list[int]:
        return [] if self.over else flights_of(self.number, self._inherited.running)

    def _lose(self, wait: float) -> None:
        if self._joined and not self.over:
            until = self._clock.monotonic() + wait
            self._inherited.lost(until, self.number)
            self._epoch.left(self.scheduler, until, self.number)
            self._wake()
        self.over = True

    # For the session.

    def held_for(self, flight: int) -> float:
        """Seconds that a flight is held: as long as the source is."""
        return self._epoch.held_for()

    def renewal(self) -> Renewal:
        """The side's flights that have items without an outcome."""
        return Renewal(self._epoch.held_for(), self._flights())

    def outcomes_came(self, outcomes: Outcomes) -> None:
        """Takes outcomes of the side's own items."""
        here = [ref_here(self.number, each) for each in outcomes.succeeded]
        ended = {ref_here(self.number, each): how for each, how in outcomes.ended.items()}
        if not self.over:
            self._inherited.came(Outcomes(here, ended))
            self._wake()

    def session_opened(self) -> None:
        """Hears that a connection is up, or that the row is to be shown anew."""
        self._opened.set()
        if self._joined and not self.over:
            self._epoch.joined(self.scheduler, self.number)

    def credit_changed(self) -> None:
        """Does nothing: a side has no use for credit."""

    def session_lost(self, wait: float, unsent: Sequence[int]) -> None:
        """Hears that the session is lost: items there may run for so many seconds more."""
        self._lose(wait)


class Sides:
    """All sides of one tailer. Its own session is number 0."""

    def __init__(self, source: str, heir: Heir, sizes: LeaseSizes, clock: Clock) -> None:
        self._source = source
        self._heir = heir
        self._sizes = sizes
        self._clock = clock
        self._numbers = count(1)
        self._sides: list[Side] = []

    async def open(self, row: Owner, found: Iterable[Elsewhere], fences: Mapping[ItemKey, int]) -> None:
        """Opens a side to each scheduler where something runs that was taken over with this row, all at once and within
        a heartbeat, before anything is read. `fences`: the newest hand-out of each position; older ones are over."""
        sides = [
            Side(next(self._numbers), each, self._source, self._heir, self._sizes, self._clock)
            for each in found
            if each.fences
        ]
        self._sides += sides
        adopted = await asyncio.gather(*[side.join(row) for side in sides])
        for side, flights in zip(sides, adopted, strict=True):
            if not flights or side.over:
                self._sides.remove(side)
                await side.close()
                continue
            self._heir.inherited.add(of_newest(flights, fences))
            side.begin()

    def show(self) -> None:
        """Shows the row, which was written anew."""
        for side in self._sides:
            side.show()

    def cancel(self, refs: Sequence[int]) -> None:
        """Asks that items be stopped."""
        for side in self._sides:
            side.cancel(refs)

    def wait(self) -> float:
        """Seconds until nothing that their schedulers granted can be running."""
        return max((side.wait() for side in self._sides), default=0.0)

    async def run(self) -> None:
        """Runs all sides until they have ended."""
        await together(*(side.run() for side in self._sides))

    async def close(self) -> None:
        """Ends all sides."""
        await asyncio.gather(*[side.close() for side in self._sides])


def of_newest(flights: Iterable[Inheritance], fences: Mapping[ItemKey, int]) -> list[Inheritance]:
    """The parts of these flights that are the newest hand-out of their position."""
    kept = []
    for each in flights:
        positions = {
            index: position
            for index, position in each.positions.items()
            if each.fence >= fences.get((each.part, position), 0)
        }
        if positions:
            kept.append(each._replace(positions=positions))
    return kept
