"""The book of a partition: every position ends once, a lost one and one that ended twice are named."""

from __future__ import annotations

import time
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tailrace.model.audit import NAMED, Fate, ranges
from tailrace.tailers.rules.audit_book import Book
from tailrace.tailers.rules.frontier import Frontier


def tally_of(book: Book) -> dict[Fate, int]:
    return {fate: book.tally[fate] for fate in Fate if book.tally[fate]}


def test_every_way_of_ending_is_counted_once_passed() -> None:
    book = Book(0)
    book.read(range(10), [10])
    book.settle(range(5), Fate.SUCCEEDED)
    book.settle([5, 7], Fate.DELAYED)
    book.settle([6], Fate.DEAD)
    book.settle([8, 9], Fate.DROPPED)
    assert tally_of(book) == {}
    book.passed(11)
    assert tally_of(book) == {
        Fate.SUCCEEDED: 5,
        Fate.DELAYED: 2,
        Fate.DEAD: 1,
        Fate.DROPPED: 2,
        Fate.ABSENT: 1,
    }
    assert (book.missing_count, book.doubled_count) == (0, 0)


def test_a_position_passed_without_having_ended_is_named() -> None:
    # Given a frontier that is one too far
    book = Book(100)
    book.read(range(100, 110))
    book.settle([*range(100, 104), 105], Fate.SUCCEEDED)
    book.passed(106)
    # Then the lost one is named, and stays named after a restart
    for each in (book, Book(106, book.encode())):
        assert (each.missing_count, each.missing) == (1, [104])
        assert sum(each.tally) + each.missing_count == 106 - each.start


def test_a_position_that_ends_twice_is_named_before_and_after_it_was_passed() -> None:
    book = Book(0)
    book.read(range(10))
    book.settle(range(5), Fate.SUCCEEDED)
    book.settle([3, 4, 5], Fate.DELAYED)
    book.passed(6)
    book.settle([2], Fate.SUCCEEDED)
    assert (book.doubled_count, book.doubled) == (3, [3, 4, 2])
    assert tally_of(book) == {Fate.SUCCEEDED: 5, Fate.DELAYED: 1}


def test_gaps_are_told_apart_from_what_is_absent() -> None:
    book = Book(0)
    book.read([5, 6], [8], gap=Fate.LOST)
    book.settle([5, 6], Fate.SUCCEEDED)
    book.passed(9)
    assert tally_of(book) == {Fate.SUCCEEDED: 2, Fate.ABSENT: 1, Fate.LOST: 6}


def test_a_book_of_an_older_checkpoint_begins_there() -> None:
    book = Book(50, b"", b"\x00\x01\x01\x00")
    assert (book.start, book.ahead()) == (50, {Fate.SUCCEEDED: 2})
    book.read(range(50, 54))
    book.settle([50, 53], Fate.DEAD)
    book.passed(54)
    assert tally_of(book) == {Fate.SUCCEEDED: 2, Fate.DEAD: 2}
    assert (book.missing_count, book.doubled_count) == (0, 0)


def test_what_is_named_is_bounded() -> None:
    book = Book(0)
    book.read(range(1000))
    book.passed(1000)
    assert (book.missing_count, len(book.missing)) == (1000, NAMED)
    assert ranges(book.missing, book.missing_count) == f"0–{NAMED - 1}, …"
    assert len(book.encode()) < 1000


def test_ranges_read_well() -> None:
    assert ranges([1, 2, 3, 7], 4) == "1–3, 7"


class BookBesideFrontier(RuleBasedStateMachine):
    """A book and a frontier that hear the same story agree at every step, through any number of restarts."""

    def __init__(self) -> None:
        super().__init__()
        self.frontier = Frontier(0)
        self.book = Book(0)
        self.true: dict[int, Fate] = {}
        self.durable: tuple[int, bytes, bytes, dict[int, Fate]] = (0, b"", b"", {})

    @rule(data=st.data(), skip=st.integers(0, 2), size=st.integers(1, 6))
    def read(self, data: Any, skip: int, size: int) -> None:
        first = self.frontier.end + skip
        found = list(range(first, first + size))
        absent = data.draw(st.sets(st.sampled_from(found), max_size=2))
        positions = [position for position in found if position not in absent]
        start = self.frontier.end
        self.frontier.read(positions, sorted(absent))
        self.book.read(positions, sorted(absent), Fate.LOST)
        for position in range(start, first):
            self.true.setdefault(position, Fate.LOST)
        for position in absent:
            self.true.setdefault(position, Fate.ABSENT)

    def unsettled(self) -> list[int]:
        return [each for each in range(self.frontier.position, self.frontier.end) if each not in self.true]

    @precondition(lambda self: self.unsettled())
    @rule(data=st.data(), fate=st.sampled_from(list(Fate)))
    def settle(self, data: Any, fate: Fate) -> None:
        chosen = sorted(data.draw(st.sets(st.sampled_from(self.unsettled()), min_size=1)))
        self.frontier.settle(chosen)
        self.book.settle(chosen, fate)
        self.true.update(dict.fromkeys(chosen, fate))

    @rule()
    def commit(self) -> None:
        self.frontier.advance()
        self.book.passed(self.frontier.position)
        self.durable = (self.frontier.position, self.frontier.encode(), self.book.encode(), dict(self.true))

    @rule()
    def die(self) -> None:
        position, ahead, saved, true = self.durable
        self.frontier, self.book = Frontier(position, ahead), Book(position, saved)
        self.true = dict(true)

    @invariant()
    def they_agree(self) -> None:
        self.frontier.advance()
        self.book.passed(self.frontier.position)
        assert (self.book.missing_count, self.book.doubled_count) == (0, 0)
        position = self.frontier.position
        assert self.book.position == position
        assert self.book.open() == self.unsettled()
        expected = [0] * (max(Fate) + 1)
        for each, fate in self.true.items():
            expected[fate] += each < position
        assert self.book.tally == expected
        ahead = {fate: sum(own is fate and each >= position for each, own in self.true.items()) for fate in Fate}
        assert self.book.ahead() == {fate: count for fate, count in ahead.items() if count}


TestBookBesideFrontier = BookBesideFrontier.TestCase
TestBookBesideFrontier.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


@settings(deadline=None, max_examples=30)
@given(lost=st.integers(0, 99), early=st.integers(0, 99))
def test_any_planted_loss_is_caught(lost: int, early: int) -> None:
    # Given a partition of which one position is never settled, and a frontier that passes it nevertheless
    book = Book(0)
    book.read(range(100))
    rest = [position for position in range(100) if position != lost]
    book.settle(rest[:early], Fate.SUCCEEDED)
    book.settle(rest[early:], Fate.DEAD)
    book.passed(100)
    assert book.missing == [lost]


def test_a_settled_item_costs_far_less_than_two_microseconds() -> None:
    book = Book(0)
    count, size = 400, 1000
    began = time.perf_counter()
    for number in range(count):
        positions = range(number * size, (number + 1) * size)
        book.read(positions)
        book.settle(positions, Fate.SUCCEEDED)
        book.passed(positions[-1] + 1)
        book.encode()
    assert (time.perf_counter() - began) / (count * size) < 1e-6
