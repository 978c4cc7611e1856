"""Retention that passed a reader: exact where everything was counted, never silent where it was not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.tailers.rules.retention_loss import (
    Had,
    LastRead,
    StreamFacts,
    Taken,
    at_end,
    is_another,
    opened,
    passes_over,
    still,
    taken_by_retention,
)

STEPS = st.lists(st.tuples(st.sampled_from(["add", "trim", "read", "restart"]), st.integers(1, 9)), max_size=40)


@given(STEPS, st.booleans())
def test_what_is_trimmed_before_it_was_read_is_told_and_nothing_else(steps, notes_everything):
    """The stream's positions are 10 apart; `there` is what it has, `added` all it ever had."""
    there: list[int] = []
    added, had, noted = 0, Had(0, 0), None
    for step, number in steps:
        if step == "add":
            there += [10 * (added + index + 1) for index in range(number)]
            added += number
        elif step == "trim":
            del there[:number]
        facts = StreamFacts(len(there), there[0] if there else None, 10 * added if added else -1, added)
        if step == "restart":
            had = opened(had.next, noted, facts) if had.next else Had(0, facts.removed)
        elif step == "read":
            wanted = [10 * index for index in range(1, added + 1) if 10 * index >= had.next]
            lost = [position for position in wanted if position not in there]
            if not had.next:
                had, lost = Had(0, facts.removed), []
            taken = taken_by_retention(had, facts)
            if lost:
                assert taken is not None and taken.first <= lost[0] and lost[-1] <= taken.last
                assert taken.items in (len(lost), 0)
                assert taken.items or not had.exact
                had = Had(taken.last + 1, had.entries + taken.items if taken.items else -1, taken.items > 0)
            elif had.exact:
                assert taken is None
            page = [position for position in there if position >= had.next][:number]
            if page:
                had = Had(page[-1] + 1, had.entries + len(page) if had.exact else -1, had.exact)
            had = at_end(had, facts)
            if had.exact and (notes_everything or number > 5):
                noted = had


def test_an_old_note_cannot_tell_so_what_may_be_lost_counts_as_lost():
    had = opened(100, Had(50, 5), StreamFacts(3, 200, 300, 20))
    assert had == Had(100, 5, False)
    assert taken_by_retention(had, StreamFacts(3, 200, 300, 20)) == Taken(100, 199, 0)
    assert taken_by_retention(had, StreamFacts(15, 200, 300, 20)) is None, "no more are gone than were surely had"


def test_a_server_that_does_not_count_is_believed_only_while_the_entry_read_last_is_there():
    assert taken_by_retention(Had(100, -1, False), StreamFacts(5, 90, 300)) is None
    assert taken_by_retention(Had(100, -1, False), StreamFacts(5, 110, 300)) == Taken(100, 109, 0)


def test_a_stream_that_never_forgot_anything_lost_nothing():
    assert taken_by_retention(Had(100, -1, False), StreamFacts(5, 110, 300, 5)) is None


def test_deletions_ahead_of_the_reader_make_the_count_unsure():
    assert taken_by_retention(Had(100, 10), StreamFacts(5, 130, 300, 18, deleted=120)) == Taken(100, 129, 0)
    assert taken_by_retention(Had(100, 10), StreamFacts(5, 130, 300, 18, deleted=90)) == Taken(100, 129, 3)


def test_a_stream_made_anew_begins_anew():
    assert still(Had(100, 50), StreamFacts(5, 130, 300, 5)) == Had(100, 0)


READ = LastRead(100, 50, b"x")


@pytest.mark.parametrize(
    ("digest", "facts", "another"),
    [
        (b"x", StreamFacts(60, 1, 110, 60), False),
        (b"y", StreamFacts(60, 1, 110, 60), True),  # another entry has its position
        (None, StreamFacts(1, 7, 7, 1), True),  # it ends before
        (None, StreamFacts(0, None, -1), False),  # there is none yet
        (None, StreamFacts(40, 10, 400, 40), True),  # fewer were ever added than were read
        (None, StreamFacts(60, 5, 400, 60), True),  # nothing was ever taken from it
        (None, StreamFacts(10, 350, 400, 60), False),  # trimmed, as all before it
        (None, StreamFacts(59, 5, 400, 60, 100), False),  # deleted by its name
    ],
)
def test_a_stream_is_known_again_by_an_entry_that_was_read(digest, facts: StreamFacts, another: bool) -> None:
    assert is_another(READ, digest, facts) is another
    assert not is_another(LastRead(), None, facts)


def test_only_what_is_older_than_the_position_is_passed_over() -> None:
    assert passes_over(101, StreamFacts(60, 5, 400, 60)) and passes_over(101, StreamFacts(0, None, 7, 1))
    assert not passes_over(101, StreamFacts(60, 102, 400, 60)) and not passes_over(101, StreamFacts(0, None, -1))
