"""Objectives: shares of recent counts, however many processes count and however often they began anew."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from tailrace.foundation.clock import SYSTEM_CLOCK
from tailrace.gateway.config import GatewayConfig
from tailrace.gateway.objectives import MOST, Objectives
from tailrace.gateway.rules.objectives import (
    ACCEPTED,
    LOOK_BACK,
    POINTS,
    START_DELAY,
    Rising,
    is_missed,
    judged_objectives,
    within,
)
from tailrace.gateway.submission_measures import SubmissionMeasures
from tailrace.model.errors import InvalidRequest
from tailrace.model.metrics import WAIT_BOUNDS
from tailrace.model.workload import Kind
from tailrace.stores.queue.intake import NewItem

OF = ("mail", "interactive")
OBJECTIVES = GatewayConfig().service_levels.objectives()
STEPS = st.lists(st.tuples(st.floats(0.1, 60), st.integers(0, 50), st.integers(0, 50), st.booleans()), max_size=60)


@given(STEPS)
def test_what_was_counted_lately_is_the_sum_of_what_came_within_it(
    steps: list[tuple[float, int, int, bool]],
) -> None:
    # Given a part that counts, and begins anew now and then
    rising, now, met, total = Rising(began=True), 0.0, 0, 0
    came: list[tuple[float, int, int]] = []
    for gap, good, bad, anew in steps:
        now += gap
        if anew and good + bad < total:
            met, total = 0, 0
            came.clear()
        met, total = met + good, total + good + bad
        came.append((now, good, good + bad))
        rising.seen({OF: (met, total)}, now)
        # Then no more is told than came since the look back, and no less than since a point later than that
        told = rising.lately().get(OF, (0, 0))
        most = sum(count for at, _, count in came if at > now - LOOK_BACK - POINTS - 60)
        least = sum(count for at, _, count in came if at > now - LOOK_BACK + POINTS + 60)
        assert least <= told[1] <= most
        assert 0 <= told[0] <= told[1]


def test_what_a_part_counted_before_it_was_first_heard_of_is_not_of_late() -> None:
    rising = Rising()
    rising.seen({OF: (10, 1000)}, 0.0)
    assert rising.lately() == {}
    rising.seen({OF: (30, 1020)}, 5.0)
    assert rising.lately() == {OF: (20, 20)}
    # And one that begins anew has counted all of it lately
    rising.seen({OF: (1, 4)}, 6.0)
    assert rising.lately() == {OF: (1, 4)}


@given(st.lists(st.integers(0, 100), min_size=18, max_size=18), st.floats(0.001, 30_000))
def test_what_surely_met_a_delay_is_what_lies_below_the_bound_before_it(counts: list[int], most: float) -> None:
    found = within(counts, WAIT_BOUNDS, most)
    assert found == sum(count for count, bound in zip(counts, WAIT_BOUNDS, strict=False) if bound <= most)
    assert found <= sum(counts[:-1])


def test_each_function_and_level_is_judged_by_its_own_objectives() -> None:
    starts = [{OF: (8, 10)}, {OF: (1, 10), ("scan", "eventual"): (3, 3)}, {("odd", "of another version"): (0, 9)}]
    found = judged_objectives(starts, {OF: (999, 1000)}, OBJECTIVES)
    assert [(each.objective, each.function, each.observed, each.target, each.items) for each in found] == [
        (START_DELAY, "mail", 0.45, 0.95, 20),
        (START_DELAY, "scan", 1.0, 0.95, 3),
        (ACCEPTED, "mail", 0.999, 0.999, 1000),
    ]
    assert [is_missed(each) for each in found] == [True, False, False]


def test_a_gateway_hears_of_few_schedulers_and_counts_its_own_submissions() -> None:
    seen = SubmissionMeasures(SYSTEM_CLOCK)
    objectives = Objectives(OBJECTIVES, seen, SYSTEM_CLOCK)
    mail = NewItem(Kind("mail", 0), b"")
    seen.ended([mail] * 3, (), 0.01, "accepted")
    seen.ended([mail], (), 0.01, "refused")
    for number in range(MOST + 5):
        objectives.tell(f"scheduler-{number}", [("mail", "interactive", [1] * 18), ("mail", "no level", [1])])
    assert len(objectives._starts) == MOST
    objectives.tell("scheduler-7", [("mail", "interactive", [2] * 18)])
    with pytest.raises(InvalidRequest):
        objectives.tell("", [])
    found = {each.objective: each for each in objectives.observed()}
    assert (found[ACCEPTED].observed, found[ACCEPTED].items) == (0.75, 4)
    # 18 more, of which those up to 5 s met the objective
    assert (found[START_DELAY].observed, found[START_DELAY].items) == (10 / 18, 18)


def test_ten_thousand_functions_make_no_ten_thousand_series() -> None:
    seen = SubmissionMeasures(SYSTEM_CLOCK)
    for number in range(10_000):
        seen.ended([NewItem(Kind(f"f{number}", number % 9, "", f"tenant-{number}"), b"")], (), 0.01, "accepted")
    assert len(seen.samples()) < 1100
    assert sum(seen.results.values()) == 10_000


def test_a_file_may_change_one_objective() -> None:
    config = GatewayConfig.model_validate({"service_levels": {"eventual": {"start": "1m", "accepted_share": 0.9}}})
    assert tuple(config.service_levels.objectives()["eventual"]) == (60, 0.95, 0.9)
    assert tuple(OBJECTIVES["interactive"]) == (5, 0.95, 0.999)
    for wrong in ({"start": 0}, {"start_share": 1}, {"accepted_share": 1.5}):
        with pytest.raises(ValidationError):
            GatewayConfig.model_validate({"service_levels": {"eventual": wrong}})
