"""The lanes that a claim on PostgreSQL visits: all that this process stored something in, none found empty since."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tailrace.stores.queue.postgres.lanes_with_work import LanesWithWork

LANES = st.integers(1, 4)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), LANES),
        st.tuples(st.just("begin"), st.just(0)),
        st.tuples(st.just("empty"), LANES),
        st.tuples(st.just("found"), LANES),
    ),
    max_size=40,
)


def test_a_look_that_began_before_something_was_put_does_not_empty_its_lane() -> None:
    stocked = LanesWithWork()
    stocked.put([1, 2])
    look = stocked.looking()
    stocked.put([2])
    stocked.empty(1, look)
    stocked.empty(2, look)
    assert stocked.lanes == [2]
    stocked.found([3], look)
    assert stocked.lanes == [2, 3]
    stocked.found([], stocked.looking())
    assert stocked.lanes == []


@given(STEPS)
def test_what_was_put_since_a_look_began_is_visited_whatever_that_look_says(steps: list[tuple[str, int]]) -> None:
    # Given stores, and looks whose answers come at any time after they began
    stocked, look, since = LanesWithWork(), 0, set[int]()
    for what, lane in steps:
        if what == "put":
            stocked.put([lane])
            since.add(lane)
        elif what == "begin":
            look, since = stocked.looking(), set()
        elif what == "empty":
            stocked.empty(lane, look)
            assert lane in since or lane not in stocked.lanes
        else:
            stocked.found([lane], look)
            assert set(stocked.lanes) == {lane} | since
        # Then nothing is left out that was put since
        assert since <= set(stocked.lanes)
