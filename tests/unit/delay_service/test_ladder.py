"""The ladder: never early, the bound kept, as few hops as possible."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from tailrace.delay_service.rules.ladder import DEFAULT_RUNGS, MAX_RUNGS, TOLERANCE, Ladder
from tailrace.model.errors import ConfigError

NOW = 1_700_000_000.0
MONTH = 30 * 86_400.0

ladders = st.lists(st.integers(1, 50_000), min_size=1, max_size=MAX_RUNGS, unique=True).map(
    lambda waits: Ladder(tuple(float(wait) for wait in sorted(waits)))
)
small_ladders = st.lists(st.integers(1, 40), min_size=1, max_size=4, unique=True).map(
    lambda waits: Ladder(tuple(float(wait) for wait in sorted(waits)))
)


def chain(
    ladder: Ladder, delay: float, late: tuple[float, ...] = (), bound: int = 100_000
) -> tuple[list[float], float]:
    """Waits of an item parked at NOW with a delay, and when it left the ladder; move n comes `late[n]` late."""
    due, now, waits = NOW + delay, NOW, []
    latest = ladder.latest(due, now)
    lateness = itertools.chain(late, itertools.repeat(0.0))
    while (rung := ladder.next_rung(due, latest, now)) is not None:
        waits.append(ladder.rungs[rung])
        now = max(now, ladder.release_at(now, rung, due)) + next(lateness)
        assert len(waits) <= bound
    return waits, now


def optimum(ladder: Ladder, delay: int, room: int) -> int:
    """The fewest waits that add up to between delay and room, by trying every sum."""
    if delay <= 0:
        return 0
    reached, hops = {0}, 0
    while not any(delay <= total <= room for total in reached):
        reached = {int(total + wait) for total in reached for wait in ladder.rungs if total + wait <= room}
        hops += 1
    return hops


@given(ladders, st.floats(0, 200_000))
def test_a_prompt_chain_is_never_early_and_within_the_tolerance(ladder: Ladder, delay: float) -> None:
    assume(delay / ladder.rungs[-1] < 2000)
    waits, left = chain(ladder, delay)
    assert left >= NOW + delay
    assert left <= NOW + delay + max(ladder.rungs[0], TOLERANCE * delay) + 1e-3
    assert sum(waits) >= delay - 1e-3


@given(st.floats(0, MONTH))
def test_the_default_ladder_keeps_its_bound_up_to_a_month(delay: float) -> None:
    _, left = chain(Ladder(), delay)
    assert 0 <= left - (NOW + delay) <= max(1.0, 0.05 * delay) + 1e-3


@given(st.floats(0.1, MONTH), st.lists(st.floats(0, 5000), max_size=30))
def test_late_moves_shorten_the_rest_and_never_make_it_early(delay: float, late: list[float]) -> None:
    ladder = Ladder()
    prompt, _ = chain(ladder, delay)
    waits, left = chain(ladder, delay, tuple(late))
    assert left >= NOW + delay
    # What is still late at the end is at most the tolerance or the lateness of the moves themselves.
    assert left <= NOW + delay + ladder.tolerance(delay) + sum(late) + 1e-3
    assert sum(waits) <= sum(prompt) + ladder.tolerance(delay) + 1e-3


@settings(deadline=None)
@given(small_ladders, st.integers(0, 120))
@example(Ladder((1.0, 20.0, 21.0, 39.0)), 109)  # five of the third one, which the longest one leaves no room for
def test_a_small_ladder_takes_the_fewest_hops_there_are(ladder: Ladder, delay: int) -> None:
    waits, _ = chain(ladder, float(delay))
    assert len(waits) == optimum(ladder, delay, math.floor(delay + ladder.tolerance(delay)))


@given(st.integers(0, 4000))
def test_a_nested_ladder_takes_the_fewest_hops_there_are(delay: int) -> None:
    ladder = Ladder((1.0, 5.0, 30.0, 60.0, 300.0))
    waits, _ = chain(ladder, float(delay))
    assert len(waits) == optimum(ladder, delay, math.floor(delay + ladder.tolerance(delay)))


@given(st.floats(0, MONTH))
def test_the_default_ladder_has_few_hops_up_to_a_month(delay: float) -> None:
    waits, _ = chain(Ladder(), delay)
    # Per rung at most one less than what makes the next one, the longest one as often as it fits.
    assert len(waits) <= 4 + 5 + 1 + 4 + 5 + 11 + delay / DEFAULT_RUNGS[-1]


@given(ladders, st.integers(0, 200_000))
def test_no_ladder_does_worse_than_taking_the_longest_rung_that_fits(ladder: Ladder, delay: int) -> None:
    assume(delay / ladder.rungs[-1] < 200)
    remaining, room, greedy = delay, delay + ladder.tolerance(delay), 0
    while remaining > 0:
        wait = max((wait for wait in ladder.rungs if wait <= room), default=ladder.rungs[0])
        remaining, room, greedy = remaining - wait, room - wait, greedy + 1
    waits, _ = chain(ladder, delay)
    assert len(waits) <= greedy


@pytest.mark.parametrize(
    ("delay", "waits"),
    [
        (0.0, []),
        (0.3, [1]),
        (1.0, [1]),
        (5.0, [5]),
        (7.0, [5, 1, 1]),
        (29.0, [30]),
        (60.0, [60]),
        (3600.0, [1800, 1800]),
        (6 * 3600.0, [21_600]),
        (MONTH, [21_600] * 120),
    ],
)
def test_what_the_default_ladder_makes_of_common_delays(delay: float, waits: list[float]) -> None:
    assert chain(Ladder(), delay)[0] == waits


@pytest.mark.parametrize(
    ("rungs", "says"),
    [
        ((), "0 given"),
        (tuple(float(n) for n in range(1, 18)), "17 given"),
        ((0.0, 1.0), "more than 0"),
        ((-1.0,), "more than 0"),
        ((1.0, math.inf), "more than 0"),
        ((1.0, 1.0), "longer than the one before"),
        ((5.0, 1.0), "longer than the one before"),
    ],
)
def test_a_ladder_that_cannot_be_is_refused(rungs: tuple[float, ...], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        Ladder(rungs)
