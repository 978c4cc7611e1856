"""One partition of a Kafka topic as a source: a bounded buffer of the records that the group's member fetched.

The member's thread fills the buffer; when it is full the partition is paused, and polling goes on. Records that are
read again by position come from a separate reader, outside of the group.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Literal, Protocol

from ...model.errors import NotConnected
from ...sdk.source import Capabilities, StreamBatch
from ...stores.kafka.client import Place
from .kafka_member import Polled
from .kafka_reread import Rereads, reread, without_the_oversized

CAPABILITIES = Capabilities(delays=False, holes=True, timed=True, replays=True)
#: The most records and bytes that are fetched ahead, before a partition is paused: a few reads of a busy tailer.
BUFFER_ITEMS = 8192
BUFFER_BYTES = 4 << 20

#: Each opening has a number of its own, also across objects that follow each other over one partition: records that
#: were fetched or settled in one opening are told from those of any other.
_GENERATIONS = itertools.count(1)

Tombstones = Literal["deliver", "skip"]


class Feed(Rereads, Protocol):
    """The group behind a partition. It reads again by position outside of the group.

    begin     the position at which reading begins without a checkpoint
    noted     notes leader epochs that were read, each with its first position, before any record of them is handed out
    present   raises NotConnected unless the partition of this name is what the brokers have now
    seek      has the member fetch from a position, or from the start where that is gone; returns the position. Records
              that are fetched from then on bear this generation
    flow      hears that a partition has room again, or none
    settled   tells the group that all records below are done, while the opening with this generation is read
    """

    async def begin(self, name: str) -> int: ...

    async def seek(self, name: str, position: int, generation: int) -> int: ...

    async def noted(self, name: str, epochs: Sequence[tuple[int, int]]) -> None: ...

    def present(self, name: str) -> None: ...

    def flow(self) -> None: ...

    def settled(self, place: Place, position: int, generation: int) -> None: ...


class KafkaPartition:
    """Implements `sdk.source.PartitionSource`.

    Invariant: `items` and `size` are those of `_chunks`, which rise by position and are of this generation.
    `fetched`: all positions below it were fetched, or are empty. `_sought` is the generation of the last opening: items
    that settle while this closes are still of that one.
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
        self._generation = self._sought = 0
        self._failure = ""
        self._lost: list[tuple[int, int]] = []
        self._epochs: list[tuple[int, int]] = []  # that were fetched and are not noted yet
        self._arrived = asyncio.Event()

    @property
    def full(self) -> bool:
        """Whether nothing more should be fetched for now."""
        return self.items >= BUFFER_ITEMS or self.size >= BUFFER_BYTES

    async def begin(self) -> int:
        return await self._feed.begin(self._name)

    async def open(self, positions: Mapping[str, int]) -> None:
        if self.is_open:
            return
        position = positions.get(self._name)
        if position is None:
            position = await self.begin()
        self._chunks.clear()
        self._lost.clear()
        self._epochs.clear()
        self.items = self.size = 0
        self._failure = ""
        self._generation = self._sought = next(_GENERATIONS)
        self.fetched = await self._feed.seek(self._name, position, self._generation)
        if self.fetched > position:
            self._lost.append((position, self.fetched - 1))
        self.is_open = True
        self._feed.flow()

    def arrived(self, polled: Polled, generation: int) -> None:
        """Takes records that were fetched, unless they are of an earlier opening."""
        if generation != self._generation or polled.through <= self.fetched:
            return  # from before it was sought elsewhere, or nothing new
        batch = self._batch(polled)
        self._chunks.append(batch)
        self.items += len(batch.positions)
        self.size += sum(map(len, batch.payloads))
        self.fetched = max(self.fetched, polled.through)
        self._epochs += polled.epochs
        self._arrived.set()

    def _batch(self, polled: Polled) -> StreamBatch:
        records = polled.records
        columns = (records.positions, records.times, records.keys, records.headers, records.payloads)
        batch = StreamBatch(self._name, *columns, through=polled.through)
        if not self._skip or all(polled.values):
            return batch
        kept = [index for index, there in enumerate(polled.values) if there]
        batch.absent = [at for at, there in zip(records.positions, polled.values, strict=True) if not there]
        lists = [[column[index] for index in kept] for column in columns]
        batch.positions, batch.times, batch.keys, batch.headers, batch.payloads = lists  # type: ignore[assignment]
        return batch

    def failed(self, why: str) -> None:
        """Notes that no more records come: a read raises the reason, and the pump opens this partition again."""
        self._failure = self._failure or why
        self._generation = 0
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
        if self._epochs:
            epochs = [*self._epochs]
            await self._feed.noted(self._name, epochs)
            self._epochs = [each for each in self._epochs if each not in epochs]
        found = []
        while self._chunks and limit > 0 and max_bytes > 0:
            batch = self._take(limit, max_bytes)
            limit -= len(batch.positions)
            max_bytes -= sum(map(len, batch.payloads))
            found.append(without_the_oversized(batch))
        self._feed.flow()
        if not found and self._failure:
            raise NotConnected(self._failure)
        return found

    def _take(self, limit: int, max_bytes: int) -> StreamBatch:
        """Takes the first chunk, or as much of it as there is room for: one item at least."""
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
        self._feed.present(self._name)
        return await reread(self._feed, self._name, self.place, positions, self._skip)

    async def ends(self) -> dict[str, int]:
        return {self._name: (await self._feed.bounds(self.place)).end}

    async def settled_below(self, partition: str, position: int) -> None:
        self._feed.settled(self.place, position, self._sought)

    async def close(self) -> None:
        self.is_open = False
        self._generation = 0
        self._feed.flow()
        self._arrived.set()
