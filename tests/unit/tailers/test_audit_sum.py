"""Stocktaking: every position of a range is in exactly one class, and any other is named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.audit import AFTER_DELAY, HELD, IN_FLIGHT, SETTLED, UNREAD, Audit, Ending, Fate
from tailrace.model.errors import InvalidRequest
from tailrace.tailers.rules.audit_book import Book
from tailrace.tailers.rules.audit_crosscheck import after_delay
from tailrace.tailers.rules.audit_sum import audit_of, tell_apart


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
    audit = audit_of("t", "0", book_of(), PLACES)
    assert audit.counts == {"succeeded": 9, "dead": 1, "dropped": 1, IN_FLIGHT: 3, HELD: 6}
    assert (audit.first, audit.end, audit.sum, audit.good, audit.verdict()) == (0, 20, 20, True, [])


def test_a_range_sums_up_and_is_told_apart_by_what_is_kept() -> None:
    # Given a range that begins below the frontier, and nothing that is durable yet
    audit = audit_of("t", "0", book_of(), PLACES, (2, 25))
    assert audit.counts == {SETTLED: 8, "dropped": 1, IN_FLIGHT: 3, HELD: 6, UNREAD: 5}
    tell_apart(audit, [])
    told = {"succeeded": 7, "dead": 1, "dropped": 1, IN_FLIGHT: 3, HELD: 6, UNREAD: 5}
    assert (audit.counts, audit.good) == (told, True)
    # When the store has it by now, and the frontier has moved since stock was taken
    later = audit_of("t", "0", book_of(), PLACES, (2, 25))
    tell_apart(later, [Ending(3, 3, {Fate.DEAD: 1}), Ending(10, 12, {Fate.EXPIRED: 3})])
    assert (later.counts, later.good) == (told, True)


def test_what_is_older_than_all_endings_or_cut_out_of_several_stays_settled() -> None:
    old = Book(10, b"[0,[10,0,0,0,0,0,0,0,0],0,[],0,[]]")  # as it was written before there were endings
    old.read(range(10, 20))
    old.settle(range(10, 20), Fate.EXPIRED)
    old.passed(20)
    audit = audit_of("t", "0", old, {}, (5, 15))
    tell_apart(audit, [])
    assert audit.counts == {SETTLED: 5, "expired": 5}
    book = Book(0)
    book.read(range(20))
    book.settle(range(20), Fate.SUCCEEDED)
    book.passed(20)
    joined = [Ending(2, 9, {Fate.DEAD: 1, Fate.DROPPED: 1})]
    whole, part = (audit_of("t", "0", book, {}, span) for span in ((1, 11), (5, 20)))
    tell_apart(whole, joined)
    tell_apart(part, joined)
    assert whole.counts == {"succeeded": 8, "dead": 1, "dropped": 1}
    assert part.counts == {SETTLED: 5, "succeeded": 10}


@given(
    fates=st.lists(st.sampled_from([0, *Fate]), min_size=1, max_size=40),
    commits=st.lists(st.tuples(st.integers(1, 8), st.booleans()), max_size=20),
    span=st.tuples(st.integers(0, 40), st.integers(0, 40)),
)
def test_any_range_of_any_story_is_told_exactly(
    fates: list[int], commits: list[tuple[int, bool]], span: tuple[int, int]
) -> None:
    # Given positions that ended in any ways, passed stretch by stretch, some of it durable already
    book = Book(0)
    book.read(range(len(fates)))
    for position, fate in enumerate(fates):
        if fate:
            book.settle([position], Fate(fate))
    kept: list[Ending] = []
    for stretch, durable in [*commits, (len(fates), False)]:
        book.passed(min(len(fates), book.position + stretch))
        if durable:
            kept += book.endings
            book.kept(book.position)
            assert book.endings == []
    # When a part of it is audited
    first, end = sorted(min(each, len(fates)) for each in span)
    audit = audit_of("t", "0", book, {}, (first, end))
    tell_apart(audit, [ending for ending in kept if ending.last >= first and ending.first < end])
    # Then every position of it is in its class, and what is in none is named
    part = fates[first:end]
    assert audit.counts == {fate.label: part.count(fate) for fate in Fate if part.count(fate)}
    assert audit.missing == [first + place for place, fate in enumerate(part) if not fate]
    assert audit.missing_count == part.count(0)


@pytest.mark.parametrize(
    ("waiting", "letters", "told"),
    [
        (4, 2, {"delayed": 4, "dead": 2}),
        (1, 3, {"delayed": 1, "dead": 3, AFTER_DELAY: 2}),
        (0, 2, {"dead": 2, AFTER_DELAY: 4}),
        (1, None, {"delayed": 1, "dead": 2, SETTLED: 3}),
        (9, 0, {"delayed": 4, "dead": 2}),
    ],
)
def test_what_was_delayed_in_a_range_is_told_by_the_ledger_and_the_letters(
    waiting: int, letters: int | None, told: dict[str, int]
) -> None:
    audit = Audit("t", "0", 0, 6, {"delayed": 4, "dead": 2})
    after_delay(audit, waiting, letters)
    assert (audit.counts, audit.good) == (told, True)


def test_an_item_that_is_nowhere_is_named_before_anything_passes_it() -> None:
    audit = audit_of("t", "0", book_of(), {**PLACES, HELD: [13, 14, 16, 18, 19]})
    assert (audit.missing, audit.good, audit.sum) == ([17], False, 19)
    assert audit.verdict() == ["1 in no class: 17"]


@pytest.mark.parametrize("position", [11, 15], ids=["in two places", "ended, and held"])
def test_an_item_that_is_there_twice_is_named(position: int) -> None:
    audit = audit_of("t", "0", book_of(), {**PLACES, HELD: [*PLACES[HELD], position]})
    assert (audit.doubled, audit.good) == ([position], False)
    assert audit.verdict() == [f"1 counted twice: {position}"]


def test_a_position_that_was_passed_without_having_ended_fails_every_range_that_has_it() -> None:
    book = Book(0)
    book.read(range(10))
    book.settle([n for n in range(10) if n != 4], Fate.SUCCEEDED)
    book.passed(10)
    for span in (None, (0, 10), (2, 6), (4, 5)):
        audit = audit_of("t", "0", book, {}, span)
        tell_apart(audit, [])
        assert (audit.missing, audit.good) == ([4], False)
    assert audit_of("t", "0", book, {}, (5, 10)).good


def test_a_range_from_before_the_audit_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="must begin at 50"):
        audit_of("t", "0", Book(50), {}, (0, 60))
    with pytest.raises(InvalidRequest, match="cannot be audited"):
        audit_of("t", "0", Book(50), {}, (60, 55))
