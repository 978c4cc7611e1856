"""Places of callbacks: silent receivers and tenants with many leave others theirs."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tailrace.gateway.rules.callback_places import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    OF_A_HOST,
    REMEMBERED,
    SILENT_AFTER,
    HostPlaces,
)


def test_a_host_has_a_part_of_the_places_and_gets_them_back() -> None:
    places = HostPlaces()
    assert [places.take("slow", 0.0) for _ in range(OF_A_HOST)] == [0.0] * OF_A_HOST
    # When one host has its part, then others have theirs
    assert places.take("slow", 0.0) > 0
    assert places.take("quick", 0.0) == 0
    # And a place that is given back is taken again
    places.leave("slow", 1.0, answered=True)
    assert places.take("slow", 1.0) == 0


def test_a_silent_host_is_asked_one_at_a_time_later_and_later_until_it_answers() -> None:
    places, now, waited = HostPlaces(), 0.0, []
    for _ in range(SILENT_AFTER):
        assert places.take("dead", now) == 0
        places.leave("dead", now, answered=False)
    for _ in range(10):
        wait = places.take("dead", now)
        waited.append(wait)
        now += wait
        assert places.take("dead", now) == 0
        assert places.take("dead", now) > 0, "one request at a time"
        places.leave("dead", now, answered=False)
    assert waited[0] == FIRST_PAUSE and waited == sorted(waited) and waited[-1] == LONGEST_PAUSE
    # When it answers, then it is as any other
    now += LONGEST_PAUSE
    assert places.take("dead", now) == 0
    places.leave("dead", now, answered=True)
    assert [places.take("dead", now) for _ in range(OF_A_HOST)] == [0.0] * OF_A_HOST


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans(), st.booleans())))
def test_what_is_taken_is_given_back(steps: list[tuple[str, bool, bool]]) -> None:
    places, out, now = HostPlaces(), [], 0.0
    for host, begins, answered in steps:
        now += 1.0
        if begins and places.take(host, now) == 0:
            out.append(host)
        elif out:
            places.leave(out.pop(), now, answered=answered)
        assert all(out.count(host) <= OF_A_HOST for host in out)
    for host in out:
        places.leave(host, now, answered=True)
    assert not places._out


def test_hosts_that_were_ever_silent_are_not_kept_for_ever() -> None:
    places = HostPlaces()
    for number in range(REMEMBERED + 100):
        assert places.take(f"h{number}", 0.0) == 0
        places.leave(f"h{number}", 0.0, answered=False)
    assert len(places._silent) == REMEMBERED
