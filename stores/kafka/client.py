"""The narrow interface to a Kafka client: blocking calls over lists, each object used by one thread.

Two clients implement it, kafka-python (`python.py`) and librdkafka's (`confluent.py`); nothing else of tailrace knows
them. Errors are the client's own; `errors.py` explains them.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from ..log.log import Bounds, Record, Records
from .options import KafkaOptions

#: A topic and the number of a partition.
Place = tuple[str, int]

#: Bytes of the largest record, with key and headers; and of the largest message, for topics that we make.
MAX_RECORD = 12 << 20
MAX_MESSAGE = 16 << 20


class Append(NamedTuple):
    """Records for the end of a partition, with their time (milliseconds)."""

    place: Place
    records: Sequence[Record]
    time: int


class Fetch(NamedTuple):
    """A request for up to `limit` records and about `max_bytes` from `position` on, or from the partition's start if
    that is later."""

    place: Place
    position: int
    limit: int
    max_bytes: int


class GroupMember(NamedTuple):
    """A member of a consumer group: its own name, and its host."""

    client: str
    host: str


class Topic(NamedTuple):
    """A topic as it is now: the number of its partitions, and its id (KIP-516) as Kafka's own tools write it; empty
    where the brokers give none."""

    partitions: int
    id: str = ""


def topic_id(raw: bytes) -> str:
    """A topic's id as text; clients spell it in three ways. Brokers that give none have zeroes."""
    return base64.urlsafe_b64encode(raw).decode().rstrip("=") if any(raw) else ""


class ReadUpTo(NamedTuple):
    """A partition that was read up to a position, with the leader epoch of the record before that."""

    place: Place
    position: int
    epoch: int


class Writer(Protocol):
    """A producer: appends with acks=all, each record once as long as this object lives (idempotent producing)."""

    def append(self, appends: Sequence[Append]) -> list[int | BaseException]:
        """The first position of each append, or the error after which it is unknown whether the append is there. After
        an error this object is closed, and a new one is to be made."""

    def close(self) -> None: ...


class Reader(Protocol):
    """A consumer outside of any group, which reads at given positions."""

    def read(self, fetches: Sequence[Fetch]) -> list[Records | BaseException]:
        """The records of each request; empty where there are none yet. At most one request for a partition at a
        time."""

    def trimmed(self, place: Place, before: int) -> None:
        """Tells that a partition was trimmed: records below `before` that were fetched ahead are not returned any
        more."""

    def close(self) -> None: ...


class Offsets(Protocol):
    """The offsets of partitions, as their brokers have them now."""

    def bounds(self, places: Sequence[Place]) -> dict[Place, Bounds]: ...

    def ends(self, places: Sequence[Place]) -> dict[Place, int]: ...

    def at_time(self, places: Sequence[Place], time: int) -> dict[Place, int]:
        """The first position of each partition whose record is at or after `time` (milliseconds); its end if there is
        none."""

    def cut_off(self, asked: Sequence[ReadUpTo]) -> list[int | None]:
        """The ends at which partitions lost records that were read (KIP-320), -1 where that is not known; None where
        none is lost, or the brokers do not tell."""


class TopicAdmin(Offsets, Protocol):
    """An admin client: looks at topics, makes them and trims them."""

    def topics(self) -> list[str]: ...

    def described(self, topics: Sequence[str]) -> dict[str, Topic]:
        """The topics of these names; one that does not exist is left out."""

    def cluster(self) -> str:
        """The id of the cluster; empty where the brokers do not tell."""

    def members(self, group: str) -> list[GroupMember]:
        """The members of a consumer group; empty also where the brokers do not tell."""

    def create(self, topic: str, partitions: int, settings: Mapping[str, str]) -> None:
        """Makes a topic, or adds partitions to it; returns when they can be used."""

    def trim(self, place: Place, before: int) -> None:
        """Removes the records below `before`; all records where it is beyond the end."""

    def close(self) -> None: ...


def partitions_of(admin: TopicAdmin, topics: Sequence[str]) -> dict[str, int]:
    """The number of partitions of each topic; a topic that does not exist is left out."""
    return {name: topic.partitions for name, topic in admin.described(topics).items()}


class KafkaClient(Protocol):
    """A client library. Each of its methods connects, and may block for the request timeout."""

    def writer(self, options: KafkaOptions) -> Writer: ...

    def reader(self, options: KafkaOptions) -> Reader: ...

    def topic_admin(self, options: KafkaOptions) -> TopicAdmin: ...
