"""The watchdog: work and no completion for a bound is unhealthy, with the likely cause; nothing else is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.tailers.rules.watchdog import StallCause, Watchdog, WatchdogFacts

BOUND = 60.0


@given(st.lists(st.tuples(st.floats(0, 30), st.booleans(), st.booleans()), max_size=60))
def test_it_is_unhealthy_exactly_when_work_waited_for_the_bound(steps: list[tuple[float, bool, bool]]) -> None:
    dog, now, completions, since = Watchdog(BOUND), 100.0, 0, 100.0
    dog.look(WatchdogFacts(0), now)
    for seconds, got_on, busy in steps:
        now += seconds
        completions += got_on
        if got_on or not busy:
            since = now
        verdict = dog.look(WatchdogFacts(completions, lag=int(busy)), now)
        assert verdict.healthy == (now - since < BOUND)
        assert verdict.healthy == (verdict.cause is StallCause.NONE)
        assert verdict.idle == now - since


@pytest.mark.parametrize(
    ("facts", "cause"),
    [
        ({"source": "no such table", "paused": True}, StallCause.SOURCE),
        ({"starting": "its former owner"}, StallCause.STARTING),
        ({"paused": True, "gate": "paused by ann"}, StallCause.PAUSED),
        ({"scheduler": "cannot be reached", "no_worker": "no worker"}, StallCause.SCHEDULER),
        ({"store": "the disk is full", "in_flight": 3}, StallCause.STORE),
        ({"clogged": "f is clogged", "held": 5}, StallCause.CLOGGED),
        ({"gate": "f is paused by ann", "held": 5}, StallCause.GATE),
        ({"no_worker": "no worker runs f"}, StallCause.NO_WORKER),
        ({"in_flight": 3, "oldest": 95.0, "held": 5}, StallCause.SLOW),
        ({"held": 5, "held_because": "not due"}, StallCause.HELD),
        ({}, StallCause.NO_CREDIT),
    ],
)
def test_the_likely_cause_is_the_first_that_fits(facts, cause) -> None:
    dog = Watchdog(BOUND)
    dog.look(WatchdogFacts(7), 0.0)
    verdict = dog.look(WatchdogFacts(7, lag=1, **facts), BOUND)
    assert (verdict.healthy, verdict.cause) == (False, cause)
    assert verdict.why


def test_one_that_ended_for_good_is_unhealthy_at_once() -> None:
    verdict = Watchdog(BOUND).look(WatchdogFacts(0, failed="another tailer has taken it"), 0.0)
    assert (verdict.healthy, verdict.cause, verdict.why) == (False, StallCause.FAILED, "another tailer has taken it")


def test_a_source_that_cannot_be_reached_is_not_idle() -> None:
    dog = Watchdog(BOUND)
    dog.look(WatchdogFacts(0), 0.0)
    assert not dog.look(WatchdogFacts(0, source="refused"), BOUND).healthy


def test_a_completion_makes_it_healthy_again() -> None:
    dog = Watchdog(BOUND)
    dog.look(WatchdogFacts(0, lag=1), 0.0)
    assert not dog.look(WatchdogFacts(0, lag=1), 2 * BOUND).healthy
    assert dog.look(WatchdogFacts(1, lag=1), 2 * BOUND).healthy
