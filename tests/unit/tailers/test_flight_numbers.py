"""Numbers of items that run at several schedulers, and which hand-out of a position counts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.workload import INDEX_BITS, ref
from tailrace.tailers.rules.flight_numbers import OWN, flight_here, flights_of, newest, ref_here, refs_of, side_of
from tailrace.tailers.session import Inheritance
from tailrace.tailers.takeover.side_sessions import of_newest

SIDES = st.integers(0, 9)
FLIGHTS = st.integers(1, (1 << 48) + (1 << 20))
INDEXES = st.integers(0, (1 << INDEX_BITS) - 1)


@given(st.sets(st.tuples(SIDES, FLIGHTS, INDEXES)))
def test_each_side_speaks_of_its_own_and_all_of_it_by_the_numbers_of_its_scheduler(items: set) -> None:
    # Given items of several sessions, whose schedulers may number alike
    here = {ref_here(side, ref(flight, index)): (side, flight, index) for side, flight, index in items}
    # Then no two are one, and each goes back to whom it came from
    assert len(here) == len(items)
    assert all(side_of(each) == side for each, (side, *_) in here.items())
    assert all(ref(flight_here(side, flight), index) == each for each, (side, flight, index) in here.items())
    for side in range(10):
        mine = {(flight, index) for owner, flight, index in items if owner == side}
        assert flights_of(side, here) == sorted({flight for flight, _ in mine})
        assert sorted(refs_of(side, here)) == sorted(ref(flight, index) for flight, index in mine)


def test_the_numbers_of_the_tailers_own_session_are_its_schedulers() -> None:
    assert (ref_here(OWN, 5), flight_here(OWN, 1 << 48)) == (5, 1 << 48)


def test_of_two_hand_outs_of_a_position_the_newer_one_counts() -> None:
    # Given a scheduler that was left, which knows of items that were handed out again at another one since
    left = [Inheritance(1, 7, "0", {0: 3, 1: 4}), Inheritance(2, 8, "0", {0: 5})]
    other = [Inheritance(1, 9, "0", {0: 3, 1: 5}), Inheritance(2, 6, "1", {0: 3})]
    fences = newest(
        ((each.part, position), each.fence) for each in (*left, *other) for position in each.positions.values()
    )
    # Then each item is somebody's once
    assert fences == {("0", 3): 9, ("0", 4): 7, ("0", 5): 9, ("1", 3): 6}
    assert of_newest(left, fences) == [Inheritance(1, 7, "0", {1: 4})]
    assert of_newest(other, fences) == other
