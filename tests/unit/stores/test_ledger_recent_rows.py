"""The rows written last: found as they stand, gone when they are gone or when the bound is passed."""

from __future__ import annotations

from tailrace.sdk.model.ledger import Entry, Place
from tailrace.stores.ledger.recent import ROW_BYTES, RecentRows

HERE, THERE = ("s", "0"), ("s", "1")


def parked(position: int, n: int = 1) -> Entry:
    return Entry(position, Place.PARKED, n)


def test_a_row_is_found_where_it_was_written_and_its_text_for_that_very_row() -> None:
    recent = RecentRows()
    row = parked(5)
    recent.note(HERE, [(5, (row, "text"))])
    assert recent.rows(HERE, [4, 5]) == {5: row}
    assert recent.rows(THERE, [5]) == {}
    # An equal row may have been written otherwise: only the very row has the text
    assert recent.texts(HERE, [row, parked(5), parked(6), None]) == ["text", None, None, None]
    assert recent.texts(THERE, [row]) == [None]


def test_what_is_gone_is_not_found_in_either_half() -> None:
    """Given a row of the older half, its later states count, and then none."""
    recent = RecentRows(bound=2 * ROW_BYTES)
    recent.note(HERE, [(1, (parked(1), "one"))])
    recent.note(HERE, [(1, (parked(1, 2), "two"))])
    assert recent.rows(HERE, [1]) == {1: parked(1, 2)}
    recent.note(HERE, [(1, None)])
    assert recent.rows(HERE, [1]) == {}


def test_the_oldest_go_when_the_bound_is_passed() -> None:
    recent = RecentRows(bound=20 * ROW_BYTES)
    for position in range(100):
        recent.note(HERE, [(position, (parked(position), ""))])
    found = recent.rows(HERE, range(100))
    assert 99 in found and 0 not in found
    assert 9 <= len(found) <= 22
