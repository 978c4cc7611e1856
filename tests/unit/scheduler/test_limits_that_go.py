"""Limits that come and go while something sleeps on them, or was charged by them (FL3, FL20)."""

from __future__ import annotations

import pytest
from unit.scheduler.test_scheduler_core import WALL, sent
from unit.scheduler.test_unit_rates import TOKENS, measured, push, turned

from tailrace.model.limits import Quota
from tailrace.model.outcome import Outcome
from tailrace.model.unit_rate import UnitRate
from tailrace.model.workload import Ended, Kind, Outcomes

ROWS = Quota(downstream="openai", units=(UnitRate("rows", 1.0, 1.0),))


@pytest.mark.parametrize("after", [[], [ROWS]])
def test_a_run_tells_what_it_used_of_a_unit_that_is_limited_no_more(after: list[Quota]) -> None:
    # Given one that runs, and others that sleep on the rate of a unit
    made, worker, tailer = measured(TOKENS)
    push(made, tailer, 1, *[(Kind("a"), 900.0)] * 3)
    [running] = sent(made, worker, 0.0)
    # When an operator takes that rate away before the run tells what it used
    made.apply([], after, [], 2, 0.0)
    ended = Ended(Outcome.SUCCESS, used=(("openai", "tokens", 10.0),))
    made.report(worker, Outcomes([], {running: ended}), 0.0, WALL)
    # Then the others start as the quotas say that are in force
    assert len(turned(made, worker, 0.0)) == (1 if after else 2)
    assert len(turned(made, worker, 5.0)) == (1 if after else 0)
