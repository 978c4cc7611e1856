"""The streams that a run puts its records into, by one interface: streams of the platform's own log, of Kafka or of
Redis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ...stores.log.log import Log, Record

#: Records and bytes of one page.
PAGE, PAGE_BYTES = 1000, 1 << 20


class FedPage(NamedTuple):
    """Records as they are read: their rising positions, and their payloads."""

    positions: Sequence[int]
    payloads: Sequence[bytes]


class Fed(Protocol):
    """Streams that have one writer, by number. `places` are the ids of each one's items without their positions.

    Every method raises Unavailable when no answer came; whether a write was kept is unknown then.
    """

    places: Sequence[str]

    async def create(self) -> None:
        """Makes the streams; harmless when they are there."""

    async def append(self, stream: int, records: Sequence[Record]) -> Sequence[int]:
        """Puts the records in, in this order. Returns their positions."""

    async def ends(self) -> dict[int, int]:
        """The next position of each stream; a stream that nobody wrote to may be left out."""

    async def page(self, stream: int, position: int) -> FedPage:
        """Reads the next records from a position on; empty: there are none."""

    async def close(self) -> None:
        """Closes its connections."""


class OwnedLog(Log, Protocol):
    """A log with a connection of its own."""

    async def close(self) -> None: ...


class FedLog:
    """One stream of a log; its partitions are the streams."""

    def __init__(self, log: OwnedLog, stream: str, places: Sequence[str]) -> None:
        self.places = places
        self._log = log
        self._stream = stream

    async def create(self) -> None:
        await self._log.create(self._stream, len(self.places))

    async def append(self, stream: int, records: Sequence[Record]) -> Sequence[int]:
        first = await self._log.append(self._stream, stream, records)
        return range(first, first + len(records))

    async def ends(self) -> dict[int, int]:
        return {partition: each.end for partition, each in (await self._log.bounds(self._stream)).items()}

    async def page(self, stream: int, position: int) -> FedPage:
        found = await self._log.read(self._stream, stream, position, PAGE, PAGE_BYTES)
        return FedPage(found.positions, found.payloads)

    async def close(self) -> None:
        await self._log.close()
