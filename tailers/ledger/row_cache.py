"""Cache of ledger rows that this process wrote last, of items due again soon: their copies start without a read.

A row that is remembered may have been written since, by another process. So nothing may rest on it but the write that
starts a copy, which compares the row, whole, with the one in the ledger (L16): where it is another one by now, nothing
is written, and the row is read.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from ...model.ledger import LedgerEntry
from .rows import RowHome

#: Rows that are remembered; the oldest go first.
MOST = 16_384


class RowCache:
    """Rows of all tailers of a process. Bounded: MOST of them."""

    def __init__(self) -> None:
        self._rows: dict[RowHome, LedgerEntry] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def keep(self, rows: Iterable[tuple[RowHome, LedgerEntry]]) -> None:
        """Remembers rows as they were written just now."""
        known = self._rows
        known.update(rows)
        for home in [*islice(known, max(0, len(known) - MOST))]:
            del known[home]

    def take(self, home: RowHome) -> LedgerEntry | None:
        """Forgets and returns the row, if it is known: the caller is about to write it."""
        return self._rows.pop(home, None)
