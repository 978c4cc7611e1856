"""The Kafka client on confluent-kafka (librdkafka), faster than kafka-python: the extra kafka-native."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka import KafkaError as Code
from confluent_kafka import TopicCollection as Topics
from confluent_kafka import admin as _admin

from ..log.log import Bounds, Records
from .client import MAX_MESSAGE, Append, Fetch, GroupMember, Place
from .options import KafkaOptions
from .records import UNREADABLE, headers_of, text_of, to_kafka, with_tombstone

T = TypeVar("T")
#: Milliseconds that the broker keeps a request for records that are not there yet.
FETCH_WAIT = 100

#: A partition's leader is not known yet, or another one now.
MOVING = {Code.NOT_LEADER_FOR_PARTITION, Code.LEADER_NOT_AVAILABLE, Code.UNKNOWN_TOPIC_OR_PART}

#: The stubs of this module lack much of what its documentation describes.
admin: Any = _admin


def settings_of(options: KafkaOptions) -> dict[str, Any]:
    """The settings that consumers, producers and admin clients have in common."""
    options.check_files()
    settings: dict[str, Any] = {
        "bootstrap.servers": ",".join(options.bootstrap_servers),
        "client.id": "tailrace",
        "security.protocol": options.security,
        "socket.timeout.ms": int(options.request_timeout * 1000),
        "reconnect.backoff.max.ms": 1000,
        "topic.metadata.refresh.interval.ms": 60_000,
        "topic.metadata.refresh.fast.interval.ms": 50,
        "topic.metadata.propagation.max.ms": 1000,
        "log_level": 2,  # one cause is many lines there, again and again while a broker is away
    }
    if options.security.startswith("sasl"):
        settings["sasl.mechanism"] = options.mechanism
        settings["sasl.username"] = options.username
        settings["sasl.password"] = options.password.get_secret_value()
    if options.security.endswith("ssl"):
        files = {
            "ssl.ca.location": options.ca,
            "ssl.certificate.location": options.certificate,
            "ssl.key.location": options.key,
            "ssl.key.password": options.key_password.get_secret_value(),
        }
        settings |= {name: value for name, value in files.items() if value}
        settings["ssl.endpoint.identification.algorithm"] = "https" if options.check_hostname else "none"
    return settings


def consumer_settings(options: KafkaOptions) -> dict[str, Any]:
    """The settings of every consumer of ours: it commits no offset and resets no position by itself."""
    return settings_of(options) | {
        "enable.auto.commit": False,
        "enable.auto.offset.store": False,
        "auto.offset.reset": "error",
        "fetch.wait.max.ms": FETCH_WAIT,
        "fetch.message.max.bytes": 2 << 20,
        "queued.max.messages.kbytes": 16 << 10,
        "queued.min.messages": 16384,
        "fetch.queue.backoff.ms": 10,  # by default a partition whose queue was full waits a second
        "isolation.level": options.isolation,
    }


def taken(consumer: Any, most: int, seconds: float) -> list[Any]:
    """The messages that have arrived, at most `most`. Waits up to `seconds` for the first one only, while `consume`
    alone would wait for all of them."""
    first = consumer.poll(seconds)
    return [] if first is None else [first, *consumer.consume(most - 1, 0)] if most > 1 else [first]


def columns_of(messages: Sequence[Any]) -> Records:
    """Messages of one partition as columns."""
    cache: dict[tuple[object, ...], Any] = {}
    return Records(
        [message.offset() for message in messages],
        [message.timestamp()[1] / 1000 for message in messages],
        [text_of(message.key()) for message in messages],
        [with_tombstone(headers_of(_headers(message), cache), message.value()) for message in messages],
        [message.value() or b"" for message in messages],
    )


def _headers(message: Any) -> Any:
    """The headers of a message. librdkafka's Python interface gives none of them where a name is not UTF-8: then one
    header says so and stands for all, since a record that cannot be read would stop its partition."""
    try:
        return message.headers()
    except UnicodeDecodeError:
        return [(UNREADABLE, b"1")]


class ConfluentWriter:
    """A Writer; see client.py."""

    def __init__(self, options: KafkaOptions) -> None:
        self._timeout = options.request_timeout
        self._producer = Producer(
            settings_of(options)
            | {
                "acks": "all",
                "enable.idempotence": True,
                "delivery.timeout.ms": int(options.request_timeout * 1000),
                "linger.ms": 0,
                "message.max.bytes": MAX_MESSAGE,
                "batch.size": 1 << 20,
                "queue.buffering.max.kbytes": 256 << 10,
                "queue.buffering.max.messages": 1_000_000,
            }
        )

    def append(self, appends: Sequence[Append]) -> list[int | BaseException]:
        found = [self._send(append) for append in appends]
        self._producer.flush(self._timeout + 1)
        return [_first(append, offsets) for append, offsets in zip(appends, found, strict=True)]

    def _send(self, append: Append) -> list[int | BaseException]:
        """Hands the records to the producer; returns a list that their offsets, or errors, will be added to."""
        topic, partition = append.place
        offsets: list[int | BaseException] = []
        heard = partial(_heard, offsets)
        for record in append.records:
            key, headers = to_kafka(record.key, record.headers)
            while True:
                try:
                    self._producer.produce(
                        topic,
                        record.payload,
                        key,
                        partition,
                        on_delivery=heard,
                        timestamp=append.time,
                        headers=list(headers),
                    )
                except BufferError:
                    self._producer.poll(0.1)  # its queue is full: what goes out makes room
                    continue
                except KafkaException as error:
                    offsets.append(error)
                break
        self._producer.poll(0)
        return offsets

    def close(self) -> None:
        self._producer.purge()


def _heard(offsets: list[int | BaseException], error: Any, message: Any) -> None:
    offsets.append(message.offset() if error is None else KafkaException(error))


def _first(append: Append, offsets: list[int | BaseException]) -> int | BaseException:
    for each in offsets:
        if isinstance(each, BaseException):
            return each
    if len(offsets) < len(append.records):
        return TimeoutError(f"{len(append.records) - len(offsets)} records were not acknowledged in time")
    return min(offset for offset in offsets if isinstance(offset, int))


class ConfluentReader:
    """A Reader; see client.py. Invariant: `_next` has exactly the partitions that are assigned, each with the lowest
    position that its next message can have."""

    def __init__(self, options: KafkaOptions) -> None:
        self._timeout = options.request_timeout
        self._topic_admin = ConfluentTopicAdmin(options)
        group = {"group.id": "tailrace-readers", "enable.partition.eof": True}  # never joined, never committed to
        self._consumer: Any = Consumer(consumer_settings(options) | group)
        self._next: dict[Place, int] = {}
        self._ends: dict[Place, int] = {}

    def read(self, fetches: Sequence[Fetch]) -> list[Records | BaseException]:
        wanted = {fetch.place: fetch for fetch in fetches}
        found: dict[Place, list[Any]] = {}
        try:
            again: Mapping[Place, Fetch] = wanted
            for _ in range(2):
                unsure = [place for place, fetch in again.items() if fetch.position >= self._ends.get(place, 0)]
                self._ends.update(self._topic_admin.ends(unsure))
                there = {place: fetch for place, fetch in again.items() if fetch.position < self._ends[place]}
                found |= self._consume(there) if there else {}
                again = {place: fetch for place, fetch in there.items() if place not in found}
                for place in again:  # all trimmed away up to the end that was known: there may be another one now
                    del self._ends[place]
        except Exception as error:
            return [error] * len(fetches)
        return [columns_of(found.get(fetch.place, [])) for fetch in fetches]

    def _consume(self, there: Mapping[Place, Fetch]) -> dict[Place, list[Any]]:
        positions = {place: fetch.position for place, fetch in there.items()}
        if positions != self._next:
            self._assign(positions)
        found: dict[Place, list[Any]] = {}
        missing = set(there)
        limit = time.monotonic() + self._timeout
        while missing:
            for message in taken(self._consumer, max(fetch.limit for fetch in there.values()), 0.1):
                place = (message.topic(), message.partition())
                error = message.error()
                if error is None:
                    found.setdefault(place, []).append(message)
                    missing.discard(place)
                elif error.code() == Code._PARTITION_EOF:
                    if message.offset() >= self._ends[place]:  # else it was an end before this read
                        self._next[place] = message.offset()
                        missing.discard(place)
                elif error.code() in (Code._AUTO_OFFSET_RESET, Code.OFFSET_OUT_OF_RANGE):
                    starts = {each: bounds.start for each, bounds in self._topic_admin.bounds(list(there)).items()}
                    found.clear()
                    self._assign({each: max(starts[each], at) for each, at in positions.items()})
                    missing = {each for each in there if max(starts[each], positions[each]) < self._ends[each]}
                    break
                else:
                    raise KafkaException(error)
            if missing and time.monotonic() > limit:
                raise TimeoutError(f"no records of {len(missing)} partitions came within {self._timeout:.0f} s")
        for place, messages in found.items():
            kept = _cut(there[place], messages)
            # Messages that were cut off are fetched again: the next read finds another position than `_next`.
            self._next[place] = messages[-1].offset() + 1
            found[place] = kept
        return found

    def _assign(self, positions: Mapping[Place, int]) -> None:
        self._consumer.assign([TopicPartition(*place, at) for place, at in positions.items()])
        self._next = dict(positions)

    def trimmed(self, place: Place, before: int) -> None:
        if self._next.get(place, before) < before:
            self._ends.pop(place, None)
            self._next = {}  # whatever is assigned is assigned anew

    def close(self) -> None:
        self._topic_admin.close()
        self._consumer.close()


def _cut(fetch: Fetch, messages: list[Any]) -> list[Any]:
    """The first messages, no more than the request asked for."""
    count = min(len(messages), fetch.limit)
    size = 0
    for index, message in enumerate(messages[:count]):
        size += len(message)
        if size > fetch.max_bytes and index:
            return messages[:index]
    return messages[:count]


class ConfluentTopicAdmin:
    """A TopicAdmin; see client.py."""

    def __init__(self, options: KafkaOptions) -> None:
        self._timeout = options.request_timeout
        self._options = options
        self._why: Any = None
        self._admin = admin.AdminClient(settings_of(options) | {"error_cb": self._heard})

    def _heard(self, error: Any) -> None:
        """Keeps the error that best explains why the client cannot connect. "All brokers are down" is a consequence
        only. Of several addresses of one host, one that refuses TLS or the user explains more than one at which nothing
        listens."""
        known = None if self._why is None else self._why.code()
        if known is None or (error.code() != Code._ALL_BROKERS_DOWN and known not in (Code._SSL, Code._AUTHENTICATION)):
            self._why = error

    def _asked(self, call: Callable[[], T]) -> T:
        """The answer of a call. An error that only says that time ran out is replaced by its reason."""
        self._why = None
        try:
            return call()
        except KafkaException as error:
            self._admin.poll(0)
            if self._why is not None and error.args[0].code() in (Code._TIMED_OUT, Code._TRANSPORT):
                if self._why.code() == Code._ALL_BROKERS_DOWN and self._options.somebody_listens():
                    raise ConnectionError("the port accepts a connection, and hangs up") from error
                raise KafkaException(self._why) from error
            raise

    def topics(self) -> list[str]:
        return list(self._asked(lambda: self._admin.list_topics(timeout=self._timeout)).topics)

    def partitions(self, topics: Sequence[str]) -> dict[str, int]:
        if not topics:
            return {}
        found = {}
        described = self._admin.describe_topics(Topics(list(topics)), request_timeout=self._timeout)
        for topic, future in described.items():
            try:
                found[topic] = len(self._asked(future.result).partitions)
            except KafkaException as error:
                if error.args[0].code() != Code.UNKNOWN_TOPIC_OR_PART:
                    raise
        return found

    def members(self, group: str) -> list[GroupMember]:
        (answer,) = self._admin.describe_consumer_groups([group], request_timeout=self._timeout).values()
        try:
            return [GroupMember(each.client_id, each.host) for each in answer.result().members]
        except KafkaException:
            return []

    def create(self, topic: str, partitions: int, settings: Mapping[str, str]) -> None:
        fresh = admin.NewTopic(topic, partitions, -1, config=dict(settings))
        try:
            self._admin.create_topics([fresh], request_timeout=self._timeout)[topic].result()
        except KafkaException as error:
            if error.args[0].code() != Code.TOPIC_ALREADY_EXISTS:
                raise
            if self.partitions([topic]).get(topic, 0) < partitions:
                more = admin.NewPartitions(topic, partitions)
                self._admin.create_partitions([more], request_timeout=self._timeout)[topic].result()
        limit = time.monotonic() + self._timeout
        while self.partitions([topic]).get(topic, 0) < partitions and time.monotonic() < limit:
            self._admin.poll(0.02)

    def bounds(self, places: Sequence[Place]) -> dict[Place, Bounds]:
        starts, ends = self._offsets(places, admin.OffsetSpec.earliest()), self.ends(places)
        return {place: Bounds(start, max(start, ends[place])) for place, start in starts.items()}

    def ends(self, places: Sequence[Place]) -> dict[Place, int]:
        return self._offsets(places, admin.OffsetSpec.latest())

    def at_time(self, places: Sequence[Place], time: int) -> dict[Place, int]:
        ends = self.ends(places)
        found = self._offsets(places, admin.OffsetSpec.for_timestamp(time))
        return {place: at if at >= 0 else ends[place] for place, at in found.items()}

    def _offsets(self, places: Sequence[Place], which: Any) -> dict[Place, int]:
        if not places:
            return {}
        asked = {TopicPartition(*place): which for place in places}
        limit = time.monotonic() + self._timeout
        while True:
            found = self._admin.list_offsets(asked, request_timeout=self._timeout)
            try:
                return {(each.topic, each.partition): self._asked(at.result).offset for each, at in found.items()}
            except KafkaException as error:  # a topic just made, or a leader that just changed, is not known at once
                if error.args[0].code() not in MOVING or time.monotonic() > limit:
                    raise
                self._admin.poll(0.05)

    def trim(self, place: Place, before: int) -> None:
        bounds = self.bounds([place])[place]
        if before > bounds.start:
            upto = TopicPartition(*place, min(before, bounds.end))
            for future in self._admin.delete_records([upto], request_timeout=self._timeout).values():
                future.result()

    def close(self) -> None:
        with contextlib.suppress(KafkaException):
            self._admin.poll(0)


class ConfluentClient:
    """The client library confluent-kafka."""

    def writer(self, options: KafkaOptions) -> ConfluentWriter:
        return ConfluentWriter(options)

    def reader(self, options: KafkaOptions) -> ConfluentReader:
        return ConfluentReader(options)

    def topic_admin(self, options: KafkaOptions) -> ConfluentTopicAdmin:
        return ConfluentTopicAdmin(options)
