"""Redis Streams that other applications fill with XADD, as a source. Each stream is a partition, named by its key.

Our ownership row says which process reads, and our checkpoint how far: no consumer group is made, and nothing is
written to the server. An entry's position is its id as one number (`redis_entries.py`), so it needs no index and never
changes.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

from ...model.errors import InvalidRequest, Unavailable
from ...sdk.source import Capabilities, SourceKind, StreamBatch
from ...stores.checkpoints.checkpoints import Checkpoints, Mark
from ...stores.redis.server import RedisServer
from ..registry import Environment
from ..rules.retention_loss import Had, StreamFacts, at_end, made_anew, opened, still, taken_by_retention
from .redis_entries import SEQUENCE_BITS, EntryMapping, RedisStreamOptions, facts_of, id_of, position_of
from .wait_or_closed import wait_or_closed

#: Seconds for which the server holds one wait, so that a dead connection is seen.
HELD = 5.0
#: The assumed size of an entry before any was seen, bytes; and commands in one trip of a reread.
USUAL_BYTES = 16 << 10
REREAD = 128
#: The number of entries of each stream that the checkpoint has passed is kept under this name and the tailer's; always
#: with one epoch, since it stays true whichever process wrote it.
COUNTS = "@entries."
EPOCH = 1


class _Stream:
    """One stream. `had` tells how far it was handed out; `_passed` has the positions that were handed out, each batch
    with the number of entries before it, gaplessly since `_since`, as far as the checkpoint has not passed them."""

    def __init__(self, key: str, had: Had) -> None:
        self.key = key
        self.had = had
        self.ready = True  # there may be entries to read
        self.size = float(USUAL_BYTES)  # of an entry, about
        self._passed: deque[tuple[list[int], int]] = deque()
        self._since = had.next

    def took(self, positions: list[int]) -> None:
        """Notes entries that were handed out."""
        had = self.had
        count = had.entries
        if count >= 0:
            self._passed.append((positions, count))
            count += len(positions)
        self.had = had._replace(next=positions[-1] + 1, entries=count)
        if count < 0:
            self._since = self.had.next

    def know(self, had: Had) -> None:
        """Takes another count of entries handed out, if it differs."""
        if had != self.had:
            self.had = had
            self._passed.clear()
            self._since = had.next

    def count_below(self, position: int) -> int:
        """Number of entries that were ever added below a position of the checkpoint; -1: unknown."""
        if not self.had.exact or self.had.entries < 0 or position < self._since:
            return -1
        while self._passed and self._passed[0][0][-1] < position:
            self._passed.popleft()
        if not self._passed:
            return self.had.entries if position >= self.had.next else -1
        positions, before = self._passed[0]
        return before + bisect_left(positions, position)


class RedisStreamSource:
    """Implements `sdk.source.StreamSource`. `name` is the tailer's name, under which counts are kept in
    `checkpoints`."""

    capabilities = Capabilities(delays=False, holes=True, sparse=True, timed=True, replays=True)

    def __init__(
        self, options: RedisStreamOptions, checkpoints: Checkpoints, name: str, server: RedisServer | None = None
    ) -> None:
        self._options = options
        self._entries = EntryMapping(options)
        self._server = server or RedisServer(options, HELD)
        self._checkpoints = checkpoints
        self._counts = COUNTS + name
        self._noted: dict[str, tuple[int, int]] = {}
        self._streams: dict[str, _Stream] = {}
        self._turn = 0
        self._closed = asyncio.Event()
        self._closed.set()

    async def open(self, positions: Mapping[str, int]) -> None:
        if not self._closed.is_set():
            return
        known = await self._checkpoints.load(self._counts)
        streams = {}
        for key in self._options.streams:
            position, mark = positions.get(key, 0), known.get(key)
            facts = await self._facts(key)
            noted = None if mark is None else Had(mark.position, mark.handed_out)
            had = opened(position, noted, facts) if position else Had(0)
            if made_anew(had, facts):
                raise InvalidRequest(
                    f"{self._server.name}: the stream {key!r} ends at {id_of(facts.last)}, before {id_of(position)}, "
                    "up to where this tailer is done: it was deleted and made again with older ids, which would never "
                    "be read. Give the tailer another name to start over"
                )
            streams[key] = _Stream(key, had)
        self._streams = streams
        self._closed.clear()

    async def _facts(self, key: str) -> StreamFacts:
        command = ("XINFO", "STREAM", key)
        return facts_of(await self._server.call(*command, about=f"stream {key!r}", none_if="no such key"), key)

    async def read(self, limit: int, max_bytes: int, timeout: float) -> list[StreamBatch]:
        if self._closed.is_set():
            return []
        try:
            batches = await self._sweep(limit, max_bytes)
            if not batches and timeout > 0 and await self._wait(timeout):
                batches = await self._sweep(limit, max_bytes)
        except Unavailable:
            if self._closed.is_set():  # its connections were closed under it
                return []
            raise
        return batches

    async def _sweep(self, limit: int, max_bytes: int) -> list[StreamBatch]:
        """Reads from the streams that may have entries, beginning with another stream each time."""
        batches: list[StreamBatch] = []
        ready = [stream for stream in self._streams.values() if stream.ready]
        if not ready:
            return batches
        self._turn = (self._turn + 1) % len(ready)
        for stream in ready[self._turn :] + ready[: self._turn]:
            if limit <= 0 or max_bytes <= 0:
                break
            batch = await self._take(stream, limit, max_bytes)
            if batch is not None:
                batches.append(batch)
                limit -= len(batch.positions)
                max_bytes -= sum(map(len, batch.payloads))
        return batches

    async def _take(self, stream: _Stream, limit: int, max_bytes: int) -> StreamBatch | None:
        """Takes the next entries of one stream. The entry read last is asked for, too: while it is there, none is
        missing."""
        asked = min(limit, max(1, int(max_bytes / stream.size)))
        had = stream.had
        begin = id_of(had.next - 1) if had.next else "-"
        command = ("XRANGE", stream.key, begin, "+", "COUNT", asked + bool(had.next))
        rows = await self._server.call(*command, about=f"stream {stream.key!r}")
        taken = None
        if rows and had.next and position_of(rows[0][0], stream.key) == had.next - 1:
            del rows[0]
        else:
            facts = await self._facts(stream.key)
            if not had.next:
                first = rows and position_of(rows[0][0], stream.key) == facts.first
                stream.know(Had(0, facts.removed if first else -1, bool(first)))
            else:
                stream.know(still(had, facts))
                taken = taken_by_retention(stream.had, facts)
                rows = [] if taken is None and not rows else rows[:asked]
        stream.ready = len(rows) >= asked
        if not rows and taken is None:
            return None
        batch = self._entries.batch(stream.key, rows, max_bytes)
        stream.ready = stream.ready or len(batch.positions) < len(rows)
        if taken is not None:
            batch.lost, batch.lost_items = [(taken.first, taken.last)], taken.items or 1
            count = stream.had.entries + taken.items if taken.items else -1
            stream.know(Had(taken.last + 1, count, count >= 0))
        if batch.positions:
            stream.took(batch.positions)
            size = sum(map(len, batch.payloads)) / len(batch.positions)
            stream.size = max(1.0, size, (stream.size + size) / 2)
        return batch

    async def _wait(self, timeout: float) -> bool:
        """Waits for an entry or for `close`; returns whether there may be entries to read."""
        streams = list(self._streams.values())
        held = max(1, int(1000 * min(HELD, timeout)))
        after = [id_of(stream.had.next - 1) if stream.had.next else "0-0" for stream in streams]
        keys = [stream.key for stream in streams]
        command = ("XREAD", "COUNT", 1, "BLOCK", held, "STREAMS", *keys, *after)
        wait = self._server.wait(*command, about=f"streams {', '.join(keys[:3])}")
        for key, _ in await wait_or_closed(wait, self._closed) or ():
            self._streams[key.decode()].ready = True
        return not self._closed.is_set()

    async def reread(self, partition: str, positions: Sequence[int]) -> StreamBatch:
        rows: list[Any] = []
        wanted = sorted(positions)
        for begin in range(0, len(wanted), REREAD):
            ids = [id_of(position) for position in wanted[begin : begin + REREAD]]
            answers = await self._server.calls([("XRANGE", partition, each, each) for each in ids], partition)
            rows += [row for answer in answers for row in answer]
        batch = self._entries.batch(partition, rows)
        missing = sorted(set(wanted).difference(batch.positions))
        if missing:
            facts = await self._facts(partition)
            start = facts.last + 1 if facts.first is None else facts.first
            batch.lost = [(position, position) for position in missing if position < start]
            batch.absent = [position for position in missing if position >= start]
        return batch

    async def between(self, partition: str, first: int, last: int, limit: int) -> StreamBatch:
        command = ("XRANGE", partition, id_of(first), id_of(last), "COUNT", limit)
        return self._entries.batch(partition, await self._server.call(*command, about=f"stream {partition!r}"))

    async def position_at(self, partition: str, time: float) -> int:
        """The first position at a time, with which ids begin; at most the end."""
        return min(max(0, int(time * 1000)) << SEQUENCE_BITS, (await self._facts(partition)).last + 1)

    async def ends(self) -> dict[str, int]:
        return {key: (await self._facts(key)).last + 1 for key in self._options.streams}

    async def behind(self, positions: Mapping[str, int]) -> int:
        """Number of entries that are not settled; an upper bound where counts are unknown."""
        total = 0
        for stream in list(self._streams.values()):
            facts = await self._facts(stream.key)
            if not stream.had.exact or stream.had.entries < 0:
                stream.know(at_end(stream.had, facts))
            position = positions.get(stream.key, 0)
            if position <= facts.last:
                below = stream.count_below(position) if position else facts.removed
                total += facts.added - below if below >= 0 and facts.added >= below else facts.length
        return total

    async def settled_below(self, partition: str, position: int) -> None:
        """Notes the number of entries that were added below the checkpoint, so that a later reader can tell whether
        retention has passed it. The stream itself is not changed."""
        stream = self._streams.get(partition)
        count = -1 if stream is None else stream.count_below(position)
        if count < 0 or self._noted.get(partition) == (position, count):
            return
        if not self._noted:
            await self._checkpoints.open(self._counts, EPOCH)
        await self._checkpoints.commit(self._counts, EPOCH, {partition: Mark(position, handed_out=count)})
        self._noted[partition] = (position, count)

    async def close(self) -> None:
        self._closed.set()
        await self._server.close()


def build(options: RedisStreamOptions, environment: Environment) -> RedisStreamSource:
    """The source over the streams of one server."""
    return RedisStreamSource(options, environment.checkpoints, environment.tailer)


KIND = SourceKind(
    "redis_stream",
    "stream",
    RedisStreamOptions,
    build,
    RedisStreamSource.capabilities,
    extra="redis",
    description="entries of Redis Streams that other applications add",
    retention=True,
)
