"""Hand-over: a submission on a server takes a waiting lease along. The two are one write then, so one trip and one sync
of the server's disk stand between a lone item and its start, instead of two (SQLite's one writer does so by itself).

A lease that waits is a taker. A submission may reserve one that is not looking just now; what it claims for it is
brought there. For one that looks a submission waits a moment: without that, the item would need a look of its own, in
which the next submission comes, and so on. Invariants: a taker that is looking is never reserved, so it gets one claim
at most; what is brought to nobody any more is given back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Sequence

from ...model.claim import Leased
from ...model.demand import Cell, Demand
from ...model.linger import HAND_OVER
from ...model.workload import Kind
from ..loop_turns import PUSHED, WAITS_AGAIN
from .gates import ShutLanes
from .queue import NewItem

#: Items of a submission that takes a lease along: more are work for a claim of their own, and their submitters wait.
MOST = 64


class Taker:
    """One lease of so many seconds that waits. `open`: it may be reserved. `looking`: done when the look is over that
    is under way, or due. `gates`: what its demand has closed."""

    __slots__ = ("coming", "demand", "gates", "looking", "open", "seconds")

    def __init__(self, demand: Demand, seconds: float) -> None:
        self.demand = demand
        self.gates = ShutLanes(demand.closed)
        self.seconds = seconds
        self.open = True
        self.coming: asyncio.Future[Leased | None] | None = None
        self.looking: asyncio.Future[None] | None = None

    def looks(self) -> None:
        """Notes that a claim looks by itself now, or before anything else."""
        self.open = False
        if self.looking is None:
            self.looking = asyncio.get_running_loop().create_future()

    def looked(self, *, found: bool) -> None:
        """Notes that it did, and waits on where it found nothing."""
        self.open = not found
        if self.looking is not None:
            self.looking.set_result(None)
            self.looking = None

    def fits(self, kinds: Collection[Kind], count: int) -> bool:
        """Whether it wants all of so many items of these kinds."""
        demand = self.demand
        return (
            self.coming is None
            and demand.total >= count
            and all(demand.cells.get(Cell(kind.function, kind.priority), 0) > 0 for kind in kinds)
            and not (demand.closed and any(map(self.gates.shuts, kinds)))
        )

    def bring(self, leased: Leased | None) -> None:
        """Ends the reservation: with a claim, or with none."""
        assert self.coming is not None
        self.coming.set_result(leased)

    async def brought(self) -> Leased | None:
        """What a submission that reserved it brings; None where none did, or it brings nothing."""
        if self.coming is None:
            return None
        leased = await asyncio.shield(self.coming)
        self.coming = None
        self.open = leased is None
        return leased


class Takers:
    """The leases of one process that wait. `nobody` gets what was brought for one that was given up."""

    def __init__(self, nobody: Callable[[asyncio.Future[Leased | None]], None]) -> None:
        self._takers: list[Taker] = []
        self._nobody = nobody
        self._brought = False  # and no submission came since

    def bring(self, taker: Taker, leased: Leased | None) -> None:
        """Ends its reservation."""
        taker.bring(leased)
        self._brought = leased is not None

    @staticmethod
    async def pushed() -> None:
        """Lets who was brought something push it, before whoever submitted it is told."""
        for _ in range(PUSHED):
            await asyncio.sleep(0)

    async def ready(self, items: Sequence[NewItem]) -> None:
        """Lets those wait again, before a submission of these is made, who were brought something by the last one, or
        who look just now."""
        kinds = _kinds(items)
        if not kinds:
            return
        brought, self._brought = self._brought, False
        await self._turns(brought)
        fitting = [taker for taker in self._takers if taker.fits(kinds, len(items))]
        looking = [taker.looking for taker in fitting if taker.looking is not None]
        if looking and not any(taker.open for taker in fitting):
            await asyncio.wait(looking, timeout=HAND_OVER.seconds, return_when=asyncio.FIRST_COMPLETED)
            await self._turns(True)

    async def _turns(self, some: bool) -> None:
        for _ in range(WAITS_AGAIN if some else 0):
            if any(taker.open and taker.coming is None for taker in self._takers):
                return
            await asyncio.sleep(0)

    def add(self, taker: Taker) -> None:
        """Adds a claim that waits."""
        self._takers.append(taker)

    def remove(self, taker: Taker) -> None:
        """Removes a claim that waits no more."""
        self._takers.remove(taker)
        if taker.coming is not None:
            taker.coming.add_done_callback(self._nobody)

    def close(self) -> None:
        """Something else is due: whoever waits is to look first."""
        for taker in self._takers:
            taker.looks()

    def reserve(self, items: Sequence[NewItem]) -> Taker | None:
        """One that wants all of these items, which are all due; None: there is none. Whoever
        reserved it brings something, or nothing."""
        kinds = _kinds(items) if self._takers else ()
        for taker in self._takers if kinds else ():
            if taker.open and taker.fits(kinds, len(items)):
                taker.open = False
                taker.coming = asyncio.get_running_loop().create_future()
                return taker
        return None


def _kinds(items: Sequence[NewItem]) -> Collection[Kind]:
    """The kinds of items that may be taken along; none: they are too many, or something else comes first."""
    if len(items) > MOST or any(item.due or item.key for item in items):
        return ()
    return {item.kind for item in items}
