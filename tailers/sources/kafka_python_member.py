"""A member of a consumer group on kafka-python: cooperative, or static when it is named."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from kafka import ConsumerRebalanceListener, KafkaConsumer, OffsetAndMetadata, TopicPartition
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.errors import KafkaTimeoutError, LogTruncationError, OffsetOutOfRangeError, UnknownTopicOrPartitionError
from kafka.structs import MemberState

from ...stores.kafka.client import Place
from ...stores.kafka.python import columns_of, consumer_settings, made, poll
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
    TopicMadeAgain,
)

#: Milliseconds for which one poll waits for the end of a rebalance; nothing is fetched meanwhile.
JOIN_WITHIN = 1000
#: Milliseconds for leaving the group.
LEAVE_WITHIN = 2000


class _Rebalanced(ConsumerRebalanceListener):  # type: ignore[misc]
    """The listener of rebalances, called in the client's own thread before anything of a new partition is fetched."""

    def __init__(self, consumer: Any) -> None:
        self.fresh: set[Place] = set()
        self._consumer = consumer

    def on_partitions_assigned(self, assigned: Any) -> None:
        for each in assigned:
            self._consumer.seek(each, 0)  # a position, so that none is looked up; nothing is fetched from it
            self._consumer.pause(each)
        self.fresh |= {(each.topic, each.partition) for each in assigned}

    def on_partitions_revoked(self, revoked: Any) -> None:
        """Does nothing: the ownership rows say which process may read, so there is nothing to wait for here."""


def skip_known_coordinator(coordinator: Any) -> None:
    """Skips the check of the group's coordinator at each poll while it is known and connected. For the check
    kafka-python asks its other thread and waits: two turns of the threads before the next records are asked for."""
    asked = coordinator.ensure_coordinator_ready

    def ready(timeout_ms: float | None = None) -> Any:
        node = coordinator.coordinator_id
        return (node is not None and coordinator._client.connected(node)) or asked(timeout_ms)

    coordinator.ensure_coordinator_ready = ready


