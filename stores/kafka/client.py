"""The narrow interface to a Kafka client: blocking calls over lists, each object used by one thread.

Two clients implement it, kafka-python (`python.py`) and librdkafka's (`confluent.py`); nothing else of
tailrace knows them. Errors are the client's own; `errors.py` explains them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from ..log.log import Bounds, Record, Records
from .options import KafkaOptions

#: A topic and the number of a partition.
Place = tuple[str, int]

#: Largest record with its key and headers, and so the largest message of a topic that we make.
MAX_RECORD = 12 << 20
MAX_MESSAGE = 16 << 20


class Append(NamedTuple):
    """Records for the end of a partition, with their time (milliseconds)."""

    place: Place
    records: Sequence[Record]
    time: int


class Fetch(NamedTuple):
    """Up to `limit` records and about `max_bytes` from `position` on, or from the start if that is later."""

    place: Place
    position: int
    limit: int
    max_bytes: int


class GroupMember(NamedTuple):
    """A member of a consumer group: its own name, and its host."""

    client: str
    host: str


class Writer(Protocol):
    """Appends with acks=all, each once as long as this object lives (idempotent producing)."""

    def append(self, appends: Sequence[Append]) -> list[int | BaseException]:
        """Each append's first position, or why it is not known to be there. After an error nobody knows what was
        written: this object is closed then, and a new one is to be made."""

    def close(self) -> None: ...


class Reader(Protocol):
    """Reads at positions, outside of any group."""

    def read(self, fetches: Sequence[Fetch]) -> list[Records | BaseException]:
        """What each asked for; empty where there is nothing yet. One of a partition at a time."""

    def trimmed(self, place: Place, before: int) -> None:
        """A partition was trimmed: what was fetched ahead from below `before` is not to be told any more."""

    def close(self) -> None: ...


class Looker(Protocol):
    """Looks at topics, makes them and trims them."""

    def topics(self) -> list[str]: ...

    def partitions(self, topics: Sequence[str]) -> dict[str, int]:
        """How many partitions each topic has; one that does not exist is left out."""

    def members(self, group: str) -> list[GroupMember]:
        """The members of a consumer group; none, too, where the brokers do not say."""

    def create(self, topic: str, partitions: int, settings: Mapping[str, str]) -> None:
        """Makes a topic, or adds partitions; returns when they can be used."""

    def bounds(self, places: Sequence[Place]) -> dict[Place, Bounds]: ...

    def ends(self, places: Sequence[Place]) -> dict[Place, int]: ...

    def at_time(self, places: Sequence[Place], time: int) -> dict[Place, int]:
        """The first position of each whose record is at least so late (milliseconds); its end if there is none."""

    def trim(self, place: Place, before: int) -> None:
        """Forgets records; beyond the end means all."""

    def close(self) -> None: ...


class KafkaClient(Protocol):
    """A client library. Each call connects; it may block for the request timeout."""

    def writer(self, options: KafkaOptions) -> Writer: ...

    def reader(self, options: KafkaOptions) -> Reader: ...

    def looker(self, options: KafkaOptions) -> Looker: ...
