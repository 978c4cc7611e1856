"""Reading at given positions with confluent-kafka; and this client library as a whole."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka import KafkaError as Code

from ..log.log import Records
from .client import Fetch, Place
from .confluent import ConfluentWriter, columns_of, consumer_settings, taken
from .confluent_admin import ConfluentTopicAdmin
from .options import KafkaOptions


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


class ConfluentClient:
    """The client library confluent-kafka."""

    def writer(self, options: KafkaOptions) -> ConfluentWriter:
        return ConfluentWriter(options)

    def reader(self, options: KafkaOptions) -> ConfluentReader:
        return ConfluentReader(options)

    def topic_admin(self, options: KafkaOptions) -> ConfluentTopicAdmin:
        return ConfluentTopicAdmin(options)
