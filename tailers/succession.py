"""How one owner of a stream follows another: the row, the schedulers that it names, and what is taken over running.

A row whose owner died is taken without waiting for its lease when the one scheduler that it names is the one that this
tailer is with, and confirms that what the owner had running is adopted (LEASES L11, L12). With several, or one that was
restarted since, the wait is what makes it safe: this tailer has a session with one scheduler only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from ..sdk.model.lease import LeaseSizes
from ..sdk.model.workload import Outcomes, Owned
from ..sdk.source import StreamBatch
from ..stores.checkpoints.checkpoints import Mark
from ..stores.ownership.ownership import Owner
from .epoch import LOOKS, Epoch
from .inherited import Inherited
from .session import SchedulerSession


class Succession:
    """Invariant: what was adopted is of the epoch that was taken, else it is forgotten. `wake` is called when the row
    names the scheduler of the session."""

    def __init__(
        self,
        source: str,
        epoch: Epoch,
        session: SchedulerSession,
        inherited: Inherited,
        sizes: LeaseSizes,
        wake: Callable[[], None],
    ) -> None:
        self._source = source
        self._epoch = epoch
        self._session = session
        self._sizes = sizes
        self._wake = wake
        epoch.listed = self._listed
        self.inherited = inherited

    async def take(self) -> dict[str, Mark]:
        """Takes the source; see Epoch.take."""
        marks = await self._epoch.take(self._adopt)
        if not self._epoch.adopted:
            self.inherited.clear()
        return marks

    async def _adopt(self, row: Owner) -> bool:
        """Whether everything that the owner of this row had running is this tailer's, once it has taken the row."""
        session = self._session
        if not session.connected or row.schedulers != (session.scheduler,):
            return False
        try:
            async with asyncio.timeout(self._sizes.heartbeat / LOOKS):
                answer = await session.adopt(self._source, self._epoch.row, row.epoch, row.version)
        except TimeoutError:
            return False  # the answer may come yet: it is asked for again
        if answer.refused:
            return False
        self.inherited.accept(answer.flights)
        return True

    # What the session and the epoch say.

    def opened(self) -> None:
        """A connection is up: the row is renewed and shown, also to one that asks because somebody else wants it."""
        self._epoch.joined(self._session.scheduler)

    def _listed(self) -> None:
        """The row was renewed for that: it names the scheduler now."""
        self._session.show(self._source, self._epoch.row, self._epoch.number, self._epoch.version)
        self._wake()

    def lost(self, now: float, wait: float) -> None:
        """The session is gone for good; what it granted or adopted may run for `wait` seconds more."""
        self._epoch.left(self._session.scheduler, now + wait)
        self.inherited.lost(now + wait)

    def came(self, outcomes: Outcomes) -> None:
        """Outcomes, perhaps of what was adopted."""
        self.inherited.came(outcomes)

    # What the pump asks.

    @property
    def may_push(self) -> bool:
        """Whether the row names the scheduler of this session."""
        return self._epoch.may_push_to(self._session.scheduler)

    def owned(self, batch: StreamBatch) -> Owned:
        """Under what this batch is handed out."""
        return Owned(self._source, self._epoch.row, self._epoch.number, batch.partition, batch.positions)

    async def leave(self, out: Sequence[int] | Mapping[int, object]) -> None:
        """Leaves the row empty, unless something may be running: the flights `out`, or what was adopted."""
        running = out or self.inherited.running
        await self._epoch.release(self._session.wait_before_again() if running else 0.0)
