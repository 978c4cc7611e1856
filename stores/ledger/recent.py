"""The texts of the rows written last, kept in memory: an item that fails is compared with itself within seconds.

What is kept is told of each write once it is durable. Only rows that no sweep removes are kept, those of what waits.
Reads go to the file: a copy that comes due needs none (`tailers/ledger/row_cache.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from .ledger import LedgerEntry, LedgerPlace

#: Bytes of the rows that are kept, about: those of the last seconds.
RECENT_BYTES = 4 << 20
#: What a row takes in memory beside its text, about.
ROW_BYTES = 600
#: Places of rows that only a write changes or removes.
WAITING = frozenset((LedgerPlace.PARKING, LedgerPlace.PARKED, LedgerPlace.RUNNING))

#: A row and the text in which it was written.
Written = tuple[LedgerEntry, str]
#: Where rows are: their source and partition.
Where = tuple[str, str]

_NOTHING: Mapping[int, Written] = {}


class RecentTexts:
    """Two halves: when the younger one is full, the older one goes. Invariant: of a row in both the younger counts."""

    def __init__(self, bound: int = RECENT_BYTES) -> None:
        self._half = bound // 2
        self._bytes = 0  # of the younger half
        self._young: dict[Where, dict[int, Written]] = {}
        self._old: dict[Where, dict[int, Written]] = {}

    def note(self, where: Where, changes: Iterable[tuple[int, Written | None]]) -> None:
        """Rows as they stand after a write, by position; None: it is gone, or not to be kept."""
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
        """The text of each of these very rows, where it is known."""
        young, old = self._young.get(where, _NOTHING), self._old.get(where, _NOTHING)
        found: list[str | None] = []
        for row in rows:
            known = None if row is None else young.get(row.position) or old.get(row.position)
            found.append(known[1] if known is not None and known[0] is row else None)
        return found
