"""Redis Streams that other applications fill with XADD, as a source. Each stream is a partition, named by its key.

Our ownership row says which process reads, and our checkpoint how far: no consumer group is made, and nothing is
written to the server. An entry's position is its id as one number (`redis_entries.py`), so it needs no index and never
changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ...foundation.clock import SYSTEM_CLOCK, Clock
from ...foundation.logger import Logger
from ...model.errors import NotConnected, Unavailable
from ...model.life import MARK, Life
from ...model.units import start_of
from ...sdk.source import Capabilities, SourceKind, StreamBatch
from ...stores.checkpoints.checkpoints import Checkpoints, Mark
from ...stores.checkpoints.lives import ENTRIES, EPOCH, Lives
from ...stores.redis.server import RedisServer
from ..registry import Environment
from ..rules.retention_loss import (
    Had,
    LastRead,
    StreamFacts,
    at_end,
    is_another,
    opened,
    passes_over,
    still,
    taken_by_retention,
)
from .redis_entries import (
    SEQUENCE_BITS,
    EntryMapping,
    RedisStreamOptions,
    digest_of,
    facts_of,
    id_of,
    position_of,
)
from .redis_stream_progress import ReadStream, signs_of
from .wait_or_closed import wait_or_closed

#: Seconds for which the server holds one wait, so that a dead connection is seen.
HELD = 5.0
#: Commands in one trip of a reread.
REREAD = 128
#: Seconds of rest after which a stream is asked whether it is still the same.
LOOK_AGAIN = 15.0

_log = Logger("tailrace.tailer")


class RedisStreamSource:
    """Implements `sdk.source.StreamSource`. `name` is the tailer's name, under which counts are kept in
    `checkpoints`."""

    capabilities = Capabilities(delays=False, holes=True, sparse=True, timed=True, replays=True)

    def __init__(
        self,
        options: RedisStreamOptions,
        checkpoints: Checkpoints,
        name: str,
        server: RedisServer | None = None,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self._clock = clock
        self._options = options
        self._entries = EntryMapping(options)
        self._server = server or RedisServer(options, HELD)
        self._checkpoints = checkpoints
        self._counts = ENTRIES + name
        self._lives = Lives(checkpoints, name, options.on_recreated)
        self._noted: dict[str, tuple[int, int]] = {}
        self._streams: dict[str, ReadStream] = {}
        self._looked = 0.0
        self._turn = 0
        self._closed = asyncio.Event()
        self._closed.set()

    async def open(self, positions: Mapping[str, int]) -> None:
        if not self._closed.is_set():
            return
        known = await self._checkpoints.load(self._counts)
        await self._lives.load()
        streams = {}
        for key in self._options.streams:
            name = self._lives.named(key)
            facts, mark = await self._facts(key), known.get(name)
            position = positions.get(name, 0) or await self._first_start(key, facts)
            noted = None if mark is None else Had(mark.position, mark.handed_out)
            had = opened(position, noted, facts) if position else Had(0)
            read, older = (
                signs_of(mark.ahead) if mark is not None and mark.ahead else (LastRead(position - 1), LastRead())
            )
            if position and await self._is_another(key, read, facts):
                if older.digest and not await self._is_another(key, older, facts):
                    _log.warning("a stream lost its newest entries, all of which had been read", stream=key)
                    had = at_end(Had(position, -1, False), facts)
                elif passes_over(position, facts):
                    await self._another(key, facts, position)
                    name, had = self._lives.named(key), Had(0)
                else:
                    had = Had(position, facts.removed)
                read = older = LastRead()
            streams[name] = ReadStream(key, name, had, read, older)
        self._streams = streams
        self._closed.clear()

    async def _first_start(self, key: str, facts: StreamFacts) -> int:
        """The position at which a stream without a checkpoint begins. It is noted at the first start: what comes later
        is not passed over."""
        start = self._options.start
        if start != "earliest" and not self._lives.knows(key):
            end = facts.last + 1
            at = end if start == "latest" else min(end, _position_of(start_of(start, self._clock.wall())))
            await self._lives.note(key, Life(starts={0: at if facts.first is not None and at > facts.first else 0}))
        return self._lives.life(key).starts.get(0, 0)

    def _key(self, name: str) -> str:
        """The key of a partition, of former streams too."""
        key, at, number = name.rpartition(MARK)
        return key if at and number.isdigit() and name not in self._options.streams else name

    async def _is_another(self, key: str, read: LastRead, facts: StreamFacts) -> bool:
        if read.position < 0 or not read.digest:  # a note of a version before, or none: only an older end tells
            return 0 <= facts.last < read.position
        id = id_of(read.position)
        rows = await self._server.call("XRANGE", key, id, id, about=f"stream {key!r}")
        return is_another(read, digest_of(rows[0][1]) if rows else None, facts)

    async def _another(self, key: str, facts: StreamFacts, position: int) -> None:
        """Follows the tailer's choice for a key that has another stream now: see `Lives.another`."""
        first = id_of(facts.last if facts.first is None else facts.first)
        await self._lives.another(
            key,
            Life(),
            f"{self._server.name}: the stream {key!r} is another one than the one that was read up to "
            f"{id_of(position)}: it was deleted and made again, with entries from {first} on"
            " (or its server lost all that was read)",
        )

    async def _facts(self, key: str) -> StreamFacts:
        command = ("XINFO", "STREAM", key)
        return facts_of(await self._server.call(*command, about=f"stream {key!r}", none_if="no such key"), key)

    async def read(self, limit: int, max_bytes: int, timeout: float) -> list[StreamBatch]:
        if self._closed.is_set():
            return []
        try:
            batches = await self._sweep(limit, max_bytes)
            if not batches:
                self._look_now_and_then()
            if not batches and timeout > 0 and await self._wait(timeout):
                batches = await self._sweep(limit, max_bytes)
        except Unavailable:
            if self._closed.is_set():  # its connections were closed under it
                return []
            raise
        return batches

    def _look_now_and_then(self) -> None:
        """Has streams that rest asked for the entry that was read last, which tells that they are still the same."""
        now = asyncio.get_running_loop().time()
        if now - self._looked >= LOOK_AGAIN:
            self._looked = now
            for stream in self._streams.values():
                stream.ready = True

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

    async def _take(self, stream: ReadStream, limit: int, max_bytes: int) -> StreamBatch | None:
        """Takes the next entries of one stream. The entry read last is asked for, too: while it is there, none is
        missing."""
        asked = min(limit, max(1, int(max_bytes / stream.size)))
        had = stream.had
        begin = id_of(had.next - 1) if had.next else "-"
        command = ("XRANGE", stream.key, begin, "+", "COUNT", asked + bool(had.next))
        rows = await self._server.call(*command, about=f"stream {stream.key!r}")
        taken = None
        before = rows[0] if rows and had.next and position_of(rows[0][0], stream.key) == had.next - 1 else None
        read = stream.read
        digest = digest_of(before[1]) if before is not None and read.position == had.next - 1 else None
        if before is not None and (not digest or not read.digest or digest == read.digest):
            del rows[0]
            stream.read = read if digest and read.digest else LastRead(had.next - 1, had.entries, digest_of(before[1]))
        else:
            facts = await self._facts(stream.key)
            if read.digest and read.position == had.next - 1 and is_another(read, digest, facts):
                if passes_over(had.next, facts):
                    raise NotConnected(
                        f"{self._server.name}: the stream {stream.key!r} was deleted and made again: it is opened anew"
                    )
                stream.begin_anew(Had(had.next, facts.removed))
                rows = rows[:asked]
            elif not had.next:
                first = rows and position_of(rows[0][0], stream.key) == facts.first
                stream.know(Had(0, facts.removed if first else -1, bool(first)))
            else:
                stream.know(still(had, facts))
                taken = taken_by_retention(stream.had, facts)
                rows = [] if taken is None and not rows else rows[:asked]
        stream.ready = len(rows) >= asked
        if not rows and taken is None:
            return None
        batch = self._entries.batch(stream.name, rows, max_bytes)
        stream.ready = stream.ready or len(batch.positions) < len(rows)
        if taken is not None:
            batch.lost, batch.lost_items = [(taken.first, taken.last)], taken.items or 1
            count = stream.had.entries + taken.items if taken.items else -1
            stream.know(Had(taken.last + 1, count, count >= 0))
        if batch.positions:
            stream.took(batch.positions, rows[len(batch.positions) - 1][1])
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
        arrived = {key.decode() for key, _ in await wait_or_closed(wait, self._closed) or ()}
        for stream in streams:
            stream.ready = stream.ready or stream.key in arrived
        return not self._closed.is_set()

    async def reread(self, partition: str, positions: Sequence[int]) -> StreamBatch:
        rows: list[Any] = []
        wanted = sorted(positions)
        key = self._key(partition)
        if self._streams and partition not in self._streams:  # of a stream that is no more
            return replace(self._entries.batch(partition, []), lost=[(each, each) for each in wanted])
        for begin in range(0, len(wanted), REREAD):
            ids = [id_of(position) for position in wanted[begin : begin + REREAD]]
            answers = await self._server.calls([("XRANGE", key, each, each) for each in ids], key)
            rows += [row for answer in answers for row in answer]
        batch = self._entries.batch(partition, rows)
        missing = sorted(set(wanted).difference(batch.positions))
        if missing:
            facts = await self._facts(key)
            start = facts.last + 1 if facts.first is None else facts.first
            batch.lost = [(position, position) for position in missing if position < start]
            batch.absent = [position for position in missing if position >= start]
        return batch

    async def between(self, partition: str, first: int, last: int, limit: int) -> StreamBatch:
        key = self._key(partition)
        command = ("XRANGE", key, id_of(first), id_of(last), "COUNT", limit)
        return self._entries.batch(partition, await self._server.call(*command, about=f"stream {key!r}"))

    async def position_at(self, partition: str, time: float) -> int:
        """The first position at a time, with which ids begin; at most the end."""
        return min(_position_of(time), (await self._facts(self._key(partition))).last + 1)

    async def ends(self) -> dict[str, int]:
        if not self._streams:
            await self._lives.load()
        return {self._lives.named(key): (await self._facts(key)).last + 1 for key in self._options.streams}

    async def behind(self, positions: Mapping[str, int]) -> int:
        """Number of entries that are not settled; an upper bound where counts are unknown."""
        total = 0
        for stream in list(self._streams.values()):
            facts = await self._facts(stream.key)
            if not stream.had.exact or stream.had.entries < 0:
                stream.know(at_end(stream.had, facts))
            position = positions.get(stream.name, 0) or self._lives.life(stream.key).starts.get(0, 0)
            if position <= facts.last:
                below = stream.count_below(position) if position else facts.removed
                total += facts.added - below if below >= 0 and facts.added >= below else facts.length
        return total

    async def settled_below(self, partition: str, position: int) -> None:
        """Notes the number of entries that were added below the checkpoint, so that a later reader can tell whether
        retention has passed it. The stream itself is not changed."""
        stream = self._streams.get(partition)
        if stream is None:
            return
        note, count = stream.note_below(position), stream.count_below(position)
        if count < 0 or self._noted.get(partition) == (position, count):
            return
        if not self._noted:
            await self._checkpoints.open(self._counts, EPOCH)
        await self._checkpoints.commit(self._counts, EPOCH, {partition: Mark(position, note, count)})
        self._noted[partition] = (position, count)

    async def close(self) -> None:
        self._closed.set()
        await self._server.close()


def _position_of(time: float) -> int:
    return max(0, int(time * 1000)) << SEQUENCE_BITS


def build(options: RedisStreamOptions, environment: Environment) -> RedisStreamSource:
    """The source over the streams of one server."""
    return RedisStreamSource(options, environment.checkpoints, environment.tailer, clock=environment.clock)


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