class PythonMember:
    """Implements `Member` on kafka-python; see kafka_member.py."""

    def __init__(self, options: MemberOptions, name: str) -> None:
        reading = {"max_poll_records": POLL_RECORDS, "max_partition_fetch_bytes": POLL_BYTES, "client_id": name}
        self._consumer = made(
            KafkaConsumer,
            **consumer_settings(options) | reading,
            group_id=options.group,
            group_instance_id=options.group_instance_id or None,
            partition_assignment_strategy=[CooperativeStickyAssignor()],
            session_timeout_ms=int(options.session_timeout * 1000),
            heartbeat_interval_ms=min(3000, int(options.session_timeout * 1000 / 4)),
            max_poll_interval_ms=int(options.max_poll_interval * 1000),
            metadata_max_age_ms=int(DISCOVER_EVERY * 1000),
        )
        skip_known_coordinator(self._consumer._coordinator)
        self._topics = options.read
        # A leader that does not know a topic yet assigns nothing of it, and finds out late.
        unknown = [topic for topic in options.read if not self._consumer.partitions_for_topic(topic)]
        if unknown:
            self.close()
            raise UnknownTopicOrPartitionError(unknown[0])
        self._rebalanced = _Rebalanced(self._consumer)
        self._consumer.subscribe(topics=list(options.read), listener=self._rebalanced)
        # Asked again now that it subscribes: a member that joins before it has heard of its own topics begins another
        # rebalance at once, and may not come out of it.
        self._consumer.topics()
        self._ids: dict[str, Any] = {}  # of topics, as they were first
        self._epochs = EpochsRead()
        self._next: dict[Place, int] = {}  # the next position of each partition that is read
        self._patience = 2 * options.session_timeout
        self._stable_at = time.monotonic()

    def poll(self, seconds: float) -> list[Polled]:
        try:
            # A join that ends between two polls is begun anew by kafka-python, so short polls may never end one.
            if self._consumer.group_metadata().state == MemberState.STABLE:
                self._stable_at = time.monotonic()
            else:
                self._consumer._coordinator.poll(timeout_ms=JOIN_WITHIN)
                self._is_joining()
            found = poll(self._consumer, seconds)
        except OffsetOutOfRangeError as error:
            raise OutOfRange({(each.topic, each.partition): at for each, at in error.args[0].items()}) from error
        except LogTruncationError as error:
            places = [(each.topic, each.partition) for each in error.divergent_offsets]
            raise OutOfRange({place: self._next.get(place, 0) for place in places}) from error
        self._same_topics()
        polled = []
        for each, records in found.items():
            place = (each.topic, each.partition)
            through = self._next[place] = records[-1].offset + 1
            columns = columns_of(records)
            epochs = self._epochs.begun(place, records, _epoch_of, columns.positions)
            polled.append(Polled(place, columns, [r.value is not None for r in records], through, epochs))
        return polled + self._passed()

    def _same_topics(self) -> None:
        """Raises TopicMadeAgain when the client has heard of another id of a topic, before it gives records of it."""
        cluster = self._consumer._client.cluster
        for topic in self._topics:
            if (id := cluster.topic_id(topic)) is not None and self._ids.setdefault(topic, id) != id:
                raise TopicMadeAgain(f"the topic {topic!r} was deleted and made again")

    def _is_joining(self) -> None:
        """Raises KafkaTimeoutError when a rebalance takes longer than it may wait for any member: this member hangs,
        and joins anew."""
        waited = time.monotonic() - self._stable_at
        if waited > self._patience:
            raise KafkaTimeoutError(f"the rebalance of the group did not end within {waited:.0f} s")

    def _passed(self) -> list[Polled]:
        """The partitions that moved on over empty positions: transaction markers, or compacted records."""
        polled = []
        paused = self._consumer.paused()
        for place, known in self._next.items():
            each = TopicPartition(*place)
            if each in paused or each not in self._consumer.assignment():
                continue
            position = self._consumer.position(each, timeout_ms=0)
            if position is not None and position > known:
                self._next[place] = position
                polled.append(Polled(place, Records([], [], [], [], []), [], position))
        return polled

    def assigned(self) -> tuple[set[Place], set[Place]]:
        places = {(each.topic, each.partition) for each in self._consumer.assignment()}
        fresh, self._rebalanced.fresh = self._rebalanced.fresh & places, set()
        for place in [place for place in self._next if place not in places or place in fresh]:
            del self._next[place]
        return places, fresh

    def seek(self, place: Place, position: int) -> None:
        self._consumer.seek(TopicPartition(*place), position)
        self._epochs.forget(place)
        self._next[place] = position

    def pause(self, places: Collection[Place]) -> None:
        self._consumer.pause(*self._held(places))

    def resume(self, places: Collection[Place]) -> None:
        self._consumer.resume(*self._held(places))

    def _held(self, places: Collection[Place]) -> list[Any]:
        assignment = self._consumer.assignment()
        return [each for place in places if (each := TopicPartition(*place)) in assignment]

    def commit(self, positions: Mapping[Place, Committed], heard: Callable[[BaseException | None], None]) -> None:
        offsets = {TopicPartition(*place): OffsetAndMetadata(*at, -1) for place, at in positions.items()}
        self._consumer.commit_async(
            offsets, lambda _, answer: heard(answer if isinstance(answer, BaseException) else None)
        )

    def committed(self, place: Place) -> Committed | None:
        found = self._consumer.committed(TopicPartition(*place), metadata=True)
        return None if found is None else Committed(found.offset, found.metadata or "")

    def close(self) -> None:
        with contextlib.suppress(Exception):
            self._consumer.close(autocommit=False, timeout_ms=LEAVE_WITHIN)


def _epoch_of(record: Any) -> int:
    return int(record.leader_epoch)
