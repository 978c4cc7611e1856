"""The ledger's protocol: one row for each stream item that failed or is a suspect. Healthy items never touch it.

Two kinds of writers: the *owner* of the source's partition, whose writes carry its epoch, and *due copies* run by the
tailer of what is due, whose only guard is that each write compares the row, whole, as it was read (L16). Which move is
whose is in `lifecycle.py`.

A call whose answer was lost is asked again as it was: a row that already stands as wanted counts as written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ...model.ledger import LedgerEntry, LedgerPlace

__all__ = ["Change", "Delayed", "Ledger", "LedgerEntry", "LedgerPlace", "LedgerRow"]

#: A row as it was read (None: there was none), and as it shall be. Both have the same position.
Change = tuple[LedgerEntry | None, LedgerEntry]


class LedgerRow(NamedTuple):
    """A row of a listing."""

    partition: str
    entry: LedgerEntry


class Delayed(NamedTuple):
    """Items that were parked at least once: `waiting` have a row that is not over (wherever they are: in the delay
    service, due, running), `done` and `dead` are how many ended so since the ledger was made."""

    waiting: int = 0
    done: int = 0
    dead: int = 0


class Ledger(Protocol):
    """Durable when a method returns. `source` is the tailer's name."""

    async def open(self, source: str, partition: str, epoch: int) -> list[LedgerEntry]:
        """Notes the epoch, so that owners' writes of older ones are refused from now on, then reads the rows, by
        position, from the noted checkpoint on: what is below it is the copies' affair (L11). Raises StaleFence when a
        newer epoch was noted."""

    async def write(
        self, source: str, partition: str, changes: Sequence[Change], epoch: int | None
    ) -> list[LedgerEntry | None]:
        """Each change on its own: written when the row is as it was read. Answers each change's row as it stands after
        it: equal to the wanted one when it was written. `epoch` is the owner's; None is a due copy's.

        A row below the noted checkpoint is never created: None (L13). One that becomes terminal below it is gone
        once it was answered; writing it again is answered with None.
        Changes of one position are made in their order. Raises StaleFence when the epoch is not the one noted, and
        InvalidRequest for a move that is not the writer's; then nothing was written.
        """

    async def passed(self, source: str, partition: str, epoch: int, position: int) -> int:
        """Notes that the checkpoint has passed everything below `position`: rows below it that are terminal or
        suspects go (L20). Returns how many. An owner says it again after it opened: the former one may have died
        between its checkpoint and this. A position that would go back changes nothing. Raises StaleFence."""

    async def get(self, source: str, partition: str, positions: Sequence[int]) -> dict[int, LedgerEntry]:
        """The rows of those positions that have one."""

    async def list(self, source: str, limit: int, after: tuple[str, int] = ("", -1)) -> list[LedgerRow]:
        """Up to `limit` rows in the order of partition and position, those behind `after`."""

    async def delayed(self, source: str) -> dict[str, Delayed]:
        """What became of the items of each partition that were ever parked: for audits."""

    async def waiting(self, source: str, partition: str, first: int, end: int) -> int:
        """How many positions from `first` to before `end` are parked, on their way there, or running as a copy: for
        audits of a range."""

    async def counts(self) -> dict[str, dict[str, int]]:
        """How many rows each source has by the label of their place; sources without rows are left out."""
