"""Topics and groups looked at, and topics made and trimmed, with confluent-kafka."""

from __future__ import annotations

import contextlib
import re
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import confluent_kafka
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka import KafkaError as Code
from confluent_kafka import TopicCollection as Topics
from confluent_kafka import admin as _admin

from ..log.log import Bounds
from .client import GroupMember, Place, ReadUpTo, Topic, partitions_of, topic_id
from .confluent import consumer_settings, settings_of
from .options import KafkaOptions

T = TypeVar("T")
#: A partition's leader is not known yet, or another one now.
MOVING = {Code.NOT_LEADER_FOR_PARTITION, Code.LEADER_NOT_AVAILABLE, Code.UNKNOWN_TOPIC_OR_PART}
#: The end of a log that lost records, in the one message in which librdkafka tells it.
TRUNCATED = re.compile(r"log truncation detected.*?(?:broker end offset is (\d+)|$)")
#: What a consumer says in place of a record that says nothing against the position before it.
PASSED = {Code._PARTITION_EOF, Code._AUTO_OFFSET_RESET, Code.OFFSET_OUT_OF_RANGE}

#: The stubs of this module lack much of what its documentation describes.
admin: Any = _admin


class ConfluentTopicAdmin:
    """A TopicAdmin; see client.py."""

    def __init__(self, options: KafkaOptions) -> None:
        self._timeout = options.request_timeout
        self._options = options
        self._isolation = getattr(confluent_kafka.IsolationLevel, options.isolation.upper())
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

    def described(self, topics: Sequence[str]) -> dict[str, Topic]:
        if not topics:
            return {}
        found = {}
        described = self._admin.describe_topics(Topics(list(topics)), request_timeout=self._timeout)
        for topic, future in described.items():
            try:
                answer = self._asked(future.result)
                id = answer.topic_id
                raw = struct.pack(">qq", id.get_most_significant_bits(), id.get_least_significant_bits())
                found[topic] = Topic(len(answer.partitions), topic_id(raw))
            except KafkaException as error:
                if error.args[0].code() != Code.UNKNOWN_TOPIC_OR_PART:
                    raise
        return found

    def cluster(self) -> str:
        return str(self._asked(self._admin.describe_cluster(request_timeout=self._timeout).result).cluster_id or "")

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
            if partitions_of(self, [topic]).get(topic, 0) < partitions:
                more = admin.NewPartitions(topic, partitions)
                self._admin.create_partitions([more], request_timeout=self._timeout)[topic].result()
        limit = time.monotonic() + self._timeout
        while partitions_of(self, [topic]).get(topic, 0) < partitions and time.monotonic() < limit:
            self._admin.poll(0.02)

    def bounds(self, places: Sequence[Place]) -> dict[Place, Bounds]:
        starts, ends = self._offsets(places, admin.OffsetSpec.earliest()), self.ends(places)
        return {place: Bounds(start, max(start, ends[place])) for place, start in starts.items()}

    def ends(self, places: Sequence[Place]) -> dict[Place, int]:
        return self._offsets(places, admin.OffsetSpec.latest())  # with our isolation: what it lets us read ends there

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
            found = self._admin.list_offsets(asked, isolation_level=self._isolation, request_timeout=self._timeout)
            try:
                return {(each.topic, each.partition): self._asked(at.result).offset for each, at in found.items()}
            except KafkaException as error:  # a topic just made, or a leader that just changed, is not known at once
                if error.args[0].code() not in MOVING or time.monotonic() > limit:
                    raise
                self._admin.poll(0.05)

    def cut_off(self, asked: Sequence[ReadUpTo]) -> list[int | None]:
        """Has a consumer begin where each was read up to: the one way in which librdkafka asks for it. It is a new one
        each time, and never pauses: a partition that was paused is fetched unasked."""
        settings = consumer_settings(self._options) | {
            "group.id": "tailrace-readers",
            "enable.partition.eof": True,
            "isolation.level": "read_uncommitted",
            "fetch.message.max.bytes": 1024,
        }
        consumer: Any = Consumer(settings)
        cut: dict[Place, int | None] = {}
        missing = {each.place for each in asked}
        limit = time.monotonic() + self._timeout
        try:
            consumer.assign([TopicPartition(*each.place, each.position, leader_epoch=each.epoch) for each in asked])
            while missing:
                if (message := consumer.poll(0.1)) is not None and (place := _place(message)) in missing:
                    error = message.error()
                    if error is not None and error.code() not in PASSED:
                        raise KafkaException(error)
                    if error is not None and (found := TRUNCATED.search(error.str())) is not None:
                        cut[place] = -1 if found[1] is None else int(found[1])
                    missing.discard(place)
                elif message is None and time.monotonic() > limit:
                    raise TimeoutError(f"no word of {len(missing)} partitions came within {self._timeout:.0f} s")
        finally:
            consumer.close()
        return [cut.get(each.place) for each in asked]

    def trim(self, place: Place, before: int) -> None:
        bounds = self.bounds([place])[place]
        if before > bounds.start:
            upto = TopicPartition(*place, min(before, bounds.end))
            for future in self._admin.delete_records([upto], request_timeout=self._timeout).values():
                future.result()

    def close(self) -> None:
        with contextlib.suppress(KafkaException):
            self._admin.poll(0)


def _place(message: Any) -> Place:
    return message.topic(), message.partition()
