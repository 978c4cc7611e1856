"""One partition of a Kafka topic as a source: what its group's member fetched, up to a bound, and the pump's questions.

The member's thread fills the buffer; when that is full the partition is paused, and polling goes on. What is read again
by position comes from a reader of its own, outside of the group.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from ...sdk.model.errors import NotConnected
from ...sdk.source import Capabilities, StreamBatch
from ...stores.log.kafka_client import MAX_RECORD, Place
from ...stores.log.kafka_records import TOMBSTONE
from ...stores.log.log import Bounds, Records
from .kafka_member import Polled

CAPABILITIES = Capabilities(delays=False, holes=True)
#: What is fetched ahead of a partition's reader, before it is paused: a few reads of a busy tailer.
BUFFER_ITEMS = 8192
BUFFER_BYTES = 4 << 20
#: Positions so near to each other are read again together.
NEAR = 256

Tombstones = Literal["deliver", "skip"]


class Feed(Protocol):
    """The group behind a partition.

    begin     where reading begins without a checkpoint
    seek      has the member fetch from a position, or from the start where that is gone; returns from where. What is
              fetched from then on bears this generation
    flow      a partition has room again, or none
    settled   the group is to know that everything below is done
    again     reads at a position, outside of the group
    """

    async def begin(self, place: Place) -> int: ...

    async def seek(self, place: Place, position: int, generation: int) -> int: ...

    def flow(self) -> None: ...

    def settled(self, place: Place, position: int) -> None: ...

    async def again(self, place: Place, position: int, limit: int) -> Records: ...

    async def bounds(self, place: Place) -> Bounds: ...


class KafkaPartition:
    """Implements `sdk.source.PartitionSource`.

    Invariant: `items` and `size` are those of `_chunks`, which rise by position and are of this generation.
    `fetched`: everything below it was fetched, or holds nothing.
    """

    capabilities = CAPABILITIES

    def __init__(self, name: str, place: Place, feed: Feed, tombstones: Tombstones) -> None:
        self.place = place
        self.items = 0
        self.size = 0
        self.fetched = -1
        self.is_open = False
        self._name = name
        self._feed = feed
        self._skip = tombstones == "skip"
        self._chunks: deque[StreamBatch] = deque()
        self._generation = 0
        self._failure = ""
        self._lost: list[tuple[int, int]] = []
        self._arrived = asyncio.Event()

    @property
    def full(self) -> bool:
        """Whether nothing more should be fetched for now."""
        return self.items >= BUFFER_ITEMS or self.size >= BUFFER_BYTES

    async def begin(self) -> int:
        return await self._feed.begin(self.place)

    async def open(self, positions: Mapping[str, int]) -> None:
        if self.is_open:
            return
        position = positions.get(self._name)
        if position is None:
            position = await self.begin()
        self._chunks.clear()
        self._lost.clear()
        self.items = self.size = 0
        self._failure = ""
        self._generation += 1
        self.fetched = await self._feed.seek(self.place, position, self._generation)
        if self.fetched > position:
            self._lost.append((position, self.fetched - 1))
        self.is_open = True
        self._feed.flow()

    def arrived(self, polled: Polled, generation: int) -> None:
        """Something was fetched."""
        if generation != self._generation or polled.through <= self.fetched:
            return  # from before it was sought elsewhere, or nothing new
        batch = self._batch(polled)
        self._chunks.append(batch)
        self.items += len(batch.positions)
        self.size += sum(map(len, batch.payloads))
        self.fetched = max(self.fetched, polled.through)
        self._arrived.set()

    def _batch(self, polled: Polled) -> StreamBatch:
        records = polled.records
        columns = (records.positions, records.times, records.keys, records.headers, records.payloads)
        batch = StreamBatch(self._name, *columns, through=polled.through)
        if all(polled.values):
            return batch
        if not self._skip:
            batch.headers = [
                headers if there else (*headers, (TOMBSTONE, "1"))
                for headers, there in zip(batch.headers, polled.values, strict=True)
            ]
            return batch
        kept = [index for index, there in enumerate(polled.values) if there]
        batch.absent = [at for at, there in zip(records.positions, polled.values, strict=True) if not there]
        lists = [[column[index] for index in kept] for column in columns]
        batch.positions, batch.times, batch.keys, batch.headers, batch.payloads = lists  # type: ignore[assignment]
        return batch

    def failed(self, why: str) -> None:
        """Nothing more comes; a read says why, and the pump opens this again."""
        self._failure = self._failure or why
        self._generation += 1
        self._arrived.set()

    async def read(self, limit: int, max_bytes: int, timeout: float) -> list[StreamBatch]:
        if not self._chunks and self.is_open and not self._lost and not self._failure:
            self._arrived.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(timeout):
                    await self._arrived.wait()
        if not self.is_open:
            return []
        if self._lost:
            lost, self._lost = self._lost, []
            return [StreamBatch(self._name, [], [], [], [], [], lost=lost)]
        found = []
        while self._chunks and limit > 0 and max_bytes > 0:
            batch = self._take(limit, max_bytes)
            limit -= len(batch.positions)
            max_bytes -= sum(map(len, batch.payloads))
            found.append(_without_the_oversized(batch))
        self._feed.flow()
        if not found and self._failure:
            raise NotConnected(self._failure)
        return found

    def _take(self, limit: int, max_bytes: int) -> StreamBatch:
        """The first chunk, or as much of it as there is room for: one item at least."""
        chunk = self._chunks[0]
        count, size = min(limit, len(chunk.positions)), 0
        for index, payload in enumerate(chunk.payloads[:count]):
            size += len(payload)
            if size > max_bytes and index:
                size -= len(payload)
                count = index
                break
        self.items -= count
        self.size -= size
        if count == len(chunk.positions):
            self._chunks.popleft()
            return chunk
        last = chunk.positions[count - 1]
        first = StreamBatch(
            self._name,
            chunk.positions[:count],
            chunk.times[:count],
            chunk.keys[:count],
            chunk.headers[:count],
            chunk.payloads[:count],
            absent=[at for at in chunk.absent if at < last],
        )
        for column in (chunk.positions, chunk.times, chunk.keys, chunk.headers, chunk.payloads):
            del column[:count]
        chunk.absent = [at for at in chunk.absent if at > last]
        return first

    async def reread(self, partition: str, positions: Sequence[int]) -> StreamBatch:
        batch = StreamBatch(self._name, [], [], [], [], [])
        wanted = sorted(positions)
        begin = 0
        while begin < len(wanted):
            end = begin + 1
            while end < len(wanted) and wanted[end] - wanted[end - 1] < NEAR:
                end += 1
            await self._read_again(batch, wanted[begin:end])
            begin = end
        _without_the_oversized(batch)
        missing = sorted(set(wanted).difference(batch.positions))
        if missing:
            start = (await self._feed.bounds(self.place)).start
            batch.lost = [(at, at) for at in missing if at < start]
            batch.absent = [at for at in missing if at >= start]
        return batch

    async def _read_again(self, batch: StreamBatch, wanted: Sequence[int]) -> None:
        few = set(wanted)
        position, last = wanted[0], wanted[-1]
        while position <= last:
            records = await self._feed.again(self.place, position, last + 1 - position)
            if not records.positions or records.positions[0] > last:
                return
            for index, at in enumerate(records.positions):
                if at in few:
                    batch.positions.append(at)
                    batch.times.append(records.times[index])
                    batch.keys.append(records.keys[index])
                    batch.headers.append(records.headers[index])
                    batch.payloads.append(records.payloads[index])
            position = records.positions[-1] + 1

    async def ends(self) -> dict[str, int]:
        return {self._name: (await self._feed.bounds(self.place)).end}

    async def settled_below(self, partition: str, position: int) -> None:
        self._feed.settled(self.place, position)

    async def close(self) -> None:
        self.is_open = False
        self._generation += 1
        self._feed.flow()
        self._arrived.set()


def _without_the_oversized(batch: StreamBatch) -> StreamBatch:
    """A topic may have records larger than any message of ours: they become dead letters, without their content, which
    stays in the topic."""
    if batch.payloads and max(map(len, batch.payloads)) > MAX_RECORD:
        for index, payload in enumerate(batch.payloads):
            if len(payload) > MAX_RECORD:
                batch.refused[index] = (
                    f"the record has {len(payload)} bytes, at most {MAX_RECORD} are handed on; it stays in the topic, "
                    "at its offset: have its producer store such content elsewhere and send a reference"
                )
                batch.payloads[index] = b""
    return batch
