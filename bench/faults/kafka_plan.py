"""The plan of a run around a Kafka topic: three tailers share it through a group."""

from __future__ import annotations

from .streams_plan import KILL, OTHER, ROLL, SERVERS, WIRE, Mix

TOPIC = GROUP = "faults"
PARTITIONS = 12
#: Ten rounds and the minute in which everything fails: twenty rolling restarts of the tailers, twenty kills of one, ten
#: of a broker, and the rest.
MIX = Mix("kafka", (KILL, WIRE, SERVERS, ROLL, OTHER, KILL, ROLL), whole=71, outage_after=40)


def brokers_of(count: int) -> tuple[str, ...]:
    """Names of the parts that are brokers."""
    return tuple(f"kafka-{number + 1}" for number in range(count))
