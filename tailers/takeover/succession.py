"""Succession to the owner of a stream: its row, the schedulers that it names, and the running items that are taken
over.

A row whose owner died is taken without waiting for its lease when every scheduler that it names confirms that
everything the owner had running is adopted (L11, L12): the one that this tailer is with, by the session; each other one
by a call (`adoption_calls.py`), and once the row is taken in a session beside the first one (`side_sessions.py`). When
one does not confirm, as one that was restarted since, the wait is what makes it safe.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from itertools import chain, groupby
from typing import Any

from ...foundation.clock import Clock
from ...model.item_key import ItemKey
from ...model.lease import LeaseSizes
from ...model.workload import Outcomes, Owned
from ...stores.checkpoints.checkpoints import Mark
from ...stores.ownership.ownership import Owner
from ..items import Items
from ..rules.flight_numbers import OWN, flights_of, newest, refs_of
from ..rules.takeover import adopted_by_all, may_ask
from ..session import Adopted, SchedulerSession
from .adoption_calls import AdoptionCalls, Elsewhere
from .epoch import LOOKS, Epoch
from .inherited import Inherited
from .side_sessions import Heir, Sides, of_newest


class Succession:
    """The succession to one row. Invariant: adopted items are of the epoch that was taken, else they are forgotten.
    `wake` is called when the row names the scheduler of the session, and when adopted items went to somebody else. It
    sets `listed` of the `epoch` and `cancel` of `inherited`, by which it hears that the row was renewed, and which
    adopted items are to be stopped."""

    def __init__(
        self,
        source: str,
        epoch: Epoch,
        session: SchedulerSession,
        inherited: Inherited,
        sizes: LeaseSizes,
        clock: Clock,
        wake: Callable[[], None],
    ) -> None:
        self._source = source
        self._epoch = epoch
        self._session = session
        self._sizes = sizes
        self._wake = wake
        self._adoption_calls = AdoptionCalls(source, epoch.row, sizes, clock)
        self._sides = Sides(source, Heir(epoch, inherited, wake), sizes, clock)
        # As the row was that was adopted.
        self._elsewhere: tuple[Owner, list[Elsewhere], dict[ItemKey, int]] | None = None
        self._losses = 0  # of sessions
        epoch.listed, inherited.cancel = self._listed, self._cancel
        self.inherited = inherited

    async def take(self) -> dict[str, Mark]:
        """Takes the source; see Epoch.take. The ends of items that run at other schedulers are heard of from then on,
        where they can be."""
        marks = await self._epoch.take(self._adopt)
        if not self._epoch.adopted:
            self.inherited.clear()
        elif self._elsewhere is not None:
            await self._sides.open(*self._elsewhere)
        self._elsewhere = None
        return marks

    def steps(self) -> list[Coroutine[Any, Any, None]]:
        """The loops to run side by side."""
        return [self._epoch.run(), self._sides.run()]

    async def _adopt(self, row: Owner) -> bool:
        """Whether everything that the owner of this row had running is this tailer's, once it has taken the row."""
        self._give_up()
        session = self._session
        if not session.connected or not may_ask(row.schedulers):
            return False
        seconds, losses = self._sizes.heartbeat / LOOKS, self._losses
        own, elsewhere = await asyncio.gather(
            self._adopt_here(row, seconds), self._adoption_calls.ask(row, session.scheduler, seconds)
        )
        confirmed = {each.scheduler for each in elsewhere}
        if own is not None:
            confirmed.add(session.scheduler)
        if not adopted_by_all(row.schedulers, confirmed) or losses != self._losses:
            return False  # a confirmation by a session that is gone by now is worth nothing
        flights = own.flights if own is not None else ()
        mine = [((each.part, position), each.fence) for each in flights for position in each.positions.values()]
        fences = newest(chain(mine, *[each.fences.items() for each in elsewhere]))
        until: dict[ItemKey, float] = {}
        for each in elsewhere:
            self._epoch.remains(each.scheduler, each.until)
            until.update({key: each.until for key, fence in each.fences.items() if fence == fences[key]})
        self.inherited.accept(of_newest(flights, fences), until)
        self._elsewhere = row, elsewhere, fences
        return True

    def _give_up(self) -> None:
        """Forgets items that were adopted before and are somebody else's, who took the row first: this tailer will not
        hear how they end, so a drain is not to wait for that."""
        self._elsewhere = None
        if self.inherited.running:
            self.inherited.clear()
            self._wake()

    async def _adopt_here(self, row: Owner, seconds: float) -> Adopted | None:
        """The answer of the session's scheduler; None when it is not listed or does not confirm."""
        session = self._session
        if session.scheduler not in row.schedulers:
            return None
        try:
            async with asyncio.timeout(seconds):
                answer = await session.adopt(self._source, self._epoch.row, row.epoch, row.version)
        except TimeoutError:
            return None  # the answer may come yet: it is asked for again
        return None if answer.refused else answer

    # Events of the session and the epoch.

    def opened(self) -> None:
        """Has the row renewed and shown, since a connection is up; a scheduler that is asked by somebody else who wants
        it is shown it too."""
        self._epoch.joined(self._session.scheduler)

    def _listed(self) -> None:
        """Shows the row, which was renewed for that and names the scheduler now."""
        self._session.show(self._source, self._epoch.row, self._epoch.number, self._epoch.version)
        self._sides.show()
        self._wake()

    def lost(self, now: float, wait: float) -> None:
        """Notes that the session is gone for good; items that it granted or adopted may run for `wait` seconds more."""
        self._losses += 1
        self._epoch.left(self._session.scheduler, now + wait)
        self.inherited.lost(now + wait)

    def came(self, outcomes: Outcomes) -> None:
        """Takes outcomes of the tailer's own session, perhaps of adopted items."""
        self.inherited.came(outcomes)

    # For the pump.

    @property
    def flights(self) -> list[int]:
        """The adopted flights that are renewed in the tailer's own session."""
        return flights_of(OWN, self.inherited.running)

    def _cancel(self, refs: Sequence[int]) -> None:
        """Asks that adopted items be stopped, wherever they run."""
        if mine := refs_of(OWN, refs):
            self._session.cancel(mine)
        self._sides.cancel(refs)

    @property
    def may_push(self) -> bool:
        """Whether the row names the scheduler of this session."""
        return self._epoch.may_push_to(self._session.scheduler)

    def owned(self, items: Items) -> Owned:
        """The ownership under which these items are handed out."""
        row, positions = (self._source, self._epoch.row, self._epoch.number), items.batch.positions
        if items.parts is None:
            return Owned(*row, items.partition.name, positions)
        counts = [(part.name, len(list(those))) for part, those in groupby(items.parts)]
        return Owned(*row, "", positions, counts)

    async def close(self) -> None:
        """Ends the sides."""
        await self._sides.close()

    async def leave(self, out: Sequence[int] | Mapping[int, object]) -> None:
        """Leaves the row empty, unless something may be running: the flights `out`, or adopted items."""
        running = out or self.inherited.running
        wait = max(self._session.wait_before_again(), self._sides.wait())
        await self._epoch.release(wait if running else 0.0)
