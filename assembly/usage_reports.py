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

#: Seconds from one round of reports to the next: at least, and for each thousand rows of it. What the last may take.
REPORT_EVERY, FOR_A_THOUSAND, LAST_WITHIN = 5.0, 2.0, 2.0

_LOG = logging.getLogger("tailrace.parts")


class Reporting(NamedTuple):
    """Calls of a scheduler: to look, to tell its next report, the same until that is accepted, and to hear that it
    was."""

    look: Callable[[], None]
    report: Callable[[], UsageReport | None]
    accepted: Callable[[int], None]


class TellingUsage:
    """A Part. `of` is asked each time: the scheduler may have been made anew. A gateway that is away hears the same
    report later; what was in one that nobody answered is not told in another one, so nothing is counted twice."""

    def __init__(self, gateway: str, of: Callable[[], Reporting], every: float = REPORT_EVERY) -> None:
        self._gateway = gateway
        self._of = of
        self._every = every
        self._refused = self._telling = False
        self.duties = Duties("telling of usage")

    async def start(self) -> None:
        """Tells from now on."""
        self._telling = True
        self.duties.begin(self._tell_on(), "telling of usage")

    async def drain(self, timeout: float) -> None:
        """Nothing to wait for."""

    async def stop(self) -> None:
        """Tells what is left, if the gateway takes it at once."""
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
                        _LOG.warning("the gateway does not keep what is used here: %s", error)
                    self._refused = True

    async def _tell(self, client: GatewayClient) -> int:
        """All that was used until now; how many rows that is."""
        reporting, rows = self._of(), 0
        reporting.look()
        while (report := reporting.report()) is not None:
            await client.tell_usage(report)
            reporting.accepted(report.number)
            rows += len(report.rows)
        return rows
