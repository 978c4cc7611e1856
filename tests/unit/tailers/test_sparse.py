"""Frontier and book of positions that are far apart, against sets: nothing unsettled is passed, each counts once."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.audit import Fate
from tailrace.model.errors import InvalidRequest
from tailrace.tailers.rules.audit_sum import audit_of
from tailrace.tailers.rules.sparse_book import SparseBook
from tailrace.tailers.rules.sparse_frontier import MOST_OPEN, SparseFrontier, settled_ahead

FAR = 1 << 40
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.lists(st.integers(1, FAR), min_size=1, max_size=12)),
        st.tuples(st.just("settle"), st.lists(st.integers(0, 60), max_size=20)),
        st.tuples(st.just("skip"), st.integers(1, FAR)),
        st.tuples(st.just("restart"), st.none()),
    ),
    max_size=40,
)


@given(STEPS)
def test_against_sets(steps):
    """Positions of the stream are in `there`; reading takes what follows the end, a restart reads from the frontier
    again."""
    there, settled, lost = [], {}, 0
    frontier, book = SparseFrontier(0), SparseBook(0)
    open_ones = set()

    def read(positions):
        run = frontier.read(positions)
        book.read(positions)
        fresh = positions if run is None else [positions[index] for index in run]
        assert fresh == [position for position in positions if position not in settled]
        open_ones.update(fresh)

    for step, argument in steps:
        if step == "read":
            at = max([frontier.end, *there[-1:]])
            positions = []
            for gap in argument:
                at += gap
                positions.append(at)
            there += positions
            read(positions)
        elif step == "settle":
            positions = [there[index] for index in sorted(set(argument)) if index < len(there)]
            positions = [position for position in positions if position in open_ones]
            frontier.settle(positions)
            book.settle(positions, Fate.SUCCEEDED)
            settled.update(dict.fromkeys(positions, Fate.SUCCEEDED))
            open_ones.difference_update(positions)
        elif step == "skip":
            last = frontier.end + argument
            frontier.advance()
            book.passed(frontier.position)
            assert frontier.unread(frontier.end, last) == [(frontier.end, last)]
            frontier.skip(last)
            book.skip(last, Fate.LOST, 3)
            lost += 3
        else:
            frontier.advance()
            book.passed(frontier.position)
            position, suspects = frontier.position, sorted(open_ones)
            lost -= sum(items for _, items, _ in book._lost)
            frontier, book = SparseFrontier(position, frontier.encode()), SparseBook(position, book.encode())
            assert frontier.unsettled_below(10**18, 100) == suspects
            open_ones = set()
            read([each for each in there if each >= position])
        frontier.advance()
        book.passed(frontier.position)
        assert frontier.unsettled == len(open_ones)
        assert frontier.position == (min(open_ones) if open_ones else frontier.end)
        assert all(frontier.is_settled(position) == (position in settled) for position in there)
        assert book.open() == sorted(open_ones)
        assert book.items == len(there) + lost
        ended = {fate: book.tally[fate] + book.ahead().get(fate, 0) for fate in Fate}
        assert ended[Fate.SUCCEEDED] == len(settled) and ended[Fate.LOST] == lost
        assert not book.missing_count and not book.doubled_count


def test_a_year_of_ids_takes_no_memory():
    frontier = SparseFrontier(0)
    year = [number * 3_600_000 << 20 for number in range(1, 8760)]
    assert frontier.read(year) is None
    frontier.settle(year[:-1])
    frontier.advance()
    assert (frontier.position, frontier.span) == (year[-1], 1)
    assert len(frontier.encode()) < 100


def test_a_checkpoint_names_what_is_unsettled_up_to_a_bound():
    frontier = SparseFrontier(0)
    positions = list(range(0, 10_000_000, 1000))
    frontier.read(positions)
    frontier.settle(positions[5000::2])
    again = SparseFrontier(0, frontier.encode())
    assert again.unsettled_below(10**12, 10**6) == positions[:MOST_OPEN]
    assert again.read(positions) == [index for index in range(10_000) if index < 5000 or index % 2]


def test_what_is_passed_without_an_end_is_missing_and_what_ends_twice_is_doubled():
    book = SparseBook(0)
    book.read([5, 500, 50_000])
    book.settle([5, 500], Fate.SUCCEEDED)
    book.settle([500], Fate.DEAD)
    book.passed(50_001)
    assert (book.missing, book.doubled) == ([50_000], [500])
    audit = audit_of("t", "p", book, {})
    assert (audit.sum, audit.length, audit.good) == (2, 3, False)


def test_the_whole_sums_up_and_a_part_is_refused():
    book = SparseBook(0)
    book.read([5, 500, 50_000], absent=[600])
    book.settle([500], Fate.DEAD)
    book.skip(60_000, Fate.LOST, 7)
    audit = audit_of("t", "p", book, {"in flight": [5], "held": [50_000]})
    assert audit.good and audit.length == 11
    assert audit.counts == {"dead": 1, "absent": 1, "lost to retention": 7, "in flight": 1, "held": 1}
    with pytest.raises(InvalidRequest, match="as a whole"):
        audit_of("t", "p", book, {}, (0, 500))


def test_a_dense_checkpoint_is_not_taken_for_a_sparse_one():
    with pytest.raises(InvalidRequest, match="sparse"):
        SparseFrontier(0, b"\x01xyz")


def test_a_checkpoint_tells_what_is_settled_above_it():
    frontier = SparseFrontier(0)
    frontier.read([5, 70, 900, FAR])
    frontier.settle([5, 900])
    assert frontier.advance()
    assert (frontier.position, settled_ahead(frontier.position, frontier.encode())) == (70, {900})
    assert settled_ahead(7, b"") == frozenset()
