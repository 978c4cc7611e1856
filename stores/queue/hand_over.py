"""Hand-over on a server: a submission claims its items at once for a waiting lease. Submission and claim are one write,
so a lone item starts after one round trip and one disk sync instead of two. (SQLite's single writer does this by
itself.)

A waiting lease call is a *taker*. A submission may reserve a taker that is not looking for items at that moment, and
brings it the claim. If a taker is looking, the submission waits a moment: otherwise its item would need a look of its
own, the next submission would arrive during that look, and so on. Invariants: a taker that looks is never reserved, so
it gets at most one claim; a claim brought to a taker that has left is given back.
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

#: Most items of a submission that claims for a taker. More items are claimed separately: their submitters wait anyway.
MOST = 64


class Taker:
    """One waiting lease call of so many seconds. `open`: it may be reserved. `looking`: a future that is done when the
    look under way, or about to start, is over. `gates`: the closed cells of its demand."""

    __slots__ = ("coming", "demand", "gates", "looking", "open", "seconds")

    def __init__(self, demand: Demand, seconds: float) -> None:
        self.demand = demand
        self.gates = ShutLanes(demand.closed)
        self.seconds = seconds
        self.open = True
        self.coming: asyncio.Future[Leased | None] | None = None
        self.looking: asyncio.Future[None] | None = None

    def looks(self) -> None:
        """Notes that this lease call is looking by itself, or is about to."""
        self.open = False
        if self.looking is None:
            self.looking = asyncio.get_running_loop().create_future()

    def looked(self, *, found: bool) -> None:
        """Notes that the look is over; the call goes on waiting if it found nothing."""
        self.open = not found
        if self.looking is not None:
            self.looking.set_result(None)
            self.looking = None

    def fits(self, kinds: Collection[Kind], count: int) -> bool:
        """Whether the demand covers all of so many items of these kinds."""
        demand = self.demand
        return (
            self.coming is None
            and demand.total >= count
            and all(demand.cells.get(Cell(kind.function, kind.priority), 0) > 0 for kind in kinds)
            and not (demand.closed and any(map(self.gates.shuts, kinds)))
        )

    def bring(self, leased: Leased | None) -> None:
        """Ends the reservation, with a claim or with None."""
        assert self.coming is not None
        self.coming.set_result(leased)

    async def brought(self) -> Leased | None:
        """Returns the claim of the submission that reserved this taker; None if none reserved it, or if that one has no
        claim for it."""
        if self.coming is None:
            return None
        leased = await asyncio.shield(self.coming)
        self.coming = None
        self.open = leased is None
        return leased


class Takers:
    """The waiting lease calls of one process. `nobody` receives a claim that was brought to a call that was given
    up."""

    def __init__(self, nobody: Callable[[asyncio.Future[Leased | None]], None]) -> None:
        self._takers: list[Taker] = []
        self._nobody = nobody
        self._brought = False  # the last submission brought a claim, and no other one came since

    def bring(self, taker: Taker, leased: Leased | None) -> None:
        """Ends a taker's reservation, with a claim or with None."""
        taker.bring(leased)
        self._brought = leased is not None

    @staticmethod
    async def pushed() -> None:
        """Gives takers that were brought a claim a few turns of the event loop to push it, before the submitter gets
        its answer."""
        for _ in range(PUSHED):
            await asyncio.sleep(0)

    async def ready(self, items: Sequence[NewItem]) -> None:
        """Waits, before these items are submitted, until takers wait again that were brought the last claim or are
        looking."""
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
        """Adds a lease call that waits."""
        self._takers.append(taker)

    def remove(self, taker: Taker) -> None:
        """Removes a lease call that waits no more."""
        self._takers.remove(taker)
        if taker.coming is not None:
            taker.coming.add_done_callback(self._nobody)

    def close(self) -> None:
        """Makes every taker look for itself first, because something else became due."""
        for taker in self._takers:
            taker.looks()

    def reserve(self, items: Sequence[NewItem]) -> Taker | None:
        """Reserves a taker whose demand covers all of these items, if all are due now; None if there is none. The
        caller must end the reservation with `bring`."""
        kinds = _kinds(items) if self._takers else ()
        for taker in self._takers if kinds else ():
            if taker.open and taker.fits(kinds, len(items)):
                taker.open = False
                taker.coming = asyncio.get_running_loop().create_future()
                return taker
        return None


def _kinds(items: Sequence[NewItem]) -> Collection[Kind]:
    """Kinds of items that may be claimed with their submission; empty if there are too many, or if one has a due time
    or a key."""
    if len(items) > MOST or any(item.due or item.key for item in items):
        return ()
    return {item.kind for item in items}
