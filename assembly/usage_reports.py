"""Reports of usage, from a scheduler to its gateway: every few seconds, and once more when it stops."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import NamedTuple

from ..foundation.duties import Duties
from ..model.errors import TailraceError, Unavailable
from ..model.usage import UsageReport
from ..wire.gateway import GatewayClient

#: Seconds from one round of reports to the next, at least; on top for each thousand rows; and for the last round.
REPORT_EVERY, FOR_A_THOUSAND, LAST_WITHIN = 5.0, 2.0, 2.0

_LOG = logging.getLogger("tailrace.parts")


class Reporting(NamedTuple):
    """Calls of a scheduler: `look` measures usage, `report` is the next report (the same until it is accepted),
    `accepted` takes the number of an accepted one."""

    look: Callable[[], None]
    report: Callable[[], UsageReport | None]
    accepted: Callable[[int], None]


class TellingUsage:
    """Reports of usage: a Part. `of` is asked each time, since the scheduler may have been made anew. A gateway that is
    away gets the same report later; rows of a report that nobody answered stand in no other one, so nothing is counted
    twice."""

    def __init__(self, gateway: str, of: Callable[[], Reporting], every: float = REPORT_EVERY) -> None:
        self._gateway = gateway
        self._of = of
        self._every = every
        self._refused = self._telling = False
        self.duties = Duties("telling of usage")

    async def start(self) -> None:
        """Begins to tell."""
        self._telling = True
        self.duties.begin(self._tell_on(), "telling of usage")

    async def drain(self, timeout: float) -> None:
        """Does nothing: there is nothing to wait for."""

    async def stop(self) -> None:
        """Tells the rest, if the gateway takes it at once."""
        telling, self._telling = self._telling, False
        await self.duties.end()
        if telling:
            with contextlib.suppress(TailraceError, TimeoutError):
                async with asyncio.timeout(LAST_WITHIN), GatewayClient(self._gateway) as client:
                    await self._tell(client)

    async def _tell_on(self) -> None:
        rows = 0
        async with GatewayClient(self._gateway) as client:
            while True:
                await asyncio.sleep(max(self._every, FOR_A_THOUSAND * rows / 1000))
                try:
                    rows = await self._tell(client)
                except Unavailable:
                    continue
                except TailraceError as error:
                    if not self._refused:
                        _LOG.warning("the gateway does not keep the usage of this scheduler: %s", error)
                    self._refused = True

    async def _tell(self, client: GatewayClient) -> int:
        """Tells all usage until now. Returns the number of rows."""
        reporting, rows = self._of(), 0
        reporting.look()
        while (report := reporting.report()) is not None:
            await client.tell_usage(report)
            reporting.accepted(report.number)
            rows += len(report.rows)
        return rows
