"""Reports of failures in parts that run apart, for operators: schedulers and workers tell their gateway, all others the
store server that they use, which gateways ask."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import random
import socket
from collections.abc import Callable, Iterable
from dataclasses import replace

from ..foundation.duties import Duties
from ..model.backoff import CALL, Backoff
from ..model.errors import TailraceError, Unavailable
from ..model.reopening import Trouble
from ..stores.troubles import TELL_EVERY, Troubles
from ..wire.gateway import GatewayClient

#: Seconds that a store server gets to answer with the failures it was told; operators wait for it meanwhile.
ANSWER_WITHIN = 3.0

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


class TellingStartDelays:
    """Reports of start delays: a Part. It tells a gateway how many items of a scheduler started after which delay, by
    `rows`, while there are any. A gateway that is away hears it the next time."""

    def __init__(self, gateway: str, name: Callable[[], str], rows: Callable[[], list[StartDelays]]) -> None:
        self._gateway = gateway
        self._name = name
        self._rows = rows
        self.duties = Duties("telling of start delays")

    async def start(self) -> None:
        """Begins to tell."""
        self.duties.begin(self._tell_on(), "telling of start delays")

    async def drain(self, timeout: float) -> None:
        """Does nothing: there is nothing to wait for."""

    async def stop(self) -> None:
        """Ends the reports."""
        await self.duties.end()

    async def _tell_on(self) -> None:
        async with GatewayClient(self._gateway) as client:
            while True:
                await asyncio.sleep(TELL_EVERY)
                if rows := self._rows():
                    with contextlib.suppress(TailraceError):
                        await client.tell_start_delays(self._name(), rows)


class TellingTroubles:
    """Reports of troubles: a Part. It tells a store server the troubles of this process, by `found`, for as long as
    there are any, and once when all is well again. A server that cannot be told hears it when it can."""

    def __init__(self, server: Troubles, found: Callable[[], Iterable[Trouble]]) -> None:
        self._server = server
        self._found = found
        self.duties = Duties("telling of failures")

    async def start(self) -> None:
        """Begins to tell."""
        self.duties.begin(self._tell_on(), "telling of failures")

    async def drain(self, timeout: float) -> None:
        """Does nothing: there is nothing to wait for."""

    async def stop(self) -> None:
        """Ends the reports."""
        await self.duties.end()

    async def _tell_on(self) -> None:
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
