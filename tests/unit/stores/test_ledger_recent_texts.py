"""The texts of the rows written last: of the very rows that were written, gone with them or beyond the bound."""

from __future__ import annotations

from tailrace.model.ledger import LedgerEntry, LedgerPlace
from tailrace.stores.ledger.recent_texts import ROW_BYTES, RecentTexts

HERE, THERE = ("s", "0"), ("s", "1")


def parked(position: int, n: int = 1) -> LedgerEntry:
    return LedgerEntry(position, LedgerPlace.PARKED, n)


def test_the_very_row_that_was_written_has_its_text() -> None:
    recent = RecentTexts()
    row = parked(5)
    recent.note(HERE, [(5, (row, "text"))])
    # An equal row may have been written otherwise: only the very row has the text
    assert recent.texts(HERE, [row, parked(5), parked(6), None]) == ["text", None, None, None]
    assert recent.texts(THERE, [row]) == [None]


def test_what_is_gone_is_not_found_in_either_half() -> None:
    """Given a row of the older half, its later states count, and then none."""
    recent = RecentTexts(bound=2 * ROW_BYTES)
    first, second = parked(1), parked(1, 2)
    recent.note(HERE, [(1, (first, "one"))])
    recent.note(HERE, [(1, (second, "two"))])
    assert recent.texts(HERE, [first, second]) == [None, "two"]
    recent.note(HERE, [(1, None)])
    assert recent.texts(HERE, [second]) == [None]


def test_the_oldest_go_when_the_bound_is_passed() -> None:
    recent = RecentTexts(bound=20 * ROW_BYTES)
    rows = [parked(position) for position in range(100)]
    for row in rows:
        recent.note(HERE, [(row.position, (row, str(row.position)))])
    found = recent.texts(HERE, rows)
    assert found[99] == "99" and found[0] is None
    assert 9 <= sum(text is not None for text in found) <= 22
