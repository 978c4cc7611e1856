"""Leases of flights and workers: their length, and when they begin."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.lease import LeaseSizes, grant_to_worker, wait_for_worker
from tailrace.scheduler.rules.leases import REMEMBERED, Granted, HeldFlights, Requests

SIZES = LeaseSizes()


def test_a_grant_counts_from_when_its_request_was_sent() -> None:
    requests = Requests(10.0)
    first = requests.send(15.0)
    assert [requests.sent_at(number) for number in (0, first, first + 1)] == [10.0, 15.0, None]
    for _ in range(REMEMBERED):
        requests.send(20.0)
    assert requests.sent_at(first) is None


def test_flights_are_renewed_when_listed_and_forgotten_when_not() -> None:
    held = HeldFlights()
    assert held.add(1, 10.0, 3) and held.add(2, 10.0, 2)
    assert not held.add(2, 10.0, 1)
    assert held.renew(20.0, [2]) == [1]
    assert (held.until(), held.ends(), held.items) == (20.0, 20.0, 2)
    assert not held.end(1, 1)
    assert held.end(2, 2) and held.items == 0 and not held.flights


def test_a_lapsed_flight_is_never_resumed() -> None:
    held = HeldFlights()
    held.add(1, 10.0, 1)
    assert held.lapse(10.0) == [1] and held.lapse(11.0) == []
    held.renew(30.0, [1])
    assert held.until() == 0.0 and held.until([1]) == 0.0


def test_a_shorter_grant_does_not_shorten_what_was_granted() -> None:
    held = HeldFlights()
    held.add(1, 10.0, 1)
    held.renew(5.0, [1])
    assert held.until() == 10.0


@given(
    st.lists(
        st.one_of(st.tuples(st.just("ask"), st.floats(0, 20)), st.tuples(st.just("grant"), st.floats(0, 60))),
        max_size=30,
    )
)
def test_what_a_worker_was_granted_ends_before_we_call_it_lost_and_before_we_lose_it(
    events: list[tuple[str, float]],
) -> None:
    granted, now, number = Granted(0.0), 0.0, 0
    for event, value in events:
        if event == "ask":
            now += value
            number += 1
            granted.requested(number, now)
        else:
            until = now + value
            lease = granted.grant(SIZES, until)
            assert lease <= grant_to_worker(SIZES, 1e9)
            if lease > 0:
                slowest = now + lease * SIZES.drift + SIZES.kill_margin
                assert slowest <= until + 1e-9
                assert granted.over >= now + wait_for_worker(SIZES, lease) - 1e-9


def test_after_a_second_hello_nothing_is_granted_until_a_request_was_seen() -> None:
    granted = Granted(0.0)
    assert granted.grant(SIZES, 30.0) > 0
    granted.reconnected()
    assert granted.grant(SIZES, 30.0) == 0 and not granted.fresh(SIZES, 0.0)
    granted.requested(1, 2.0)
    granted.reconnected()
    assert granted.grant(SIZES, 30.0) > 0 and granted.fresh(SIZES, 2.0)
    assert not granted.fresh(SIZES, 2.0 + 2 * SIZES.heartbeat + SIZES.round_trip)
