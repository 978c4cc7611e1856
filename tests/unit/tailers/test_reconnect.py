"""A source that is not connected: back-off that a moment of health does not undo, a reason that stays, and words in
the log once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.backoff import SOURCE
from tailrace.tailers.rules.reconnect import SHOWN, STEADY, Reconnect


def test_an_outage_is_said_once_and_so_is_its_end() -> None:
    source = Reconnect()
    news = [source.lost(f"refused (after {n} ms)", float(n)).news for n in range(5)]
    assert news == [True, False, False, False, False]
    assert source.lost("no such topic", 5.0).news
    assert source.why(5.0) == "no such topic"
    assert source.reached(6.0) and source.why(6.0) == ""
    assert not source.reached(7.0), "only once"


def test_a_first_connection_is_no_news() -> None:
    assert not Reconnect().reached(0.0)


def test_one_that_breaks_again_and_again_is_tried_ever_later_and_keeps_its_reason() -> None:
    # Given a source whose every connection breaks two seconds after it came about
    source, now, pauses, said = Reconnect(), 0.0, [], 0
    for _ in range(12):
        said += source.reached(now)
        now += 2.0
        lost = source.lost("no codec", now)
        said += lost.news
        pauses.append(lost.pause)
        now += lost.pause
    # Then it is no loop, is said once, and between two breaks it still says why
    assert pauses == [min(SOURCE.last, SOURCE.first * 2**n) for n in range(12)] and said == 1
    source.reached(now)
    assert source.why(now + SHOWN - 0.1) == "no codec" and source.why(now + SHOWN) == ""
    # And when a connection held, it is as at first
    lost = source.lost("no codec", now + STEADY)
    assert (lost.pause, lost.news) == (SOURCE.first, True)


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 100), st.sampled_from("abcdef")), max_size=200))
def test_pauses_are_bounded_and_what_is_not_connected_says_why(steps: list[tuple[bool, float, str]]) -> None:
    source, now = Reconnect(), 0.0
    for connected, seconds, reason in steps:
        now += seconds
        if connected:
            source.reached(now)
        else:
            assert SOURCE.first <= source.lost(reason, now).pause <= SOURCE.last
            assert source.why(now) == reason
