"""Detaching: when an item that runs long is passed, with its row and its guard."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.model.ledger import TERMINAL, LedgerEntry, LedgerPlace
from tailrace.stores.ledger.lifecycle import refusal
from tailrace.tailers.rules.detached import FIRST_LOOK, LAST_LOOK, Ages, guard_due, holding_up, look_every
from tailrace.tailers.rules.frontier import Frontier
from tailrace.tailers.rules.ledger import CopyVerdict, Due, Find, copy_finds, detached, found, parking, released, starts
from tailrace.tailers.rules.settlement import Action, History, Settlement
from tailrace.tailers.rules.sparse_frontier import SparseFrontier

AFTER = 10.0
HISTORY = History(attempt=3, crashes=1, throttles=2)
ROW = detached(None, 7, HISTORY, fence=5, first_seen=1.0)


@settings(max_examples=30)
@given(st.lists(st.tuples(st.floats(0.01, 4.0), st.integers(0, 3), st.integers(0, 10)), max_size=60))
def test_flights_are_old_when_they_have_been_out_for_long_and_no_later_than_a_look_after_it(steps):
    """Flights go out and end in any order between looks; each look says which of those that are out are old."""
    ages, now, newest, looked = Ages(AFTER), 0.0, 0, 0.0
    out: dict[int, float] = {}
    looks: list[float] = []
    for pause, begun, ended in steps:
        now += pause
        for _ in range(begun):
            newest += 1
            out[newest] = now
        for number in sorted(out)[:ended:2]:
            del out[number]
        looked = now
        looks.append(looked)
        upto = ages.look(now, max(out, default=0))
        for number, since in out.items():
            if number <= upto:
                assert since <= now - AFTER
            seen_first = next(look for look in looks if look >= since)  # the first look that knew of it
            if seen_first <= now - AFTER:
                assert number <= upto


@settings(max_examples=30)
@given(st.floats(0.01, 1e6))
def test_looks_are_often_enough(after):
    assert 0 < look_every(after) <= after / 4


@settings(max_examples=30)
@given(st.floats(1, 1e9), st.floats(0, 1e6))
def test_a_guard_is_looked_at_within_a_quarter_of_the_work_that_would_be_lost(now, age):
    wait = guard_due(now, now - age) - now
    assert FIRST_LOOK - 1e-3 <= wait <= LAST_LOOK + 1e-3
    assert wait <= max(FIRST_LOOK, age / 4) + 1e-3


@settings(max_examples=30)
@given(st.sets(st.integers(0, 30)), st.sets(st.integers(0, 30)))
def test_only_what_something_is_done_behind_is_in_the_way(read, done):
    read, done = sorted(read), sorted(done & read)
    frontier, sparse = Frontier(0), SparseFrontier(0)
    for each in (frontier, sparse):
        each.read(read)
        each.settle(done)
        each.advance()
    left = [position for position in read if position not in done]
    wanted = [position for position in left if done and position < done[-1]]
    assert list(holding_up(left, sparse.newest_settled)) == wanted
    # Positions that hold nothing count as done where they are dense; nothing that was read lies behind the last one.
    assert set(wanted) <= set(holding_up(left, frontier.newest_settled))


@pytest.mark.parametrize("before", [None, LedgerEntry(7, LedgerPlace.SUSPECT, fence=3, first_seen=0.5)])
def test_its_row_keeps_what_is_known_of_it_and_no_copy_starts_from_it(before):
    row = detached(before, 7, HISTORY, 5, 1.0)
    assert refusal(before, row, owner=True) == ""
    assert (row.n, row.attempts, row.crashes, row.throttles, row.fence) == (1, 2, 1, 2, 5)
    assert row.is_detached and row.first_seen == (before.first_seen if before else 1.0)
    assert found(row) is Find.OUT
    for n in (0, 1, 2):
        assert copy_finds(row, n, 9) is CopyVerdict.GUARD
    plan = starts({7: row}, [Due(7, 1), Due(7, 1)], 9, 1 << 40, 1e10)
    assert plan.guard == {0: row, 1: row} and not (plan.start or plan.append or plan.wait or plan.over)


def test_a_copy_of_an_older_owner_of_what_is_due_learns_that_it_is_stale():
    assert copy_finds(ROW._replace(epoch=9), 1, 8) is CopyVerdict.STALE


def test_once_released_its_guard_starts_when_it_is_due_and_not_before():
    row = released(ROW, 100.0, attempts=4)
    assert refusal(ROW, row, owner=True) == "" and not row.is_detached
    assert (row.n, row.attempts, row.crashes, row.fence) == (ROW.n, 4, ROW.crashes, ROW.fence)
    assert found(row) is Find.APPEND
    assert starts({7: row}, [Due(7, 1)], 9, 1 << 40, 99.0).wait == {0: 100.0}
    (_, run) = starts({7: row}, [Due(7, 1)], 9, 1 << 40, 100.0).start[0]
    assert run.place is LedgerPlace.RUNNING and run.fence > row.fence


@pytest.mark.parametrize("place", sorted(TERMINAL))
def test_its_owner_ends_it(place):
    assert refusal(ROW, ROW._replace(place=place), owner=True) == ""
    assert copy_finds(ROW._replace(place=place), 1, 9) is CopyVerdict.OVER


def test_when_it_fails_it_is_parked_and_its_guard_is_of_the_past():
    failed = Settlement(Action.PARK, 1.0, 3, 1, 0, "no")
    row = parking(ROW, 7, failed, 50.0, 5, 2.0)
    assert refusal(ROW, row, owner=True) == ""
    assert (row.n, row.first_seen) == (2, 1.0)
    assert copy_finds(row, 1, 9) is CopyVerdict.APPEND  # L18: its own may not have been appended
    assert copy_finds(row._replace(place=LedgerPlace.PARKED), 1, 9) is CopyVerdict.OVER
