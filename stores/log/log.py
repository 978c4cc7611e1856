"""The log's protocol: append-only partitions with dense positions, read in order, trimmed from the head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from ...sdk.model.workload import Headers


class Record(NamedTuple):
    """What is appended."""

    payload: bytes
    key: str = ""
    headers: Headers = ()


@dataclass(slots=True)
class Records:
    """What is read: parallel lists. `positions` rise but may have gaps (a compacted log)."""

    positions: list[int]
    times: list[float]  # wall clock of the append
    keys: list[str]
    headers: list[Headers]
    payloads: list[bytes]


class Bounds(NamedTuple):
    """`start`: lowest position kept; `end`: the position the next record will get."""

    start: int
    end: int


class Log(Protocol):
    """Streams of records. A stream is made by its first append or by `create`.

    `batches` says that the records of one append are stored as one entry, so that small ones cost next to nothing; else
    each costs an entry of its own, and whoever has many that travel together had better pack them.
    """

    batches: bool

    async def create(self, stream: str, partitions: int) -> None:
        """Makes a stream, or raises its number of partitions; harmless when it has as many."""

    async def append(self, stream: str, partition: int, records: Sequence[Record]) -> int:
        """Stores the records and returns the first one's position. Durable when it returns."""

    async def read(self, stream: str, partition: int, position: int, limit: int, max_bytes: int) -> Records:
        """Up to `limit` records from `position` on, at least one if there is one, else empty. A position below the
        start reads from the start."""

    async def bounds(self, stream: str) -> dict[int, Bounds]:
        """The bounds of each partition; empty for an unknown stream."""

    async def wait(self, stream: str, ends: Mapping[int, int], timeout: float) -> None:
        """Returns when some partition's end is past the one given in `ends`, or after `timeout` seconds."""

    async def trim(self, stream: str, partition: int, before: int) -> None:
        """Forgets the records below `before`."""

    async def streams(self) -> list[str]:
        """The names of all streams, sorted."""
