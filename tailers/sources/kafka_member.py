"""A member of a Kafka consumer group, as narrow as the source needs it: blocking calls of one thread.

Two clients implement it, kafka-python (`kafka_python_member.py`) and librdkafka's (`kafka_confluent_member.py`). What
the group assigns is paused from the start, at no position: nothing is fetched before `seek`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple, Protocol, Self

from pydantic import Field, field_validator, model_validator

from ...foundation.config import Seconds
from ...stores.kafka.client import Place
from ...stores.kafka.options import KafkaOptions
from ...stores.log.log import Records

#: Records that one poll may bring, and bytes of one partition.
POLL_RECORDS = 1024
POLL_BYTES = 1 << 20
#: Seconds after which the brokers are asked again which topics and partitions there are.
DISCOVER_EVERY = 10.0


class MemberOptions(KafkaOptions):
    """Beside the connection:

    topic, topics  one, or several
    group          the consumer group; its name should be no other application's
    group_instance_id   makes this member a static one: when it restarts within session_timeout, it gets back the
                   partitions it had, and nobody else moves
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
                raise ValueError(f"{topic!r} is no topic: letters, digits, '.', '_' and '-', at most 249")
        return given


LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


class Polled(NamedTuple):
    """Records that a poll brought of one partition. Everything below `through` that is not in `records` holds
    nothing."""

    place: Place
    records: Records
    values: list[bool]  # whether each had a value; one without is a tombstone
    through: int


class OutOfRange(Exception):
    """Positions that the brokers do not have (any more), by partition."""

    def __init__(self, positions: Mapping[Place, int]) -> None:
        super().__init__(f"out of range: {positions}")
        self.positions = dict(positions)


class Member(Protocol):
    """Errors are the client's own, but for OutOfRange."""

    def poll(self, seconds: float) -> list[Polled]:
        """What has come, waiting up to `seconds` for the first; also what keeps the member in its group."""

    def assigned(self) -> tuple[set[Place], set[Place]]:
        """What the group gives this member now, and what of it is new (or again) since the last call."""

    def seek(self, place: Place, position: int) -> None:
        """Fetches from there on."""

    def pause(self, places: Collection[Place]) -> None: ...

    def resume(self, places: Collection[Place]) -> None: ...

    def commit(self, positions: Mapping[Place, int], heard: Callable[[BaseException | None], None]) -> None:
        """Begins to tell the group how far this application is, without waiting: records are not to wait for it. One at
        a time. A later poll calls `heard` with why the group did not take it, None when it did; unless this raises."""

    def committed(self, place: Place) -> int | None:
        """What the group knows, from whoever said it."""

    def close(self) -> None:
        """Leaves the group (a static member does not)."""
