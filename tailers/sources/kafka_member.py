"""A member of a Kafka consumer group, as narrow as the source needs it: blocking calls of one thread.

Two clients implement it, kafka-python (`kafka_python_member.py`) and librdkafka's (`kafka_confluent_member.py`).
Partitions that the group assigns are paused from the start, at no position: nothing is fetched before `seek`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, Self

from pydantic import Field, field_validator, model_validator

from ...foundation.config import Seconds
from ...stores.kafka.client import Place
from ...stores.kafka.options import KafkaOptions
from ...stores.log.log import Records

#: The most records of one poll, and the most bytes of one partition in it.
POLL_RECORDS = 1024
POLL_BYTES = 1 << 20
#: Seconds after which the brokers are asked again which topics and partitions there are.
DISCOVER_EVERY = 10.0


class MemberOptions(KafkaOptions):
    """Options of a group's member, beside those of the connection.

    topic, topics  one topic, or several
    group          the consumer group; no other application should use its name
    group_instance_id   makes this member a static one: when it restarts within session_timeout, it gets back the
                   partitions that it had, and those of other members stay
    session_timeout   seconds without a heartbeat after which the group gives a member's partitions to others
    max_poll_interval   seconds without a poll after which a member counts as hung. Polling goes on while functions are
                   slow, so this is about the process
    """

    topic: str = ""
    topics: tuple[str, ...] = ()
    group: str = Field(min_length=1, max_length=249)
    group_instance_id: str = Field("", max_length=249, pattern=r"^[A-Za-z0-9._-]*$")
    session_timeout: Seconds = Field(45.0, ge=1, le=3600)
    max_poll_interval: Seconds = Field(300.0, ge=10, le=86_400)

    @model_validator(mode="after")
    def _one_or_several(self) -> Self:
        if bool(self.topic) == bool(self.topics):
            raise ValueError('give one "topic", or several as "topics"')
        return self

    @property
    def read(self) -> tuple[str, ...]:
        """The topics to read."""
        return self.topics or (self.topic,)

    @field_validator("topic", "topics")
    @classmethod
    def _are_names(cls, given: Any) -> Any:
        for topic in [given] if isinstance(given, str) else given:
            if len(topic) > 249 or set(topic) - LETTERS or topic in (".", ".."):
                raise ValueError(f"{topic!r}: expected a topic of at most 249 letters, digits, '.', '_' and '-'")
        return given


LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


class Polled(NamedTuple):
    """Records that a poll brought of one partition. Positions below `through` that are not in `records` are empty.
    `epochs`: leader epochs that begin in them, each with its first position."""

    place: Place
    records: Records
    values: list[bool]  # whether each had a value; one without is a tombstone
    through: int
    epochs: Sequence[tuple[int, int]] = ()


class Committed(NamedTuple):
    """An offset that a group has, and the words beside it."""

    position: int
    words: str = ""


class EpochsRead:
    """The leader epoch of the last record that was read of each partition."""

    def __init__(self) -> None:
        self._last: dict[Place, int] = {}

    def forget(self, place: Place) -> None:
        """Has the next record of a partition begin an epoch."""
        self._last.pop(place, None)

    def begun(
        self, place: Place, records: Sequence[Any], epoch_of: Callable[[Any], int], positions: Sequence[int]
    ) -> Sequence[tuple[int, int]]:
        """The epochs that begin in these records. They rise, so in most lists the last record answers for all."""
        known = self._last.get(place, -1)
        if epoch_of(records[-1]) <= known:
            return ()
        found = []
        for record, position in zip(records, positions, strict=True):
            epoch = epoch_of(record)
            if epoch > known:
                found.append((epoch, position))
                known = self._last[place] = epoch
        return found


class OutOfRange(Exception):
    """Positions that the brokers do not have (any more), or that follow records which are no longer there, by
    partition."""

    def __init__(self, positions: Mapping[Place, int]) -> None:
        super().__init__(f"out of range: {positions}")
        self.positions = dict(positions)


class TopicMadeAgain(Exception):
    """A topic that is another one than when this member was made."""


class Member(Protocol):
    """A member of a group. Errors are the client's own, except for OutOfRange and TopicMadeAgain."""

    def poll(self, seconds: float) -> list[Polled]:
        """Returns the records that have come, after a wait of up to `seconds` for the first. Polling keeps the member
        in its group."""

    def assigned(self) -> tuple[set[Place], set[Place]]:
        """The partitions that the group gives this member now, and those of them that were assigned (also once more)
        since the last call."""

    def seek(self, place: Place, position: int) -> None:
        """Fetches a partition from a position on."""

    def pause(self, places: Collection[Place]) -> None: ...

    def resume(self, places: Collection[Place]) -> None: ...

    def commit(self, positions: Mapping[Place, Committed], heard: Callable[[BaseException | None], None]) -> None:
        """Begins to commit offsets to the group without waiting, so that records do not wait for it; one commit at a
        time. Unless this raises, a later poll calls `heard` with the error, or with None when the group took the
        commit."""

    def committed(self, place: Place) -> Committed | None:
        """The offset that the group has for a partition, from any member; None: it has none."""

    def close(self) -> None:
        """Leaves the group (a static member does not)."""
