"""Topics and groups looked at, and topics made and trimmed, with kafka-python; and this client library as a whole."""

from __future__ import annotations

import contextlib
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.admin import KafkaAdminClient, NewTopic
from kafka.errors import IncompatibleBrokerVersion, LeaderNotAvailableError, TopicAlreadyExistsError, for_code
from kafka.errors import UnknownTopicOrPartitionError as UnknownTopic
from kafka.protocol.consumer import OffsetForLeaderEpochRequest

from ..log.log import Bounds
from .client import GroupMember, Place, ReadUpTo, Topic, partitions_of, topic_id
from .options import KafkaOptions
from .python import PythonReader, PythonWriter, consumer_settings, made, offsets, settings_of

UNKNOWN_TOPIC = 3
_EpochsOfTopic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
UNNAMED = GroupMember("a consumer of the new group protocol", "an address that kafka-python cannot ask for")
NO_ID = "0" * 32


class PythonTopicAdmin:
    """A TopicAdmin; see client.py."""

    def __init__(self, options: KafkaOptions) -> None:
        self._timeout = int(options.request_timeout * 1000)
        self._admin = made(KafkaAdminClient, **settings_of(options))
        self._consumer = made(KafkaConsumer, group_id=None, **consumer_settings(options))

    def topics(self) -> list[str]:
        return [str(name) for name in self._admin.list_topics()]

    def described(self, topics: Sequence[str]) -> dict[str, Topic]:
        found = {}
        for topic in self._admin.describe_topics(list(topics)) if topics else ():
            if topic["error_code"] == 0:
                found[topic["name"]] = Topic(
                    len(topic["partitions"]), topic_id(uuid.UUID(topic.get("topic_id") or NO_ID).bytes)
                )
            elif topic["error_code"] != UNKNOWN_TOPIC:
                raise _refusal(topic["error_code"], topic["name"])
        return found

    def cluster(self) -> str:
        try:
            return str(self._admin.describe_cluster()["cluster_id"] or "")
        except IncompatibleBrokerVersion:
            return ""

    def members(self, group: str) -> list[GroupMember]:
        found = self._admin.describe_groups([group])[group]
        members = [GroupMember(str(one["client_id"]), str(one["client_host"])) for one in found.get("members") or ()]
        return members or self._of_another_protocol(group)

    def _of_another_protocol(self, group: str) -> list[GroupMember]:
        """A member that stands for those of a group of the new protocol (KIP-848). To this client's question such a
        group is dead, and has no members; a member of the old protocol would be given a part of its partitions."""
        where = self._admin._manager.run(self._admin._find_coordinator_ids, [group])[group]
        for one in self._admin.list_groups(broker_ids=[where]):
            if one["group_id"] == group and (one.get("group_type") or "classic").lower() != "classic":
                return [] if one["group_state"] in ("Empty", "Dead") else [UNNAMED]
        return []

    def create(self, topic: str, partitions: int, settings: Mapping[str, str]) -> None:
        try:
            self._admin.create_topics(
                [NewTopic(topic, partitions, -1, topic_configs=dict(settings))], timeout_ms=self._timeout
            )
        except TopicAlreadyExistsError:
            if partitions_of(self, [topic]).get(topic, 0) < partitions:
                self._admin.create_partitions({topic: partitions}, timeout_ms=self._timeout)
        limit = time.monotonic() + self._timeout / 1000
        while partitions_of(self, [topic]).get(topic, 0) < partitions and time.monotonic() < limit:
            _pause(0.02)
        self._admin.wait_for_topics([topic], timeout_ms=self._timeout)

    def bounds(self, places: Sequence[Place]) -> dict[Place, Bounds]:
        starts = self._ask(self._consumer.beginning_offsets, places)
        ends = self.ends(places)
        return {place: Bounds(start, max(start, ends[place])) for place, start in starts.items()}

    def ends(self, places: Sequence[Place]) -> dict[Place, int]:
        return self._ask(self._consumer.end_offsets, places)

    def _ask(self, method: Callable[..., Any], places: Sequence[Place]) -> dict[Place, int]:
        if not places:
            return {}
        found = offsets(self._consumer, method, [TopicPartition(*place) for place in places], self._timeout / 1000)
        return {(each.topic, each.partition): int(position) for each, position in found.items()}

    def at_time(self, places: Sequence[Place], time: int) -> dict[Place, int]:
        ends = self.ends(places)
        times = {TopicPartition(*place): time for place in places}
        found = offsets(self._consumer, self._consumer.offsets_for_times, times, self._timeout / 1000)
        late = {(each.topic, each.partition): at.offset for each, at in found.items() if at is not None}
        return ends | late

    def cut_off(self, asked: Sequence[ReadUpTo]) -> list[int | None]:
        leaders: dict[Place, int] = {}
        for topic in self._admin.describe_topics(sorted({each.place[0] for each in asked})):
            leaders |= {(topic["name"], one["partition_index"]): one["leader_id"] for one in topic["partitions"]}
        ends: dict[Place, tuple[int, int]] = {}
        for leader in {leaders.get(each.place, -1) for each in asked}:
            if leader < 0:
                raise LeaderNotAvailableError("a partition has no leader now")
            led = [each for each in asked if leaders[each.place] == leader]
            try:
                ends |= self._admin._manager.run(self._ends_of_epochs, leader, led)
            except IncompatibleBrokerVersion:
                return [None] * len(asked)
        found = [(each.position, *ends[each.place]) for each in asked]
        return [-1 if epoch < 0 or end < 0 else end if end < at else None for at, epoch, end in found]

    async def _ends_of_epochs(self, leader: int, asked: Sequence[ReadUpTo]) -> dict[Place, tuple[int, int]]:
        """The last leader epoch of each partition that its leader knows up to the one asked for, and its end."""
        topics = [
            _EpochsOfTopic(
                topic=topic,
                partitions=[
                    _EpochsOfTopic.OffsetForLeaderPartition(partition=each.place[1], leader_epoch=each.epoch)
                    for each in asked
                    if each.place[0] == topic
                ],
            )
            for topic in {each.place[0] for each in asked}
        ]
        answer = await self._admin._manager.send(
            OffsetForLeaderEpochRequest(replica_id=-1, topics=topics), node_id=leader
        )
        found = {}
        for topic in answer.topics:
            for one in topic.partitions:
                if one.error_code:
                    raise _refusal(one.error_code, topic.topic)
                found[topic.topic, one.partition] = (one.leader_epoch, one.end_offset)
        return found

    def trim(self, place: Place, before: int) -> None:
        try:
            bounds = self.bounds([place])[place]
            if before > bounds.start:
                self._admin.delete_records({TopicPartition(*place): min(before, bounds.end)}, timeout_ms=self._timeout)
        except UnknownTopic:
            return

    def close(self) -> None:
        for each in (self._admin, self._consumer):
            with contextlib.suppress(Exception):
                each.close()


def _refusal(code: int, topic: str) -> Exception:
    return for_code(code)(f"topic {topic!r}")  # type: ignore[no-any-return]


def _pause(seconds: float) -> None:
    """Waits. It is called in the thread of this client, where nothing else waits meanwhile."""
    threading.Event().wait(seconds)


class PythonClient:
    """The client library kafka-python."""

    def writer(self, options: KafkaOptions) -> PythonWriter:
        return PythonWriter(options)

    def reader(self, options: KafkaOptions) -> PythonReader:
        return PythonReader(options)

    def topic_admin(self, options: KafkaOptions) -> PythonTopicAdmin:
        return PythonTopicAdmin(options)
