"""The desk for overviews: the state of the platform, with backlogs, alerts, and reports of parts."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from ..foundation.duties import Duties
from ..foundation.lifecycle import cancel
from ..model.dead_letter import LetterRoom
from ..model.errors import InvalidRequest, TailraceError, Unavailable
from ..model.gate import Gate
from ..model.overview import Overview
from ..model.reopening import Trouble
from ..stores.dead_letters.dead_letters import LetterKeeping
from ..stores.queue.counts import Ageing, QueueCounts
from .alerting import Alerting
from .failures import FailureDesk
from .members import OtherMembers
from .spooling import Spooler

_LOG = logging.getLogger("tailrace.gateway")

#: Seconds that a store apart gets to count, so that a gateway with a spool still answers while the store is away.
LONGEST_COUNT = 3.0


#: Reports the tailers, delay streams and replays beside a gateway.
Parts = Callable[[], Awaitable[Overview]]


async def no_parts() -> Overview:
    """An empty report, for a gateway without tailers and delay streams."""
    return Overview()


#: Reports the parts beside a gateway that failed.
Troubles = Callable[[], Awaitable[Sequence[Trouble]]]


async def no_troubles() -> Sequence[Trouble]:
    """An empty report, for a gateway without parts beside it."""
    return ()


class OverviewDesk:
    """Answers calls about the platform's state (an OverviewPort). `parts` reports tailers and delay streams; items in
    stores are counted here."""

    def __init__(
        self,
        alerting: Alerting,
        queue: QueueCounts,
        dead_letters: LetterKeeping,
        gates: Callable[[], Sequence[Gate]],
        parts: Parts,
        failures: FailureDesk,
        duties: Duties,
        spooler: Spooler | None = None,
        troubles: Troubles = no_troubles,
        others: OtherMembers | None = None,
    ) -> None:
        self._others = others
        self._duties = duties
        self._alerting = alerting
        self._queue = queue
        self._dead_letters = dead_letters
        self._gates = gates
        self._parts = parts
        self._failures = failures
        self._spooler = spooler
        self._troubles = troubles
        self._full_rooms: Sequence[LetterRoom] = ()  # as of the last look
        self._looking: asyncio.Task[None] | None = None

    def start(self, every: float) -> None:
        """Begins to look every so many seconds, also when nobody asks, so that growth and alerts are known; 0:
        never."""
        if every:
            self._looking = self._duties.begin(self._look_on(every), "gateway: looking for alerts")

    async def stop(self) -> None:
        """Ends the regular looks."""
        looking, self._looking = self._looking, None
        if looking is not None:
            await cancel(looking)

    async def _look_on(self, every: float) -> None:
        while True:
            await asyncio.sleep(every)
            try:
                await self.look()
            except TailraceError:
                pass  # raised at a caller of `overview`
            except Exception:
                _LOG.exception("looking for alerts failed; trying again")

    async def tell_failure(self, part: str, why: str, times: int) -> None:
        """Takes the report that a part in another process was opened again after a failure."""
        self._failures.tell(part, why, times)

    async def tell_start_delays(self, scheduler: str, rows: list[tuple[str, str, list[int]]]) -> None:
        """Takes a scheduler's report of start delays."""
        self._alerting.objectives.tell(scheduler, rows)

    async def overview(self) -> Overview:
        """The overview of now, with the tailers of other processes. With a spool, or after a failure of a part, it is
        answered also while the store is away, without the store's counts."""
        whole = replace(await self.look(), held_logs={})  # the alerts have them
        if self._others is not None:
            with contextlib.suppress(Unavailable):
                whole.tailers = [*whole.tailers, *await self._others.tailers()]
        return whole

    async def look(self) -> Overview:
        """The overview of now, with alerts and forecasts."""
        troubles = [*await self._troubles(), *self._failures.troubles()]
        if self._spooler is None and not troubles:
            whole = await self._parts()
            ages = await self._count(whole)
            return self._alerting.complete(whole, ages, self._gates(), full_rooms=self._full_rooms)
        whole, away = Overview(), ""
        if self._spooler is not None:
            whole.spool = await self._spooler.overview()
        counted: Sequence[Ageing] | None = None
        try:
            async with asyncio.timeout(LONGEST_COUNT):
                counted = await self._count(whole)
        except Unavailable as error:
            away = str(error)
        except TimeoutError:
            away = f"the store did not answer within {LONGEST_COUNT:g} seconds"
        with contextlib.suppress(Unavailable):
            parts = await self._parts()
            whole.tailers, whole.delay, whole.replays = parts.tailers, parts.delay, parts.replays
            whole.held_logs = parts.held_logs
        return self._alerting.complete(whole, counted, self._gates(), away, troubles, self._full_rooms)

    async def _count(self, whole: Overview) -> Sequence[Ageing]:
        whole.queue = await self._queue.counts()
        whole.dead_letters = await self._dead_letters.count()
        with contextlib.suppress(InvalidRequest):  # a store server of the version before knows no rooms
            self._full_rooms = await self._dead_letters.rooms()
        return await self._queue.ageing()
