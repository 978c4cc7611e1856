"""A pump that ended: it is tried again after accidents, and after errors that need a person; an error stays that
nothing may pass or that nothing can read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.backoff import MENDED, TAILER
from tailrace.model.errors import ConfigError, InvalidRequest, PositionsGone, StaleFence, UserError
from tailrace.tailers.rules.pump_restarts import (
    HEALTHY_AFTER,
    SHOWN,
    PumpRestarts,
)


def test_what_needs_a_hand_is_looked_at_ever_later_and_said_once() -> None:
    again, now, pauses, said = PumpRestarts(), 0.0, [], 0
    for n in range(10):
        again.began(now)
        ended = again.ended(ConfigError(f"no such schema (after {n} ms)"), now)
        assert ended.pause is not None and ended.by_hand
        assert again.why(now).startswith("no such schema")
        pauses.append(ended.pause)
        said += ended.news
        now += ended.pause
    assert pauses == [min(MENDED.last, MENDED.first * 2**n) for n in range(10)] and said == 1
    # And its reason stays for a moment when it is tried again, until that went well
    again.began(now)
    assert again.why(now + SHOWN - 0.1) and not again.why(now + SHOWN)
    # And what ran well begins anew
    ended = again.ended(ConfigError("no such schema"), now + HEALTHY_AFTER + 1)
    assert (ended.pause, ended.news) == (MENDED.first, True)


def test_only_what_nothing_may_pass_or_can_read_stays() -> None:
    again = PumpRestarts()
    again.began(0.0)
    assert again.ended(PositionsGone("3 to 5 are gone"), 1.0) == (None, True, True)
    assert again.ended(InvalidRequest("entry 9-9999999 is beyond what a position can say"), 1.0) == (None, True, True)
    assert again.why(1.0) == ""
    assert again.ended(StaleFence("another owner"), 1.0) == (TAILER.first, True, False)
    assert again.ended(ValueError(), 1.0) == (TAILER.first, True, False)


ERRORS = [ConfigError("a"), UserError("b 1"), UserError("b 2"), StaleFence("c"), ValueError("d"), OSError()]


@given(st.lists(st.tuples(st.sampled_from(ERRORS), st.floats(0, 200)), max_size=100))
def test_pauses_are_bounded_and_what_waits_for_a_hand_says_why(steps: list[tuple[Exception, float]]) -> None:
    again, now = PumpRestarts(), 0.0
    for error, ran in steps:
        again.began(now)
        now += ran
        ended = again.ended(error, now)
        last = MENDED.last if ended.by_hand else TAILER.last
        assert ended.pause is not None and TAILER.first <= ended.pause <= last
        assert again.why(now) == (str(error) if isinstance(error, UserError) else "")
        assert ended.news or ran <= HEALTHY_AFTER
        now += ended.pause
