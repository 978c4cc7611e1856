"""The ownership protocol: the tailer that may read a stream, its epoch, and its lease (L11, L12).

There is a row for each ⟨source, partition⟩. `source` is a tailer's name; a source that is owned whole has one row, of
the partition "". A consumer group may say who *should* read; the row says who *may*, and decides.

Every write of a row is a compare-and-set. A take compares the version that the taker read before it waited, or before
it asked the schedulers to adopt running items: had the owner renewed or listed a scheduler meanwhile, the version would
be another.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class Owner(NamedTuple):
    """A row as it stands.

    version     raised by every write of the row
    epoch       raised by every take; at most 31 bits, so that an epoch and a counter of 32 bits make a fence
    holder      name of the owner; empty: released, nothing of this epoch is running
    lease       seconds for which the holder owns the row, from each of its requests that was answered
    schedulers  ids of the schedulers that it pushes to, each listed before the first push
    """

    version: int
    epoch: int
    holder: str
    lease: float
    schedulers: tuple[str, ...] = ()


class OwnedRow(NamedTuple):
    """A row with its source and partition, as `list` returns it."""

    source: str
    partition: str
    owner: Owner


class Ownership(Protocol):
    """The rows of owners. A change is durable when its method returns. Neither versions nor epochs go back, not even
    when the store is restored from a backup: they follow its clock."""

    async def read(self, source: str, partition: str) -> Owner | None:
        """The row; None when nobody ever took it."""

    async def take(
        self, source: str, partition: str, holder: str, lease: float, seen: int, schedulers: Sequence[str] = ()
    ) -> Owner | None:
        """Takes the row under a new epoch, listing exactly these schedulers (all that adopted running items must be
        among them), if its version is still `seen` (0: there is no row). None: it changed. Raises InvalidRequest for an
        empty holder or a lease that is no positive number."""

    async def renew(
        self, source: str, partition: str, epoch: int, schedulers: Sequence[str], seen: int = 0
    ) -> Owner | None:
        """Raises the version and lists exactly these schedulers, if the version is still `seen` (0: any, for an owner
        that lists none). None: the version is another, since another renewal of this epoch came first. So a late
        renewal changes nothing: it would take a scheduler off the list that was named since. Raises StaleFence when the
        epoch is over or was released."""

    async def release(self, source: str, partition: str, epoch: int) -> None:
        """Empties the holder: nothing of this epoch is running. Harmless when released; raises StaleFence when the
        epoch is over."""

    async def list(self, limit: int, after: tuple[str, str] = ("", "")) -> list[OwnedRow]:
        """Up to `limit` rows behind `after`, in the order of source and partition."""
