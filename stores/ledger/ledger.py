"""The ledger's protocol: one row for each stream item that failed or is a suspect. Healthy items never touch it.

It has two kinds of writers: the *owner* of the source's partition, whose writes carry its epoch, and *due copies*
(parked items that run again), whose only guard is that each write compares the whole row with the one that was read
(L16). `lifecycle.py` has the moves that each of them may make.

A call whose answer was lost is repeated as it was: a row that already is as wanted counts as written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from ...model.ledger import LedgerEntry, LedgerPlace

__all__ = ["Change", "Delayed", "Ledger", "LedgerEntry", "LedgerPlace", "LedgerRow"]

#: A row as it was read (None: there was none), and the row to write. Both have the same position.
Change = tuple[LedgerEntry | None, LedgerEntry]


class LedgerRow(NamedTuple):
    """A row of the ledger, as `list` returns it."""

    partition: str
    entry: LedgerEntry


class Delayed(NamedTuple):
    """Counts of items that were parked at least once. `waiting` ones have a row that is not over (in the delay service,
    due, or running); `done` and `dead` ones have ended so since the ledger was made."""

    waiting: int = 0
    done: int = 0
    dead: int = 0


class Ledger(Protocol):
    """The rows of failed and suspect stream items. A change is durable when its method returns. `source` is the
    tailer's name."""

    async def open(self, source: str, partition: str, epoch: int) -> list[LedgerEntry]:
        """Notes the epoch, so that owners' writes of older ones are refused from now on, then reads the rows, by
        position, from the noted checkpoint on: rows below it concern the copies only (L11). Raises StaleFence when a
        newer epoch was noted."""

    async def write(
        self, source: str, partition: str, changes: Sequence[Change], epoch: int | None
    ) -> list[LedgerEntry | None]:
        """Makes each change on its own: it is written when the row is as it was read. Returns the row of each change as
        it is afterwards: equal to the wanted one when it was written. `epoch` is the owner's; None is a due copy's.

        A row below the noted checkpoint is never created: None (L13). One that becomes terminal below it is gone once
        it was returned; a repeated write of it returns None. Changes of one position are made in their order. Raises
        StaleFence when the epoch is not the one noted, and InvalidRequest for a move that this writer may not make;
        then nothing was written.
        """

    async def passed(self, source: str, partition: str, epoch: int, position: int) -> int:
        """Notes that the checkpoint has passed everything below `position`, and removes rows below it that are terminal
        or suspects (L20). Returns how many. An owner repeats this after it opened: the former one may have died between
        its checkpoint and this. A position that would go back changes nothing. Raises StaleFence."""

    async def get(self, source: str, partition: str, positions: Sequence[int]) -> dict[int, LedgerEntry]:
        """The rows of those positions that have one."""

    async def list(self, source: str, limit: int, after: tuple[str, int] = ("", -1)) -> list[LedgerRow]:
        """Up to `limit` rows behind `after`, in the order of partition and position."""

    async def delayed(self, source: str) -> dict[str, Delayed]:
        """Counts of the items that were ever parked, by partition, for audits: how many wait and how the others
        ended."""

    async def waiting(self, source: str, partition: str, first: int, end: int) -> int:
        """Number of positions from `first` to before `end` that are parked, on their way there, or running as a copy,
        for audits of a range."""

    async def counts(self) -> dict[str, dict[str, int]]:
        """Number of rows by source and by the label of their place; sources without rows are left out."""
