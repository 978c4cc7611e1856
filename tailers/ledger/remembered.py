"""Rows that this process wrote last of items that are due again soon: their copies start without a read of the ledger.

A row that is remembered may have been written since, by another process. So nothing may rest on it but the write that
starts a copy, which compares the row, whole, with what is in the ledger (L16): where it is another one by now,
nothing is written, and the row is read.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from ...model.ledger import LedgerEntry
from .rows import RowHome

#: Rows that are remembered; the oldest go first.
MOST = 16_384


class Remembered:
    """Rows of all tailers of a process. Bounded: MOST of them."""

    def __init__(self) -> None:
        self._rows: dict[RowHome, LedgerEntry] = {}

    def __len__(self) -> int:
        return len(self._rows)

    def keep(self, rows: Iterable[tuple[RowHome, LedgerEntry]]) -> None:
        """Rows as they were written just now."""
        known = self._rows
        known.update(rows)
        for home in [*islice(known, max(0, len(known) - MOST))]:
            del known[home]

    def take(self, home: RowHome) -> LedgerEntry | None:
        """The row, if it is known; it is forgotten, since whoever asks is about to write it."""
        return self._rows.pop(home, None)
