"""Depths: items that the delay service holds, by stream, and their payload bytes, about.

Records are counted by the bounds of the streams, which their consumers move. Where a record is an item that is
exact; where it may be a parcel of items, items are records times their mean. Bytes are items times the mean payload of
the stream: of what was appended here since the start, or of the first batch found in it. A queue counts its own items.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..foundation.clock import Clock
from ..model.parked import due_function
from ..stores.log.log import CountingLog, Log, Record
from ..stores.queue.counts import QueueCounts
from ..stores.queue.lifecycle import LEASED, WAITING
from .parcels import items_in
from .queue_mover import QUEUE
from .records import rung_wait

#: Seconds for which the counts are taken as they are, and only items that are parked here are added.
FRESH = 0.25
#: … and seconds where much may still be parked: items that leave meanwhile are counted as held, and items that another
#: copy of the service parks are not known yet.
SELDOM = 2.0
#: Records and bytes that are read of a stream to learn its mean payload.
SAMPLE_ITEMS = 256
SAMPLE_BYTES = 1 << 20


class SeenStream(NamedTuple):
    """A stream as it was when its means were worked out."""

    records: int = 0
    items: int = 0
    bytes: int = 0


class Depths:
    """The depth of every rung and due stream in `log`, and of `queue`."""

    def __init__(self, log: Log, clock: Clock, queue: QueueCounts | None = None) -> None:
        self._log = log
        self._counting = log if isinstance(log, CountingLog) else None
        self._queue = queue
        self._clock = clock
        self._items: dict[str, int] = {}
        self.items = 0  # in all
        self.bytes = 0  # payload bytes in all, about
        self._seen: dict[str, SeenStream] = {}
        self._looked = float("-inf")

    async def look(self, fresh: float = FRESH) -> None:
        """Counts anew, unless that was done within so many seconds."""
        if self._clock.monotonic() - self._looked < fresh:
            return
        self._looked = self._clock.monotonic()
        counts = None if self._counting is None else self._counting.counts()
        items = {}
        for stream in await self._log.streams() if counts is None else counts:
            if due_function(stream) is not None or rung_wait(stream) is not None:
                items[stream] = await self._depth(stream) if counts is None else counts[stream]
        if counts is not None:
            for stream in [stream for stream, depth in items.items() if depth and stream not in self._seen]:
                items[stream] = await self._depth(stream)
        if self._queue is not None:
            counts = await self._queue.counts()
            items[QUEUE] = sum(counts.get(state.label, 0) for state in LEASED | WAITING)
        self._items, self.items, self.bytes = items, sum(items.values()), self._bytes(items)

    async def _depth(self, stream: str) -> int:
        bounds = await self._log.bounds(stream)
        depth = sum(each.end - each.start for each in bounds.values())
        if depth and stream not in self._seen:
            partition = max(bounds, key=lambda number: bounds[number].end - bounds[number].start)
            found = await self._log.read(stream, partition, bounds[partition].start, SAMPLE_ITEMS, SAMPLE_BYTES)
            size = sum(map(len, found.payloads))
            self._seen[stream] = SeenStream(len(found.payloads), sum(map(items_in, found.headers)), size)
        seen = self._seen.get(stream, SeenStream())
        return depth if seen.items == seen.records else round(depth * seen.items / seen.records)

    def added(self, stream: str, items: Sequence[Record], records: int) -> None:
        """Notes an append of these items, in so many records."""
        seen = self._seen.get(stream, SeenStream())
        size = sum(len(item.payload) for item in items)
        self._seen[stream] = SeenStream(seen.records + records, seen.items + len(items), seen.bytes + size)
        self._items[stream] = self._items.get(stream, 0) + len(items)
        self.items += len(items)
        self.bytes += size

    def by_stream(self) -> dict[str, int]:
        """Items by stream, as last counted."""
        return dict(sorted(self._items.items()))

    def _bytes(self, items: Mapping[str, int]) -> int:
        total = 0.0
        for stream, depth in items.items():
            seen = self._seen.get(stream, SeenStream())
            total += depth * seen.bytes / seen.items if seen.items else 0.0
        return int(total)
