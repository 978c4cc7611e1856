"""Settlement: total over outcomes, and the three counts kept apart."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.outcome import TERMINAL, Outcome
from tailrace.model.retry import Retry
from tailrace.model.workload import Ended
from tailrace.tailers.rules.settlement import Action, Family, History, settle, throttle_delay

POLICY = Retry(max_attempts=3, first=10.0, jitter=0.0, max_crashes=2)
ENDED = st.builds(
    Ended,
    st.sampled_from(Outcome),
    st.text(max_size=5),
    st.none() | st.floats(0, 1e6),
    crashed=st.booleans(),
)
HISTORY = st.builds(History, st.integers(1, 5), st.integers(0, 5), st.integers(0, 20), st.floats(0, 1e5))


@given(ENDED, st.sampled_from(Family), HISTORY)
def test_every_end_has_a_settlement(ended, family, history):
    done = settle(ended, family, POLICY, history)
    assert done.delay >= 0
    assert history.attempt - 1 <= done.failed <= history.attempt
    spends = ended.outcome in (Outcome.RETRY, Outcome.FATAL)
    assert (done.failed == history.attempt) == spends, "only running user code spends an attempt"
    assert (done.crashes > history.crashes) == (ended.outcome == Outcome.LOST and ended.crashed)
    if ended.outcome == Outcome.THROTTLED:
        assert done.throttles == history.throttles + 1
    if ended.outcome in TERMINAL:
        assert done.action in (Action.DONE, Action.DEAD)
    allowed = {
        Family.QUEUE: {Action.DONE, Action.DEAD, Action.RETURN},
        Family.STREAM: {Action.DONE, Action.DEAD, Action.PARK, Action.AGAIN, Action.HOLD},
        Family.ORDERED: {Action.DONE, Action.DEAD, Action.AGAIN, Action.HOLD},
    }
    assert done.action in allowed[family]


@pytest.mark.parametrize(
    ("ended", "history", "queue", "stream", "delay"),
    [
        (Ended(Outcome.SUCCESS), History(), Action.DONE, Action.DONE, 0),
        (Ended(Outcome.RETRY), History(1), Action.RETURN, Action.PARK, 10),
        (Ended(Outcome.RETRY), History(2), Action.RETURN, Action.PARK, 20),
        (Ended(Outcome.RETRY), History(3), Action.DEAD, Action.DEAD, 0),
        (Ended(Outcome.RETRY, after=7.0), History(2), Action.RETURN, Action.PARK, 7),
        (Ended(Outcome.FATAL), History(), Action.DEAD, Action.DEAD, 0),
        (Ended(Outcome.THROTTLED), History(), Action.RETURN, Action.HOLD, 1),
        (Ended(Outcome.THROTTLED), History(throttles=3), Action.RETURN, Action.HOLD, 8),
        (Ended(Outcome.THROTTLED, after=31.0), History(), Action.RETURN, Action.PARK, 31),
        (Ended(Outcome.THROTTLED, after=31.0, downstream="d"), History(), Action.RETURN, Action.HOLD, 31),
        (Ended(Outcome.THROTTLED, after=301.0, downstream="d"), History(), Action.RETURN, Action.PARK, 301),
        (Ended(Outcome.LOST), History(crashes=9), Action.RETURN, Action.AGAIN, 0),
        (Ended(Outcome.LOST, crashed=True), History(), Action.RETURN, Action.AGAIN, 0),
        (Ended(Outcome.LOST, crashed=True), History(crashes=1), Action.DEAD, Action.DEAD, 0),
        (Ended(Outcome.HELD), History(), Action.RETURN, Action.HOLD, 0),
        (Ended(Outcome.DROPPED), History(), Action.DONE, Action.DONE, 0),
    ],
)
def test_the_table(ended, history, queue, stream, delay):
    for family, action in ((Family.QUEUE, queue), (Family.STREAM, stream)):
        done = settle(ended, family, POLICY, history)
        assert (done.action, done.delay) == (action, delay)


def test_a_delay_from_when_it_was_due_counts_the_run_in():
    policy = Retry(first=10.0, jitter=0.0, from_due=True)
    assert settle(Ended(Outcome.RETRY), Family.QUEUE, policy, History(late=4.0)).delay == 6.0
    assert settle(Ended(Outcome.RETRY), Family.QUEUE, policy, History(late=40.0)).delay == 0.0


def test_throttles_wait_longer_each_time_within_bounds():
    delays = [throttle_delay(count) for count in range(1000)]
    assert delays[0] == 1.0 and max(delays) == 300.0 and delays == sorted(delays)
