"""Reading records of a Kafka partition again by position, outside of any consumer group."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from ...model.errors import PositionsGone
from ...sdk.source import Capabilities, StreamBatch
from ...stores.checkpoints.checkpoints import Checkpoints
from ...stores.kafka.client import MAX_RECORD, Fetch, Place, Reader, Topic, TopicAdmin
from ...stores.kafka.client_thread import KafkaThread
from ...stores.kafka.clients import client_of
from ...stores.kafka.errors import unavailable
from ...stores.kafka.records import TOMBSTONE
from ...stores.log.log import Bounds, Records
from ..rules.topic_lives import place_of
from .kafka_lives import KafkaLives

#: Positions so near to each other are read again together.
NEAR = 256
#: Bytes of one such read, about.
AGAIN_BYTES = 8 << 20


class Rereads(Protocol):
    """Reads at a position, and the bounds of a partition."""

    async def again(self, place: Place, position: int, limit: int) -> Records: ...

    async def bounds(self, place: Place) -> Bounds: ...


async def reread(source: Rereads, name: str, place: Place, positions: Sequence[int], skip: bool) -> StreamBatch:
    """The records at these positions; missing ones are in `absent`, or in `lost` when retention took them. With `skip`
    tombstones are absent."""
    batch = StreamBatch(name, [], [], [], [], [])
    wanted = sorted(positions)
    begin = 0
    while begin < len(wanted):
        end = begin + 1
        while end < len(wanted) and wanted[end] - wanted[end - 1] < NEAR:
            end += 1
        await _read(source, place, batch, wanted[begin:end], skip)
        begin = end
    without_the_oversized(batch)
    missing = sorted(set(wanted).difference(batch.positions))
    if missing:
        start = (await source.bounds(place)).start
        batch.lost = [(at, at) for at in missing if at < start]
        batch.absent = [at for at in missing if at >= start]
    return batch


async def _read(source: Rereads, place: Place, batch: StreamBatch, wanted: Sequence[int], skip: bool) -> None:
    few = set(wanted)
    position, last = wanted[0], wanted[-1]
    while position <= last:
        records = await source.again(place, position, last + 1 - position)
        if not records.positions or records.positions[0] > last:
            return
        for index, at in enumerate(records.positions):
            headers, payload = records.headers[index], records.payloads[index]
            if at not in few or (skip and not payload and headers[-1:] == ((TOMBSTONE, "1"),)):
                continue
            batch.positions.append(at)
            batch.times.append(records.times[index])
            batch.keys.append(records.keys[index])
            batch.headers.append(headers)
            batch.payloads.append(payload)
        position = records.positions[-1] + 1


def without_the_oversized(batch: StreamBatch) -> StreamBatch:
    """Returns the batch, with records refused that are larger than any message of ours: they become dead letters
    without their content, which stays in the topic."""
    if batch.payloads and max(map(len, batch.payloads)) > MAX_RECORD:
        for index, payload in enumerate(batch.payloads):
            if len(payload) > MAX_RECORD:
                batch.refused[index] = (
                    f"the record has {len(payload)} bytes, at most {MAX_RECORD} are handed on; it stays in the topic, "
                    "at its offset: have its producer store such content elsewhere and send a reference"
                )
                batch.payloads[index] = b""
    return batch


class KafkaReader:
    """Implements `sdk.source.Rereader` and `Dated` over the topics of a tailer, without joining a group."""

    capabilities: Capabilities

    def __init__(self, options: Any, capabilities: Capabilities, tailer: str, checkpoints: Checkpoints) -> None:
        client = client_of(options)
        self.capabilities = capabilities
        self._topics: Sequence[str] = options.read
        self._skip = options.tombstones == "skip"
        self._where = options.where
        self._lives = KafkaLives(checkpoints, tailer, options.where, options.on_recreated)
        self._reading: KafkaThread[Reader] = KafkaThread("replay", lambda: client.reader(options), self._explain)
        self._looking: KafkaThread[TopicAdmin] = KafkaThread("look", lambda: client.topic_admin(options), self._explain)

    async def reread(self, partition: str, positions: Sequence[int]) -> StreamBatch:
        place = place_of(partition)
        await self._look()
        if partition != self._lives.name(place):  # of a topic, or a log, that is there no more
            return StreamBatch(partition, [], [], [], [], [], lost=[(at, at) for at in sorted(positions)])
        return await reread(self, partition, place, positions, self._skip)

    async def ends(self) -> dict[str, int]:
        there = await self._look()
        places = [(name, number) for name, topic in there.items() for number in range(topic.partitions)]
        found = await self._looking.call(lambda admin: admin.ends(places))
        return {self._lives.name(place): end for place, end in found.items()}

    async def _look(self) -> dict[str, Topic]:
        """The topics, once they are known to be those that the tailer reads. Raises PositionsGone otherwise."""
        await self._lives.load()
        there = await self._looking.call(lambda admin: admin.described(self._topics))
        if other := self._lives.another_of(there):
            raise PositionsGone(
                f"{self._where}: the topic {other!r} was made again, and is not the one that the tailer has read: have "
                "the tailer read it first, see on_recreated"
            )
        return there

    async def position_at(self, partition: str, time: float) -> int:
        """The first position at a time, by the broker's index of time stamps: where producers write times out of order,
        later records may come first."""
        place = place_of(partition)
        return (await self._looking.call(lambda admin: admin.at_time([place], int(time * 1000))))[place]

    async def close(self) -> None:
        await self._reading.close()
        await self._looking.close()

    async def again(self, place: Place, position: int, limit: int) -> Records:
        fetch = Fetch(place, position, limit, AGAIN_BYTES)
        (found,) = await self._reading.call(lambda reader: reader.read([fetch]))
        if isinstance(found, BaseException):
            raise self._explain(found)
        return found

    async def bounds(self, place: Place) -> Bounds:
        return (await self._looking.call(lambda admin: admin.bounds([place])))[place]

    def _explain(self, error: BaseException) -> Exception:
        return unavailable(self._where, error)
