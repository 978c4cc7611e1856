"""When a submission on a server takes a waiting lease along: the two are one write then, so one trip and one sync of
the server's disk stand between a lone item and its start, instead of two (SQLite's one writer does so by itself).

A lease that waits is a taker. A submission may reserve one that is not looking just now; what it claims for it is
brought there. Invariants: a taker that is looking is never reserved, so it gets one claim at most; what is brought to
nobody any more is given back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from ...sdk.model.claim import Leased
from ...sdk.model.demand import Demand
from .kinds import Kinds
from .queue import NewItem

#: Turns of the event loop in which who was brought something pushes it and waits again.
TURNS = 6
#: Items of a submission that takes a lease along: more are work for a claim of their own, and their submitters wait.
MOST = 64


class Taker:
    """One lease of so many seconds that waits. `open`: it may be reserved."""

    __slots__ = ("coming", "demand", "open", "seconds")

    def __init__(self, demand: Demand, seconds: float) -> None:
        self.demand = demand
        self.seconds = seconds
        self.open = True
        self.coming: asyncio.Future[Leased | None] | None = None

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

    async def back(self) -> None:
        """Lets whoever was brought something by the last submission wait again, before the next one is made."""
        brought, self._brought = self._brought, False
        for _ in range(TURNS if brought else 0):
            if any(taker.open and taker.coming is None for taker in self._takers):
                return
            await asyncio.sleep(0)

    def add(self, taker: Taker) -> None:
        """It waits."""
        self._takers.append(taker)

    def remove(self, taker: Taker) -> None:
        """It waits no more."""
        self._takers.remove(taker)
        if taker.coming is not None:
            taker.coming.add_done_callback(self._nobody)

    def close(self) -> None:
        """Something else is due: whoever waits is to look first."""
        for taker in self._takers:
            taker.open = False

    def reserve(self, kinds: Kinds, items: Sequence[NewItem]) -> Taker | None:
        """One that wants all of these items, which have numbers by now and are all due; None: there is none. Whoever
        reserved it brings something, or nothing."""
        if not self._takers or len(items) > MOST or any(item.due or item.key for item in items):
            return None
        cells = {kinds.cells[kinds.lane_of[kinds.numbers[item.kind]]] for item in items}
        for taker in self._takers:
            demand = taker.demand
            if (
                taker.open
                and taker.coming is None
                and demand.total >= len(items)
                and not demand.closed
                and all(demand.cells.get(cell, 0) > 0 for cell in cells)
            ):
                taker.open = False
                taker.coming = asyncio.get_running_loop().create_future()
                return taker
        return None
