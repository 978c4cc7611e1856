"""The log's protocol: append-only partitions with dense positions, read in order, trimmed from the head."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, runtime_checkable

from ...model.workload import Headers


class Record(NamedTuple):
    """A record to append."""

    payload: bytes
    key: str = ""
    headers: Headers = ()


@dataclass(slots=True)
class Records:
    """Records as they are read: parallel lists. `positions` rise but may have gaps (a compacted log).

    `now` is the time of the clock that dates appends, when these were read; 0: unknown. That clock may be another
    host's: the age of a record is measured by it, not by the reader's own.
    """

    positions: list[int]
    times: list[float]  # wall clock of the append
    keys: list[str]
    headers: list[Headers]
    payloads: list[bytes]
    now: float = 0.0


class Bounds(NamedTuple):
    """The bounds of a partition. `start`: lowest position kept; `end`: the position the next record will get."""

    start: int
    end: int


class Log(Protocol):
    """Streams of records. A stream is made by its first append or by `create`.

    `batches`: the records of one append are stored as one entry, so that small ones cost next to nothing. Else each
    record costs an entry of its own, and a caller with many that travel together should pack them into one.
    """

    batches: bool

    async def create(self, stream: str, partitions: int) -> None:
        """Makes a stream, or raises its number of partitions; harmless when it has as many."""

    async def append(self, stream: str, partition: int, records: Sequence[Record]) -> int:
        """Stores the records and returns the position of the first one. Durable when it returns."""

    async def read(self, stream: str, partition: int, position: int, limit: int, max_bytes: int) -> Records:
        """Up to `limit` records from `position` on, at least one if there is one, else empty. A position below the
        start reads from the start."""

    async def bounds(self, stream: str) -> dict[int, Bounds]:
        """The bounds of each partition; empty for an unknown stream."""

    async def wait(self, stream: str, ends: Mapping[int, int], timeout: float) -> None:
        """Returns when some partition's end is past the one given in `ends`, or after `timeout` seconds."""

    async def trim(self, stream: str, partition: int, before: int) -> None:
        """Removes the records below `before`."""

    async def streams(self) -> list[str]:
        """The names of all streams, sorted."""

    async def life(self, stream: str) -> str:
        """The sign of a stream: one that is deleted and made again, or is in another log, has another sign. Empty for
        an unknown stream, and where the log does not tell."""


async def append_to_each(log: Log, grouped: Mapping[str, Sequence[Record]]) -> list[BaseException | None]:
    """Appends to partition 0 of each of these streams, all in one write where the log can. Returns the error of each,
    in their order, or None; a log that writes all at once takes all or none."""
    if isinstance(log, MultiStreamLog):
        try:
            await log.append_together(grouped)
        except Exception as error:
            return [error] * len(grouped)
        return [None] * len(grouped)
    appends = [log.append(stream, 0, records) for stream, records in grouped.items()]
    answers = await asyncio.gather(*appends, return_exceptions=True)
    return [answer if isinstance(answer, BaseException) else None for answer in answers]


async def trim_each(log: Log, before: Mapping[str, int]) -> None:
    """Removes the records below these positions, in partition 0 of each of these streams, in one write where the log
    can."""
    if isinstance(log, MultiStreamLog):
        await log.trim_together(before)
    else:
        await asyncio.gather(*(log.trim(stream, 0, position) for stream, position in before.items()))


@runtime_checkable
class MultiStreamLog(Protocol):
    """A log that can write to many streams at once."""

    async def append_together(self, grouped: Mapping[str, Sequence[Record]]) -> None:
        """Stores the records in partition 0 of each of these streams: all of them or none. Durable when it returns."""

    async def trim_together(self, before: Mapping[str, int]) -> None:
        """Removes the records below these positions, in partition 0 of each of these streams."""


@runtime_checkable
class MemoryReadableLog(Protocol):
    """A log that has the last appended records in memory: a reader of many streams need not await each of them."""

    def at_hand(self, stream: str, partition: int, position: int, limit: int, max_bytes: int) -> Records | None:
        """Reads as `Log.read` does, at once, from memory; None: there are records that are not in memory."""


@runtime_checkable
class CountingLog(Protocol):
    """A log that knows its bounds: hundreds of streams are counted without a call for each of them."""

    def counts(self) -> Mapping[str, int]:
        """Number of records of each stream, in all its partitions."""


@runtime_checkable
class NotifyingLog(Protocol):
    """A log that calls back when records come: a reader of many streams needs no waiting task for each of them."""

    def tell(self, stream: str, ends: Mapping[int, int], call: Callable[[], None]) -> Callable[[], None]:
        """Has `call` called once in the event loop, after this returns, when there may be a record at or past the given
        ends. The function that it returns takes that back, and is harmless afterwards."""
