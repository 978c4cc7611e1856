"""Stocktaking: every position of a range is in exactly one class, and what is not is named."""

from __future__ import annotations

import pytest

from tailrace.sdk.model.audit import HELD, IN_FLIGHT, SETTLED, UNREAD, Fate
from tailrace.sdk.model.errors import InvalidRequest
from tailrace.tailers.rules.audit import Book
from tailrace.tailers.rules.stock import take_stock


def book_of(end: int = 20, passed: int = 10) -> Book:
    """Positions 0 to `end` were read; those below `passed` and 15 succeeded, but 3 is dead."""
    book = Book(0)
    book.read(range(end))
    book.settle([n for n in range(passed) if n != 3], Fate.SUCCEEDED)
    book.settle([3], Fate.DEAD)
    book.settle([15], Fate.DROPPED)
    book.passed(passed)
    return book


PLACES = {IN_FLIGHT: [10, 11, 12], HELD: [13, 14, 16, 17, 18, 19]}


def test_the_whole_sums_up() -> None:
    audit = take_stock("t", "0", book_of(), PLACES)
    assert audit.counts == {"succeeded": 9, "dead": 1, "dropped": 1, IN_FLIGHT: 3, HELD: 6}
    assert (audit.first, audit.end, audit.sum, audit.good, audit.verdict()) == (0, 20, 20, True, [])


def test_a_range_sums_up_and_says_what_it_cannot_tell_apart() -> None:
    audit = take_stock("t", "0", book_of(), PLACES, (5, 25))
    assert audit.counts == {SETTLED: 5, "dropped": 1, IN_FLIGHT: 3, HELD: 6, UNREAD: 5}
    assert audit.good
    plain = Book(0)
    plain.read(range(10))
    plain.settle(range(10), Fate.SUCCEEDED)
    plain.passed(10)
    assert take_stock("t", "0", plain, {}, (2, 8)).counts == {"succeeded": 6}


def test_an_item_that_is_nowhere_is_named_before_anything_passes_it() -> None:
    audit = take_stock("t", "0", book_of(), {**PLACES, HELD: [13, 14, 16, 18, 19]})
    assert (audit.missing, audit.good, audit.sum) == ([17], False, 19)
    assert audit.verdict() == ["1 in no class: 17"]


@pytest.mark.parametrize("position", [11, 15], ids=["in two places", "ended, and held"])
def test_an_item_that_is_there_twice_is_named(position: int) -> None:
    audit = take_stock("t", "0", book_of(), {**PLACES, HELD: [*PLACES[HELD], position]})
    assert (audit.doubled, audit.good) == ([position], False)
    assert audit.verdict() == [f"1 counted twice: {position}"]


def test_a_position_that_was_passed_without_having_ended_fails_every_range_that_has_it() -> None:
    book = Book(0)
    book.read(range(10))
    book.settle([n for n in range(10) if n != 4], Fate.SUCCEEDED)
    book.passed(10)
    for span in (None, (0, 10), (2, 6), (4, 5)):
        audit = take_stock("t", "0", book, {}, span)
        assert (audit.missing, audit.good) == ([4], False)
    assert take_stock("t", "0", book, {}, (5, 10)).good


def test_a_range_from_before_the_audit_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="must begin at 50"):
        take_stock("t", "0", Book(50), {}, (0, 60))
    with pytest.raises(InvalidRequest, match="is not one"):
        take_stock("t", "0", Book(50), {}, (60, 55))
