"""Topics of a Kafka cluster as a source, read as a member of a consumer group."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, model_validator

from ...foundation.config import Seconds, Start
from ...model.units import start_of
from ...sdk.source import SourceKind
from ...stores.kafka.clients import lacking
from ..registry import Environment
from .kafka_group import KafkaGroup
from .kafka_member import MemberOptions
from .kafka_partition import CAPABILITIES, Tombstones
from .kafka_reread import KafkaReader


class KafkaSourceOptions(MemberOptions):
    """Options of a Kafka source, beside those of the connection and the membership.

    start          the start of a partition that neither a checkpoint nor the group knows: earliest, latest, how long
                   before the first start (2h), or a time such as 2026-01-31T08:00:00+01:00
    tombstones     a record without a value: deliver it with an empty payload and the header kafka.tombstone, or skip it
    release_within   seconds in which items that are out may end when the group gives a partition to another member
    on_recreated   a topic that is another one than the one that was read (deleted and made again, or in another
                   cluster), or that lost records which were read: stop; read it from_start; or go on at the offsets of
                   the group there
    hung_after     a member that gets nothing for so long, although there are more records, joins anew
    """

    start: Start = "earliest"
    tombstones: Tombstones = "deliver"
    on_recreated: Literal["stop", "from_start", "group"] = "stop"
    release_within: Seconds = Field(10.0, ge=0, le=3600)
    hung_after: Seconds = Field(30.0, ge=1, le=3600)

    @model_validator(mode="after")
    def _has_its_client(self) -> Self:
        if why := lacking(self.client):
            raise ValueError(why)
        return self

    @property
    def start_time(self) -> int | None:
        """The time in `start`, milliseconds, which holds for whatever comes later as well; None: it is no time."""
        time = 0.0 if self.start in ("earliest", "latest") else start_of(self.start, 0.0)
        return int(time * 1000) if time > 0 else None


def build(options: KafkaSourceOptions, environment: Environment) -> KafkaGroup:
    """The member of the group, which joins when it is opened."""
    return KafkaGroup(options, environment.tailer, environment.checkpoints, environment.clock)


def reader(options: KafkaSourceOptions, environment: Environment) -> KafkaReader:
    """The reader that reads the topics again, outside of the group."""
    return KafkaReader(options, CAPABILITIES, environment.tailer, environment.checkpoints)


KIND = SourceKind(
    "kafka",
    "stream",
    KafkaSourceOptions,
    build,
    CAPABILITIES,
    extra="kafka",
    description="topics of a Kafka cluster, as a member of a consumer group",
    retention=True,
    shared=True,
    reader=reader,
)
