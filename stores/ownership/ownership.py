"""The ownership protocol: who may read a stream, under which epoch, until when (L11, L12).

A row for each ⟨source, partition⟩. `source` is a tailer's name; a source that is owned whole has one row, of the
partition "". The row says who *may*; whatever else says who should (a consumer group), this decides.

Every write of a row is a compare-and-set. Who takes compares the version that it read before it waited, or before it
asked the schedulers to adopt: had the owner renewed or listed a scheduler meanwhile, the version would be another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Owner(NamedTuple):
    """A row as it stands.

    version     raised by every write of the row
    epoch       raised by every take; at most 31 bits, so that an epoch and a counter of 32 bits make a fence
    holder      who has it; empty: released, nothing of this epoch is running
    lease       seconds that the holder counts on from each of its requests that was answered
    schedulers  ids of the schedulers that it pushes to, each listed before the first push
    """

    version: int
    epoch: int
    holder: str
    lease: float
    schedulers: tuple[str, ...] = ()


class OwnedRow(NamedTuple):
    """A row of a listing."""

    source: str
    partition: str
    owner: Owner


class Ownership(Protocol):
    """Durable when a method returns. Neither versions nor epochs go back, not even when the store is restored from a
    backup: they follow its clock."""

    async def read(self, source: str, partition: str) -> Owner | None:
        """The row, or None when nobody ever took it."""

    async def take(
        self, source: str, partition: str, holder: str, lease: float, seen: int, schedulers: Sequence[str] = ()
    ) -> Owner | None:
        """Takes the row under a new epoch, listing exactly these schedulers (those that adopted what runs must be among
        them), if its version is still `seen` (0: there is no row). None: it changed. Raises InvalidRequest for an empty
        holder or a lease that is no positive number."""

    async def renew(
        self, source: str, partition: str, epoch: int, schedulers: Sequence[str], seen: int = 0
    ) -> Owner | None:
        """Raises the version and lists exactly these schedulers, if the version is still `seen` (0: whatever it is,
        for who lists none). None: it is not, since another renewal of this epoch came first. So one that comes late
        changes nothing: it would take a scheduler off the list that was named since. Raises StaleFence when the epoch
        is over or was released."""

    async def release(self, source: str, partition: str, epoch: int) -> None:
        """Empties the holder: nothing of this epoch is running. Harmless when released; raises StaleFence when the
        epoch is over."""

    async def list(self, limit: int, after: tuple[str, str] = ("", "")) -> list[OwnedRow]:
        """Up to `limit` rows in the order of source and partition, those behind `after`."""
