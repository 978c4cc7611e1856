"""How much the delay service holds: items by stream exactly, payload bytes about.

Items are counted by the bounds of the streams, which whoever consumes them moves. Bytes are items times the mean
payload of the stream: of what was appended here since the start, or of the first batch found in it.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..sdk.clock import Clock
from ..sdk.model.parked import due_function
from ..stores.log.log import Log, Record
from .records import rung_wait

#: For so many seconds the counts are taken as they are, and only what is parked here is added.
FRESH = 0.25
#: Records and bytes that are read of a stream to learn its mean payload.
SAMPLE_ITEMS = 256
SAMPLE_BYTES = 1 << 20


class Holdings:
    """The depth of every rung and due stream in `log`."""

    def __init__(self, log: Log, clock: Clock) -> None:
        self._log = log
        self._clock = clock
        self._items: dict[str, int] = {}
        self._seen: dict[str, tuple[int, int]] = {}  # stream: items and payload bytes that the mean is of
        self._looked = float("-inf")

    async def look(self) -> None:
        """Counts anew, unless that was done a moment ago."""
        if self._clock.monotonic() - self._looked < FRESH:
            return
        self._looked = self._clock.monotonic()
        items = {}
        for stream in await self._log.streams():
            if due_function(stream) is not None or rung_wait(stream) is not None:
                items[stream] = await self._depth(stream)
        self._items = items

    async def _depth(self, stream: str) -> int:
        bounds = await self._log.bounds(stream)
        depth = sum(each.end - each.start for each in bounds.values())
        if depth and stream not in self._seen:
            partition = max(bounds, key=lambda number: bounds[number].end - bounds[number].start)
            found = await self._log.read(stream, partition, bounds[partition].start, SAMPLE_ITEMS, SAMPLE_BYTES)
            self._seen[stream] = (len(found.payloads), sum(map(len, found.payloads)))
        return depth

    def added(self, stream: str, records: Sequence[Record]) -> None:
        """Notes an append."""
        items, size = self._seen.get(stream, (0, 0))
        self._seen[stream] = (items + len(records), size + sum(len(record.payload) for record in records))
        self._items[stream] = self._items.get(stream, 0) + len(records)

    def by_stream(self) -> dict[str, int]:
        """Items by stream, as last counted."""
        return dict(sorted(self._items.items()))

    @property
    def items(self) -> int:
        """Items in all."""
        return sum(self._items.values())

    @property
    def bytes(self) -> int:
        """Payload bytes in all, about."""
        total = 0.0
        for stream, depth in self._items.items():
            items, size = self._seen.get(stream, (0, 0))
            total += depth * size / items if items else 0.0
        return int(total)
