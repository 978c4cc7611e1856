"""The log on Kafka: a stream is a topic, a position an offset.

Positions may have gaps (markers of others' transactions; records that are appended here are dense, as long as one
process at a time appends to a partition). Each kind of call may wait, so there are three threads: for appending,
reading, and the administration of topics.

An append whose answer is lost is *unknown*, never taken for a success or a loss: it raises NotConnected, and a caller
that repeats it may store the records twice. Every parked item bears its identity and fence, by which the ledger tells
copies apart (L16). After such an answer the producer is made anew, so that no number of its sequence is missing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence

from pydantic import Field

from ...foundation.clock import SYSTEM_CLOCK, Clock
from ...model.errors import InvalidPayload, InvalidRequest, NotConnected, PositionsGone, Unavailable
from ..kafka.client import MAX_MESSAGE, MAX_RECORD, Append, Fetch, Reader, Topic, TopicAdmin, Writer
from ..kafka.client_thread import BatchedCalls, KafkaThread
from ..kafka.clients import client_of
from ..kafka.errors import unavailable
from ..kafka.options import KafkaOptions
from .engines import LogEngine
from .fleet_record import refuse_another_fleet
from .kafka_names import stream_of, topic_of
from .kafka_watch import Ends, KafkaWatch
from .log import Bounds, Record, Records

#: The beginning of every topic's name, by default.
PREFIX = "tailrace."
#: The setting without which a broker refuses records of a node whose clock is an hour ahead of its own. Brokers before
#: 3.6 refuse none, and do not know it.
ANY_TIME = "message.timestamp.after.max.ms"
#: Most partitions of a stream.
MAX_PARTITIONS = 1024
#: Seconds for which `open` waits for a cluster that does not answer.
PATIENCE = 10.0

_LOG = logging.getLogger("tailrace.log.kafka")


class KafkaLog:
    """A Log in a Kafka cluster. `retention` (seconds) is the time for which records are kept; None: until they are
    trimmed.

    The cluster is first reached when it is needed. `fleet` is the fleet of this process, empty where it has none. With
    a fleet, `open` reads the fleet of the log too, and a log of another one is refused.
    """

    batches = False

    def __init__(
        self,
        options: KafkaOptions,
        clock: Clock = SYSTEM_CLOCK,
        *,
        prefix: str = PREFIX,
        retention: float | None = None,
        fleet: str = "",
    ) -> None:
        client = client_of(options)
        self._options, self._where = options, options.where
        self._fleet, self._asking = fleet, asyncio.Lock()
        self._is_ours = not fleet  # the log's fleet was checked, or need not be
        self._clock = clock
        self._prefix = prefix
        self._settings = {
            "cleanup.policy": "delete",
            "retention.ms": "-1" if retention is None else str(int(retention * 1000)),
            "message.timestamp.type": "CreateTime",
            "max.message.bytes": str(MAX_MESSAGE),
            ANY_TIME: str((1 << 63) - 1),
        }
        self._counts: dict[str, int] = {}
        self._ids: dict[str, str] = {}  # of topics as they were seen first
        self._made_again: set[str] = set()
        self._writing: KafkaThread[Writer] = KafkaThread("append", lambda: client.writer(options), self._explain)
        self._reading: KafkaThread[Reader] = KafkaThread("read", lambda: client.reader(options), self._explain)
        self._looking: KafkaThread[TopicAdmin] = KafkaThread("look", lambda: client.topic_admin(options), self._explain)
        self._appends = BatchedCalls(self._writing, self._append_all)
        self._reads = BatchedCalls(self._reading, self._read_all)
        self._watch = KafkaWatch(self._ends)

    async def open(self) -> None:
        """Checks the fleet of the log, where this process has one. Raises ConfigError for a log of another fleet; a
        cluster that cannot be reached now is checked at its first use."""
        try:
            async with asyncio.timeout(PATIENCE):
                await self._ready()
        except (Unavailable, TimeoutError) as error:
            _LOG.warning("%s; trying again at each use", str(error) or f"{self._where} does not answer")

    async def _ready(self) -> None:
        if self._is_ours:
            return
        async with self._asking:
            if not self._is_ours:
                asked = KafkaLog(self._options, self._clock, prefix=self._prefix)
                try:
                    await refuse_another_fleet(asked, f"the log {self._prefix!r} in {self._where}", self._fleet)
                finally:
                    await asked.close()
                self._is_ours = True

    async def close(self) -> None:
        """Ends the clients after the calls that are under way."""
        await self._watch.close()
        for thread in (self._writing, self._reading, self._looking):
            await thread.close()

    async def create(self, stream: str, partitions: int) -> None:
        if not 1 <= partitions <= MAX_PARTITIONS:
            raise InvalidRequest(f"stream {stream!r}: {partitions} partitions; expected 1 to {MAX_PARTITIONS}")
        topic = topic_of(self._prefix, stream)
        known = await self._count(stream)
        if known >= partitions:
            return
        try:
            await self._looking.call(lambda admin: admin.create(topic, partitions, self._settings))
        except NotConnected as error:
            if ANY_TIME not in self._settings or "config" not in str(error).lower():
                raise
            del self._settings[ANY_TIME]
            await self._looking.call(lambda admin: admin.create(topic, partitions, self._settings))
        self._counts[stream] = partitions
        if known:  # clients may remember the former number
            await self._writing.call(lambda _: self._writing.drop())
            await self._reading.call(lambda _: self._reading.drop())
        for partition in range(known, partitions):
            self._watch.saw(stream, partition, 0)

    async def append(self, stream: str, partition: int, records: Sequence[Record]) -> int:
        topic = topic_of(self._prefix, stream)
        if partition < 0 or partition >= self._counts.get(stream, 0):
            await self.create(stream, partition + 1)
        if not records:
            return (await self.bounds(stream))[partition].end
        _check(stream, records)
        now = round(self._clock.wall() * 1000)
        first = await self._appends.ask(Append((topic, partition), records, now))
        self._watch.saw(stream, partition, first + len(records))
        return first

    def _append_all(self, writer: Writer, appends: Sequence[Append]) -> Sequence[int | BaseException]:
        answers = writer.append(appends)
        if any(isinstance(answer, BaseException) for answer in answers):
            self._writing.drop()
        return [
            answer if isinstance(answer, int) else self._explain(answer, "it is not known whether it was appended")
            for answer in answers
        ]

    async def read(self, stream: str, partition: int, position: int, limit: int, max_bytes: int) -> Records:
        if limit < 1 or partition >= await self._count(stream, partition + 1):
            return Records([], [], [], [], [])
        self._refuse_another(stream)
        place = topic_of(self._prefix, stream), partition
        found = await self._reads.ask(Fetch(place, position, limit, max_bytes))
        found.now = self._clock.wall()
        return found

    def _read_all(self, reader: Reader, fetches: Sequence[Fetch]) -> Sequence[Records | BaseException]:
        answers: list[Records | BaseException | None] = [None] * len(fetches)
        rest = list(range(len(fetches)))
        while rest:  # two reads of one partition are made one after the other
            places = {fetches[index].place: index for index in reversed(rest)}
            chosen = sorted(places.values())
            found = reader.read([fetches[index] for index in chosen])
            for index, answer in zip(chosen, found, strict=True):
                answers[index] = answer
            rest = [index for index in rest if answers[index] is None]
        failed = [answer for answer in answers if isinstance(answer, BaseException)]
        if failed:
            self._reading.drop()
        return [
            self._explain(answer) if isinstance(answer, BaseException) else answer
            for answer in answers
            if answer is not None
        ]

    async def bounds(self, stream: str) -> dict[int, Bounds]:
        topic = topic_of(self._prefix, stream)
        places = [(topic, partition) for partition in range(await self._count(stream, fresh=True))]
        found = await self._looking.call(lambda admin: admin.bounds(places))
        return {partition: found[topic, partition] for _, partition in places}

    async def wait(self, stream: str, ends: Mapping[int, int], timeout: float) -> None:
        await self._watch.wait(stream, ends, timeout)

    async def trim(self, stream: str, partition: int, before: int) -> None:
        if 0 <= partition < await self._count(stream, partition + 1):
            self._refuse_another(stream)
            place = (topic_of(self._prefix, stream), partition)
            await self._looking.call(lambda admin: admin.trim(place, before))
            await self._reading.call(lambda reader: reader.trimmed(place, before))

    async def streams(self) -> list[str]:
        await self._ready()
        topics = await self._looking.call(lambda admin: admin.topics())
        return sorted(name for topic in topics if (name := stream_of(self._prefix, topic)) is not None)

    async def life(self, stream: str) -> str:
        await self._ready()
        found = await self._described([stream])
        return found[stream].id if stream in found else ""

    async def _described(self, streams: Sequence[str]) -> dict[str, Topic]:
        """The topics of these streams. Of one that was made again since it was seen first nothing is read any more."""
        names = {topic_of(self._prefix, stream): stream for stream in streams}
        there = await self._looking.call(lambda admin: admin.described([*names]))
        found = {names[topic]: about for topic, about in there.items()}
        self._made_again |= {each for each, about in found.items() if self._ids.setdefault(each, about.id) != about.id}
        return found

    def _refuse_another(self, stream: str) -> None:
        if stream in self._made_again:
            raise PositionsGone(
                f"{self._where}: the topic {topic_of(self._prefix, stream)!r} was deleted and made again while it was "
                "used: what rested in it is gone. Start this process again: it reads the new one from its start"
            )

    async def _count(self, stream: str, enough: int = 1, *, fresh: bool = False) -> int:
        """The number of partitions of a stream; the cluster is asked when fewer than `enough` are known, or `fresh`."""
        await self._ready()
        known = self._counts.get(stream, 0)
        if fresh or known < enough:
            found = (await self._described([stream])).get(stream)
            known = self._counts[stream] = 0 if found is None else found.partitions
        return known

    async def _ends(self, streams: Sequence[str], discover: bool) -> Ends:
        await self._ready()
        names = {topic_of(self._prefix, stream): stream for stream in streams}
        if discover:
            found = await self._described(streams)
            self._counts.update({stream: topic.partitions for stream, topic in found.items()})
        places = [(topic, n) for topic, stream in names.items() for n in range(self._counts.get(stream, 0))]
        ends: Ends = {}
        for (topic, partition), end in (await self._looking.call(lambda admin: admin.ends(places))).items():
            ends.setdefault(names[topic], {})[partition] = end
        return ends

    def _explain(self, error: BaseException, more: str = "") -> Exception:
        return unavailable(self._where + (f" ({more})" if more else ""), error)


def _check(stream: str, records: Sequence[Record]) -> None:
    sizes = (
        len(payload) + len(key) + sum([len(name) + len(value) for name, value in headers])
        for payload, key, headers in records
    )
    if (size := max(sizes)) > MAX_RECORD:
        raise InvalidPayload(
            f"stream {stream!r}: a record has {size} bytes, at most {MAX_RECORD} are allowed; store it elsewhere and "
            "append a reference"
        )


class KafkaLogOptions(KafkaOptions):
    """Options of a log on Kafka: the connection, and `prefix`, which begins the name of every topic, so that
    installations can share a cluster."""

    prefix: str = Field(PREFIX, max_length=100, pattern=r"^[A-Za-z0-9.-]*$")


def build(options: KafkaLogOptions, clock: Clock, fleet: str = "") -> KafkaLog:
    """A log without retention of its own: its user trims it, as the delay service does."""
    return KafkaLog(options, clock, prefix=options.prefix, fleet=fleet)


ENGINE = LogEngine("kafka", KafkaLogOptions, build)
