"""Commits of a Kafka group, as its coordinator wrote them down."""

from __future__ import annotations

import asyncio
import struct
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

from kafka import KafkaConsumer, TopicPartition

from .known_too_soon import JournaledProgress
from .looks import Ask

#: The topic in which coordinators write the commits of groups.
_COMMITS = "__consumer_offsets"
#: Versions of keys that belong to commits. Later ones belong to other facts about a group.
_OF_COMMITS = frozenset({0, 1})
#: Milliseconds that one question waits for the brokers.
_WAIT = 100


class Commit(NamedTuple):
    """A commit: below `offset` all of the partition is done."""

    group: str
    topic: str
    partition: int
    offset: int


def commit_of(key: bytes, value: bytes | None) -> Commit | None:
    """The commit in a record of `__consumer_offsets`; None: the record tells something else, or that offsets are
    forgotten. Its form: Kafka's OffsetCommitKey and OffsetCommitValue, of which each version begins alike."""
    version, length = struct.unpack_from(">hh", key)
    if value is None or version not in _OF_COMMITS:
        return None
    group, at = key[4 : 4 + length].decode(), 4 + length
    (length,) = struct.unpack_from(">h", key, at)
    topic = key[at + 2 : at + 2 + length].decode()
    (partition,) = struct.unpack_from(">i", key, at + 2 + length)
    (offset,) = struct.unpack_from(">q", value, 2)
    return Commit(group, topic, partition, offset)


class GroupCommits:
    """Reads on in `__consumer_offsets`. `place` has a `{partition}`.

    An answer to OffsetFetch would tell less: it has the latest commit alone, and that of the latest which all replicas
    are known to have; a coordinator that has just begun knows this of fewer than the one before it did."""

    def __init__(self, bootstrap: str, group: str, topic: str, place: str) -> None:
        self._bootstrap = bootstrap
        self._of = group, topic
        self._place = place
        self._next: dict[TopicPartition, int] = {}

    @asynccontextmanager
    async def asked(self) -> AsyncIterator[Ask[JournaledProgress]]:
        """Opens a connection, which goes on where the one before it ended. An answer has every commit since, in
        order."""
        consumer = await asyncio.to_thread(
            KafkaConsumer,
            bootstrap_servers=self._bootstrap,
            request_timeout_ms=5000,
            group_id=None,
            enable_auto_commit=False,
            auto_offset_reset="earliest",
        )

        async def ask() -> Sequence[tuple[str, JournaledProgress]]:
            return await asyncio.to_thread(self._read, consumer)

        try:
            yield ask
        finally:
            # kafka-python waits for its own thread without a bound, and this is the run's event loop.
            threading.Thread(target=consumer.close, name="close-consumer", daemon=True).start()

    def _read(self, consumer: KafkaConsumer) -> list[tuple[str, JournaledProgress]]:
        if not consumer.assignment():
            places = [TopicPartition(_COMMITS, each) for each in consumer.partitions_for_topic(_COMMITS) or ()]
            consumer.assign(places)
            for place in places:
                consumer.seek(place, self._next.get(place, 0))
        found, following = [], dict(self._next)
        for place, records in consumer.poll(_WAIT).items():
            for record in records:
                following[place] = record.offset + 1
                commit = commit_of(record.key, record.value)
                if commit is not None and (commit.group, commit.topic) == self._of:
                    where = self._place.format(partition=commit.partition)
                    found.append((where, JournaledProgress(commit.offset)))
        self._next = following  # only now: after a failure half-way the next connection reads the records again
        return found
