"""The platform around streams that rest on servers of its own: three tailers share them, and reach the servers through
wires that can be broken. The servers are real ones, killed and started again with their data on disk.
"""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from ...sdk.async_client import AsyncClient
from .fed_streams import Fed
from .feed import FaultFeed
from .journal import Line
from .known_too_soon import JournaledProgress, KnownProgress, known_too_soon
from .looks import Connect, Looks
from .server_part import OwnServer, ServerPart
from .streams_plan import TAILERS
from .verdict import Expected, Finding
from .world import FaultWorld, until

#: Seconds in which the progress that is visible outside must become complete, in the end.
KNOWN_WITHIN = 30.0
#: Nothing is passed while it runs or waits to be tried: the minute of failure of all functions is as long as the usual
#: `detach_after`, and an item that waits through it would be passed, with a row, before it began.
DETACH_AFTER = "10m"


class StreamsWorld(FaultWorld, ABC):
    """A world around streams. `looks_called`: the names in the figures of the number of looks at progress, and of those
    with news."""

    tailer_parts = TAILERS
    build_up = 1.5
    looks_called = ("looks", "looks_with_news")

    _looks: Looks[JournaledProgress] | None = None

    @property
    @abstractmethod
    def nodes(self) -> Mapping[str, OwnServer]:
        """The servers, by the names of their parts."""

    @abstractmethod
    async def serve(self) -> dict[str, str]:
        """Starts the servers and their wires. Returns the tailers' files, by name."""

    @abstractmethod
    def fed(self) -> Fed:
        """The streams to put records into."""

    @abstractmethod
    def asked(self) -> Connect[JournaledProgress]:
        """The connection on which progress of the streams is asked for."""

    async def start(self) -> None:
        self._tailers = await self.serve()
        feed = self.feed()
        try:
            await feed.start()
        finally:
            await feed.close()
        await super().start()
        self._looks = Looks(self.asked())
        await self._looks.start()
        for name, node in self.nodes.items():
            server = self.parts[name] = ServerPart(name, node)
            await server.start()

    async def stop(self) -> None:
        if self._looks is not None:
            await self._looks.stop()
        try:
            await super().stop()
        finally:
            # As parts first: a part starts its server again if that is only killed.
            servers = [part for part in self.parts.values() if isinstance(part, ServerPart)]
            await asyncio.gather(*(part.end(0.0) for part in servers))
            await asyncio.gather(*(asyncio.to_thread(node.kill) for node in self.nodes.values()))

    def feed(self) -> FaultFeed:
        """The feed of the streams. Nothing is submitted, so its client is of no use."""
        gateway = self.wires.get("client:gateway")
        return FaultFeed(AsyncClient("127.0.0.1:1" if gateway is None else gateway.address), self.fed())

    async def settled(self, feed: FaultFeed) -> list[Finding]:
        """Waits until it is known outside that everything is done. Returns findings about streams that stay behind."""
        looks, ends = self._looks, await feed.ends()
        assert looks is not None

        def behind() -> list[str]:
            return [
                place for place, end in ends.items() if place not in looks.known or looks.known[place].position != end
            ]

        if await until(lambda: not behind(), KNOWN_WITHIN):
            return []
        return [Finding("behind", "", 0.0, f"{each}: known is {looks.known.get(each)}") for each in behind()]

    def judged(self, lines: Sequence[Line], expected: Mapping[str, Expected]) -> tuple[list[Finding], dict[str, Any]]:
        assert self._looks is not None
        counts = (self._looks.answers, len(self._looks.seen))
        seen = [KnownProgress(*each) for each in self._looks.seen]
        return known_too_soon(expected, lines, seen), dict(zip(self.looks_called, counts, strict=True))
