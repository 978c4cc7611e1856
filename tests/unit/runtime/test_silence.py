"""Silence: an executor that hears of no renewal by its own doing, and one that could not, told apart."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.lease import LeaseSizes
from tailrace.runtime.rules.silence import LOOKS, Silence, longest

PAUSE = 1.25


def watched(until: float, pulse: float, every: float = PAUSE) -> Silence:
    """The silence of an executor that showed its last pulse then, and was looked at until then."""
    silence, now = Silence(PAUSE, 0.0), 0.0
    while now < until:
        now = min(now + every, until)
        silence.look(min(now, pulse), now)
    return silence


@given(heartbeat=st.floats(0.05, 60))
def test_an_executor_is_ended_before_its_timer_rings_whatever_the_heartbeat(heartbeat: float) -> None:
    # Given leases of any size; the lock is taken when a renewal was due and not there yet
    sizes = LeaseSizes.of_heartbeat(heartbeat)
    rings = sizes.granted_to_worker - sizes.heartbeat
    # Then the last look at which it may be noticed comes before the timer rings, and after more than two renewals
    assert 2 * heartbeat < longest(sizes) < longest(sizes) + heartbeat / LOOKS < rings


def test_seconds_count_from_the_last_pulse() -> None:
    silence = watched(until=20.0, pulse=10.0)
    assert silence.seconds == pytest.approx(10.0)
    assert silence.look(20.5, 21.0) == pytest.approx(0.5)


def test_an_executor_that_never_had_a_pulse_is_not_silent() -> None:
    assert watched(until=30.0, pulse=0.0).seconds == 0.0


def test_a_machine_that_stood_still_is_not_the_executors_silence() -> None:
    # Given an executor whose supervisor stood still with it, for a minute
    silence = watched(until=10.0, pulse=10.0)
    assert silence.look(10.0, 70.0) <= 2 * PAUSE
    # Then the end by its timer is nobody's doing, whether it is told before that look or after it
    assert not watched(until=10.0, pulse=10.0).is_own_doing(armed=25.0, renewed=27.0, when=70.0)
    assert not silence.is_own_doing(armed=25.0, renewed=27.0, when=70.5)


def test_a_timer_that_rang_although_the_lease_was_renewed_is_the_executors_own_doing() -> None:
    # Given an executor that has heard nothing for 8 s
    silence = watched(until=18.0, pulse=10.0)
    # Then it is, when the lease was renewed
    assert silence.is_own_doing(armed=18.0, renewed=27.0, when=18.1)
    # And it is not, when nobody renewed it
    assert not silence.is_own_doing(armed=18.0, renewed=18.0, when=18.1)
    # And one that had a pulse until then heard what there was to hear
    assert not watched(until=18.0, pulse=17.5).is_own_doing(armed=18.0, renewed=27.0, when=18.1)


def test_what_hears_of_no_renewal_is_ended_when_its_timer_is_about_to_ring() -> None:
    # Given an executor that has heard nothing for 10.5 s
    silence = watched(until=20.5, pulse=10.0)
    # Then it is ended at the last looks before its timer rings, and not before that
    assert silence.is_to_end(10.0, armed=22.0, renewed=30.0, now=20.5)
    assert not silence.is_to_end(10.0, armed=25.0, renewed=30.0, now=20.5)
    # And at once where it has not heard of the items in it at all
    assert silence.is_to_end(10.0, armed=0.0, renewed=30.0, now=20.5)
    # And not where nobody renewed its lease, nor where it may be silent for longer
    assert not silence.is_to_end(10.0, armed=22.0, renewed=22.0, now=20.5)
    assert not silence.is_to_end(11.0, armed=22.0, renewed=30.0, now=20.5)
