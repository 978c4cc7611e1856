"""Turns of lanes: the whole room is used, priorities go first, nobody is starved."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tailrace.stores.queue.turns import ReadyLane, turns

lanes = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 300)), min_size=1, max_size=20).map(
    lambda each: [ReadyLane(lane, priority, limit) for lane, (priority, limit) in enumerate(each)]
)


@given(lanes, st.integers(1, 1024), st.floats(0, 0.5), st.integers(0, 10_000))
def test_a_plan_keeps_to_its_limits(ready: list[ReadyLane], total: int, share: float, turn: int) -> None:
    plan = turns(ready, total, share, turn)
    limits = {lane.lane: lane.limit for lane in ready}
    assert len({visit.lane for visit in plan}) == len(plan)
    assert all(0 < visit.limit <= limits[visit.lane] for visit in plan)
    assert sum(visit.limit for visit in plan) <= total
    assert [visit.priority for visit in plan] == sorted(visit.priority for visit in plan)


@given(lanes, st.integers(1, 1024), st.integers(0, 10_000))
def test_without_a_share_all_the_room_is_used(ready: list[ReadyLane], total: int, turn: int) -> None:
    plan = turns(ready, total, 0.0, turn)
    assert sum(visit.limit for visit in plan) == min(total, sum(lane.limit for lane in ready))


@given(st.integers(1, 200), st.floats(0.01, 0.5))
def test_lower_priorities_get_their_share_of_a_flood_and_no_more(total: int, share: float) -> None:
    ready = [ReadyLane(0, 0, 1000), ReadyLane(1, 3, 1000)]
    calls = 400
    low = sum(visit.limit for turn in range(calls) for visit in turns(ready, total, share, turn) if visit.priority)
    assert abs(low - calls * total * share) <= total + 1


def test_a_single_place_goes_to_the_higher_priority_nearly_always() -> None:
    ready = [ReadyLane(0, 0, 10), ReadyLane(1, 3, 10)]
    first = [turns(ready, 1, 0.05, turn)[0].priority for turn in range(100)]
    assert first.count(0) == 95


def test_lanes_of_one_priority_begin_in_turn() -> None:
    ready = [ReadyLane(lane, 1, 1000) for lane in range(4)]
    assert [turns(ready, 3, 0.05, turn)[0].lane for turn in range(4)] == [0, 1, 2, 3]


def test_a_flood_of_one_lane_leaves_room_for_the_others() -> None:
    ready = [ReadyLane(0, 1, 1000), ReadyLane(1, 1, 1), ReadyLane(2, 1, 1000)]
    assert {visit.lane: visit.limit for visit in turns(ready, 301, 0.05, 0)} == {0: 199, 1: 1, 2: 101}
