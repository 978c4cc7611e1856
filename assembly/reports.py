"""Reports of parts that run apart, for operators. Of failures schedulers and workers tell their gateway, all others the
store server that they use, which gateways ask; of start delays and usage schedulers tell their gateway."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import socket
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import NamedTuple

from ..foundation.lifecycle import OneDuty
from ..model.backoff import CALL, Backoff
from ..model.errors import TailraceError, Unavailable
from ..model.reopening import Trouble
from ..model.usage import UsageReport
from ..stores.troubles import TELL_EVERY, Troubles
from ..wire.gateway import GatewayClient

#: Seconds that a store server gets to answer with the failures it was told; operators wait for it meanwhile.
ANSWER_WITHIN = 3.0
#: Seconds from one report of usage to the next, at least; on top for each thousand rows; and for the last one.
REPORT_EVERY, FOR_A_THOUSAND, LAST_WITHIN = 5.0, 2.0, 2.0

#: Function, priority, and the count in each bucket.
StartDelays = tuple[str, str, list[int]]

_LOG = logging.getLogger("tailrace.parts")


async def tell_failure(gateway: str, part: str, why: str, times: int) -> None:
    """Tells a gateway of a failed part: tries until it takes it, or refuses."""
    backoff = Backoff(*CALL, random.random)
    async with GatewayClient(gateway) as client:
        while True:
            try:
                await client.tell_failure(part, why, times)
            except Unavailable:
                await asyncio.sleep(backoff.pause())
            except Exception as error:  # it is no reason to close the part once more
                _LOG.warning("the gateway was not told that %s failed: %s", part, error)
                return
            else:
                return


class TellingStartDelays(OneDuty):
    """Reports of start delays: a Part. It tells a gateway how many items of a scheduler started after which delay, by
    `rows`, while there are any. A gateway that is away hears it the next time."""

    def __init__(self, gateway: str, name: Callable[[], str], rows: Callable[[], list[StartDelays]]) -> None:
        super().__init__("telling of start delays")
        self._gateway = gateway
        self._name = name
        self._rows = rows

    async def work(self) -> None:
        async with GatewayClient(self._gateway) as client:
            while True:
                await asyncio.sleep(TELL_EVERY)
                if rows := self._rows():
                    with contextlib.suppress(TailraceError):
                        await client.tell_start_delays(self._name(), rows)


class TellingTroubles(OneDuty):
    """Reports of troubles: a Part. It tells a store server the troubles of this process, by `found`, for as long as
    there are any, and once when all is well again. A server that cannot be told hears it when it can."""

    def __init__(self, server: Troubles, found: Callable[[], Iterable[Trouble]]) -> None:
        super().__init__("telling of failures")
        self._server = server
        self._found = found

    async def work(self) -> None:
        owed = refused = False
        while True:
            await asyncio.sleep(TELL_EVERY)
            ailing = named(self._found())
            if not ailing and not owed:
                continue
            owed = True
            try:
                await self._server.tell(_here(), ailing)
            except Unavailable:
                continue
            except TailraceError as error:
                if not refused:
                    _LOG.warning("failures of this process are not reported to the store server: %s", error)
                refused = True
            owed = bool(ailing)


class Reporting(NamedTuple):
    """Calls of a scheduler: `look` measures usage, `report` is the next report (the same until it is accepted),
    `accepted` takes the number of an accepted one."""

    look: Callable[[], None]
    report: Callable[[], UsageReport | None]
    accepted: Callable[[int], None]


class TellingUsage(OneDuty):
    """Reports of usage: a Part. `of` is asked each time, since the scheduler may have been made anew. A gateway that is
    away gets the same report later; rows of a report that nobody answered stand in no other one, so nothing is counted
    twice."""

    def __init__(self, gateway: str, of: Callable[[], Reporting], every: float = REPORT_EVERY) -> None:
        super().__init__("telling of usage")
        self._gateway = gateway
        self._of = of
        self._every = every
        self._refused = self._telling = False

    async def start(self) -> None:
        self._telling = True
        await super().start()

    async def stop(self) -> None:
        """Tells the rest, if the gateway takes it at once."""
        telling, self._telling = self._telling, False
        await super().stop()
        if telling:
            with contextlib.suppress(TailraceError, TimeoutError):
                async with asyncio.timeout(LAST_WITHIN), GatewayClient(self._gateway) as client:
                    await self._tell(client)

    async def work(self) -> None:
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


async def told(server: Troubles) -> list[Trouble]:
    """Troubles that a store server knows; none where it is away, hangs or has no such call."""
    try:
        async with asyncio.timeout(ANSWER_WITHIN):
            return await server.all()
    except (TailraceError, TimeoutError):
        return []


def named(troubles: Iterable[Trouble]) -> list[Trouble]:
    """Troubles of this process with its host and process id, for operators who see those of others beside them."""
    return [replace(each, part=f"{each.part} {_here()}") for each in troubles]


def _here() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"
