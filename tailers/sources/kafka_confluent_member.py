"""A member of a consumer group on confluent-kafka: cooperative, or static when it is named."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka import KafkaError as Code

from ...stores.kafka.client import Place
from ...stores.kafka.confluent import columns_of, consumer_settings, taken
from ...stores.log.log import Records
from .kafka_member import (
    DISCOVER_EVERY,
    POLL_BYTES,
    POLL_RECORDS,
    Committed,
    EpochsRead,
    MemberOptions,
    OutOfRange,
    Polled,
)

#: Errors after which librdkafka goes on by itself; a lack of progress meanwhile is seen elsewhere.
PASSING = {Code._ALL_BROKERS_DOWN, Code._TRANSPORT, Code._MAX_POLL_EXCEEDED, Code._RESOLVE}
#: Seconds for which all brokers may be away before it is an error.
DOWN_FOR = 5.0


class ConfluentMember:
    """Implements `Member` on confluent-kafka; see kafka_member.py."""

    def __init__(self, options: MemberOptions, name: str) -> None:
        self._timeout = options.request_timeout
        self._wrong: dict[Place, int] = {}  # partitions that were out of range in a poll that brought records too
        self._epochs = EpochsRead()
        settings = consumer_settings(options) | {
            "client.id": name,
            "group.id": options.group,
            "partition.assignment.strategy": "cooperative-sticky",
            "session.timeout.ms": int(options.session_timeout * 1000),
            "heartbeat.interval.ms": min(3000, int(options.session_timeout * 1000 / 4)),
            "max.poll.interval.ms": int(max(options.max_poll_interval, options.session_timeout) * 1000),
            "topic.metadata.refresh.interval.ms": int(DISCOVER_EVERY * 1000),
            "fetch.message.max.bytes": POLL_BYTES,
            "enable.partition.eof": True,
            "error_cb": self._failed,
            "on_commit": self._on_commit,
        }
        if options.group_instance_id:
            settings["group.instance.id"] = options.group_instance_id
        self._fresh: set[Place] = set()
        self._places: set[Place] = set()
        self._failure: Any = None
        self._heard: Callable[[BaseException | None], None] | None = None  # called after the commit that is under way
        self._down_since = 0.0
        self._consumer: Any = Consumer(settings)
        self._consumer.subscribe(
            list(options.read), on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_revoke
        )

    def _failed(self, error: Any) -> None:
        self._failure = error

    def _on_assign(self, consumer: Any, assigned: Any) -> None:
        places = {(each.topic, each.partition) for each in assigned}
        parts = [TopicPartition(*place, 0) for place in places]
        consumer.incremental_assign(parts)
        consumer.pause(parts)
        self._places |= places
        self._fresh |= places

    def _on_revoke(self, consumer: Any, revoked: Any) -> None:
        self._places -= {(each.topic, each.partition) for each in revoked}
        consumer.incremental_unassign(revoked)

    def poll(self, seconds: float) -> list[Polled]:
        messages: dict[Place, list[Any]] = {}
        through: dict[Place, int] = {}
        self._refuse()
        for message in taken(self._consumer, POLL_RECORDS, seconds):
            place = (message.topic(), message.partition())
            error = message.error()
            if error is None:
                messages.setdefault(place, []).append(message)
            elif error.code() == Code._PARTITION_EOF:
                through[place] = message.offset()
            elif error.code() in (Code._AUTO_OFFSET_RESET, Code.OFFSET_OUT_OF_RANGE):
                self._wrong[place] = message.offset() or 0  # none where the log was cut off
            elif error.code() not in PASSING:
                raise KafkaException(error)
        self._look_down(bool(messages))
        if not messages:
            self._refuse()  # else the next poll does, since the library tells it once, when the records were taken
        polled = []
        for place, given in messages.items():
            columns = columns_of(given)
            epochs = self._epochs.begun(place, given, _epoch_of, columns.positions)
            values = [message.value() is not None for message in given]
            end = max(given[-1].offset() + 1, through.pop(place, 0))
            polled.append(Polled(place, columns, values, end, epochs))
        return polled + [Polled(place, Records([], [], [], [], []), [], at) for place, at in through.items()]

    def _refuse(self) -> None:
        """Raises what the library told of partitions, each once."""
        if self._wrong:
            wrong, self._wrong = self._wrong, {}
            raise OutOfRange(wrong)

    def _look_down(self, got: bool) -> None:
        """Raises the error that the library's own thread reported, when it is more than a passing break. `got`: records
        came."""
        error, self._failure = self._failure, None
        if got:
            self._down_since = 0.0
        elif error is not None and error.code() not in PASSING:
            raise KafkaException(error)
        elif error is not None and error.code() == Code._ALL_BROKERS_DOWN:
            self._down_since = self._down_since or time.monotonic()
            if time.monotonic() - self._down_since > DOWN_FOR:
                raise KafkaException(error)

    def assigned(self) -> tuple[set[Place], set[Place]]:
        fresh, self._fresh = self._fresh & self._places, set()
        return set(self._places), fresh

    def seek(self, place: Place, position: int) -> None:
        self._consumer.incremental_unassign([TopicPartition(*place)])
        self._consumer.incremental_assign([TopicPartition(*place, position)])
        self._epochs.forget(place)

    def pause(self, places: Collection[Place]) -> None:
        self._consumer.pause(self._held(places))

    def resume(self, places: Collection[Place]) -> None:
        self._consumer.resume(self._held(places))

    def _held(self, places: Collection[Place]) -> list[Any]:
        return [TopicPartition(*place) for place in places if place in self._places]

    def commit(self, positions: Mapping[Place, Committed], heard: Callable[[BaseException | None], None]) -> None:
        offsets = [TopicPartition(*place, at.position, at.words) for place, at in positions.items()]
        self._consumer.commit(offsets=offsets, asynchronous=True)
        self._heard = heard

    def _on_commit(self, error: Any, offsets: Any) -> None:
        heard, self._heard = self._heard, None
        wrong = error or next((each.error for each in offsets if each.error is not None), None)
        if heard is not None:
            heard(None if wrong is None else KafkaException(wrong))

    def committed(self, place: Place) -> Committed | None:
        (found,) = self._consumer.committed([TopicPartition(*place)], timeout=self._timeout)
        return None if found.offset < 0 else Committed(int(found.offset), found.metadata or "")

    def close(self) -> None:
        self._consumer.close()


def _epoch_of(message: Any) -> int:
    epoch = message.leader_epoch()
    return -1 if epoch is None else int(epoch)
