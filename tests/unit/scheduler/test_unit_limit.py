"""The bucket of a rate in a unit, against one that knew from the start the use of each run."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.model.unit_rate import UnitRate
from tailrace.scheduler.rules.unit_limit import LONGEST_DEBT, MOST_HEIGHTS, UnitLimit

RATE, BURST = 10.0, 100.0
amounts = st.sampled_from([0.0, 0.25, 1.0, 10.0, 35.0, 99.0, 100.0, 160.0])
#: Time passes; an item starts; of those that run one ends, having used so much.
steps = st.lists(
    st.one_of(
        st.tuples(st.just("time"), st.sampled_from([0.0, 0.01, 0.5, 3.0, 12.0])),
        st.tuples(st.just("take"), amounts),
        st.tuples(st.just("end"), st.integers(0, 20), amounts),
    ),
    max_size=80,
)


def knowing(starts: list[list[float]], now: float) -> float:
    """Amount that a bucket holds now that was charged the known use of each item as it started."""
    held, at = BURST, 0.0
    for started, amount in starts:
        held, at = min(BURST, held + (started - at) * RATE) - amount, started
    return min(BURST, held + (now - at) * RATE)


@given(steps)
@settings(max_examples=500)
def test_it_never_holds_more_than_one_that_knew_what_runs_use(story: list[tuple[object, ...]]) -> None:
    limit, now = UnitLimit("l", "d", UnitRate("tokens", RATE, BURST), 0.0), 0.0
    starts: list[list[float]] = []  # moment, what is known to be used
    running: list[tuple[int, float, int]] = []  # place among the starts, estimate, what `take` said
    for step in story:
        match step:
            case ("time", float(seconds)):
                now += seconds
            case ("take", float(amount)):
                if limit.enough(limit.holds(now), amount):
                    running.append((len(starts), amount, limit.take(amount, now)))
                    starts.append([now, amount])
            case ("end", int(which), float(used)) if running:
                place, estimate, since = running.pop(which % len(running))
                limit.put_right(estimate, used, since, now)
                starts[place][1] = used
        assert limit.holds(now) <= knowing(starts, now) + 1e-6
        assert limit.holds(now) >= -LONGEST_DEBT * RATE
        assert len(limit._heights) <= MOST_HEIGHTS


@given(st.lists(st.tuples(st.sampled_from([0.0, 1.0, 4.0]), st.sampled_from([1.0, 20.0, 40.0])), max_size=40))
def test_where_nothing_ran_over_all_of_it_comes_back(story: list[tuple[float, float]]) -> None:
    # Given a bucket that is kept far from full by one long run
    limit, now = UnitLimit("l", "d", UnitRate("tokens", RATE, BURST), 0.0), 0.0
    spent = 0.0
    limit.put_right(0.0, 1000.0, limit.take(0.0, 0.0), 0.0)
    for seconds, amount in story[:20]:
        # When runs are charged far too much, and it is put right
        now += seconds
        since = limit.take(amount, now)
        now += seconds
        limit.put_right(amount, amount / 4, since, now)
        spent += amount / 4
        # Then it holds what it would had they been charged right
        assert limit.holds(now) == pytest.approx(BURST - 1000.0 - spent + now * RATE)


def test_what_comes_back_of_one_run_counts_where_another_one_comes_back() -> None:
    # Given two runs that took all there was, and a third one a while later
    limit = UnitLimit("l", "d", UnitRate("tokens", RATE, BURST), 0.0)
    first, second = limit.take(50.0, 0.0), limit.take(50.0, 0.0)
    limit.take(10.0, 4.0)
    # When the first turns out to have used nothing, Then it holds what it would without it
    limit.put_right(50.0, 0.0, first, 4.0)
    assert limit.holds(4.0) == 80.0
    # And the second: then it would have been full before the third
    limit.put_right(50.0, 0.0, second, 4.0)
    assert limit.holds(4.0) == 90.0


def test_what_comes_back_to_a_full_bucket_runs_over() -> None:
    # Given a run that lasted until the bucket was full again
    limit = UnitLimit("l", "d", UnitRate("tokens", RATE, BURST), 0.0)
    since = limit.take(50.0, 0.0)
    assert limit.holds(10.0) == BURST
    # When it turns out to have used nothing, Then there is no more than the burst
    limit.put_right(50.0, 0.0, since, 10.0)
    assert limit.holds(10.0) == BURST


def test_heights_beyond_the_bound_count_as_the_higher_neighbour() -> None:
    limit = UnitLimit("l", "d", UnitRate("tokens", RATE, 1000.0), 0.0)
    first = limit.take(1.0, 0.0)
    marks = [limit.take(1.0, 0.0) for _ in range(5 * MOST_HEIGHTS)]
    assert len(limit._heights) <= MOST_HEIGHTS
    held = limit.holds(0.0)
    limit.put_right(1.0, 0.0, marks[-1], 0.0)
    assert held < limit.holds(0.0) <= held + 1.0
    limit.put_right(1.0, 0.0, first, 0.0)
    assert limit.holds(0.0) <= held + 2.0


def test_other_numbers_keep_debts_and_what_gathered() -> None:
    limit = UnitLimit("l", "d", UnitRate("tokens", RATE, BURST), 0.0)
    limit.take(150.0, 0.0)
    limit.renew(UnitRate("tokens", 5.0, 20.0, estimate=7.0), 1.0, 2)
    assert (limit.holds(1.0), limit.usual, limit.version) == (-40.0, 7.0, 2)
    assert limit.has_at(1000.0) == pytest.approx(1.0 + 60.0 / 5.0)
    assert limit.holds(1e6) == 20.0 and limit.idle(1e6)
