"""The texts of the rows written last, kept in memory: an item that fails is compared with its own row within seconds.

Rows are noted once their write is durable. Only rows that no sweep removes are kept, those of items that wait. Reads go
to the file: a copy that comes due needs none (`tailers/ledger/row_cache.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .ledger import LedgerEntry, LedgerPlace

#: Bytes of the rows that are kept, about: the rows of the last seconds.
RECENT_BYTES = 4 << 20
#: Bytes that a row takes in memory beside its text, about.
ROW_BYTES = 600
#: Places of rows that only a write changes or removes.
WAITING = frozenset((LedgerPlace.PARKING, LedgerPlace.PARKED, LedgerPlace.RUNNING))

#: A row and the text in which it was written.
Written = tuple[LedgerEntry, str]
#: A source and a partition.
Where = tuple[str, str]

_NOTHING: Mapping[int, Written] = {}


class RecentTexts:
    """Texts of recent rows, in two halves: when the younger one is full, the older one goes. Invariant: the younger
    half counts for a row that is in both."""

    def __init__(self, bound: int = RECENT_BYTES) -> None:
        self._half = bound // 2
        self._bytes = 0  # of the younger half
        self._young: dict[Where, dict[int, Written]] = {}
        self._old: dict[Where, dict[int, Written]] = {}

    def note(self, where: Where, changes: Iterable[tuple[int, Written | None]]) -> None:
        """Notes rows as they are after a write, by position; None: it is gone, or not to be kept."""
        young, old = self._young.setdefault(where, {}), self._old.get(where)
        for position, written in changes:
            if old:
                old.pop(position, None)
            if written is None:
                young.pop(position, None)
            else:
                young[position] = written
                self._bytes += ROW_BYTES + len(written[1])
        if self._bytes > self._half:
            self._old, self._young, self._bytes = self._young, {}, 0

    def texts(self, where: Where, rows: Iterable[LedgerEntry | None]) -> list[str | None]:
        """The text of each of these very row objects; None where it is not known."""
        young, old = self._young.get(where, _NOTHING), self._old.get(where, _NOTHING)
        found: list[str | None] = []
        for row in rows:
            known = None if row is None else young.get(row.position) or old.get(row.position)
            found.append(known[1] if known is not None and known[0] is row else None)
        return found
