"""The arithmetic of leases: the holder of one is dead before the granter's wait is over, by any clocks within the
drift."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.errors import ConfigError
from tailrace.model.lease import (
    LeaseSizes,
    counts_of_claim,
    grant_to_scheduler,
    grant_to_worker,
    is_enough_to_start,
    wait_for_scheduler,
    wait_for_source,
    wait_for_worker,
)

SIZES = LeaseSizes()
RHO = SIZES.rho

#: A host's clock: how many seconds it counts in one true second.
rates = st.floats(1 - RHO, 1 + RHO)
delays = st.floats(0, 10)
#: Rounding of floats.
TINY = 1e-9


def true(measured: float, rate: float) -> float:
    """True seconds that pass while a clock of this rate counts `measured`. K, the kill margin, is true seconds."""
    return measured / rate


def test_the_default_sizes_are_18_28_and_36_seconds() -> None:
    assert (SIZES.worker, SIZES.scheduler, SIZES.source) == (18.0, 28.0, 36.0)
    assert (SIZES.heartbeat, SIZES.round_trip, SIZES.kill_margin, SIZES.rho) == (5.0, 2.0, 2.0, 0.01)
    # Each is the next whole second above its least: one less is refused
    for name in ("worker", "scheduler", "source"):
        with pytest.raises(ConfigError, match=rf"leases\.{name} is .* at least"):
            dataclasses.replace(SIZES, **{name: getattr(SIZES, name) - 1})


def test_a_lease_outlives_three_failed_heartbeats() -> None:
    for heartbeat in (0.5, 1.0, 5.0, 60.0):
        sizes = LeaseSizes.of_heartbeat(heartbeat)
        assert sizes.worker >= 3 * sizes.heartbeat + sizes.round_trip


def test_sizes_scale_with_the_heartbeat() -> None:
    sizes = LeaseSizes.of_heartbeat(0.5)
    assert [round(size, 9) for size in (sizes.worker, sizes.scheduler, sizes.source)] == [1.8, 2.8, 3.6]


@pytest.mark.parametrize("name", ["heartbeat", "round_trip", "kill_margin"])
def test_times_must_be_positive(name: str) -> None:
    with pytest.raises(ConfigError, match=name):
        dataclasses.replace(SIZES, **{name: 0.0})


@pytest.mark.parametrize("rho", [-0.01, 0.5, 1.0])
def test_a_drift_must_make_sense(rho: float) -> None:
    with pytest.raises(ConfigError, match="rho"):
        dataclasses.replace(SIZES, rho=rho)


def test_full_leases_can_be_granted_on_from_full_leases() -> None:
    # After a heartbeat and a round trip have passed, what is left still carries the next lease in full
    assert grant_to_scheduler(SIZES, SIZES.source - SIZES.heartbeat - SIZES.round_trip) == SIZES.scheduler
    assert grant_to_worker(SIZES, SIZES.scheduler - SIZES.heartbeat - SIZES.round_trip) == SIZES.granted_to_worker


def test_what_a_lost_worker_ran_is_free_a_kill_margin_after_its_lease() -> None:
    for heartbeat in (0.5, 1.0, 5.0, 60.0):
        sizes = LeaseSizes.of_heartbeat(heartbeat)
        assert wait_for_worker(sizes, grant_to_worker(sizes, 1e9)) == pytest.approx(sizes.worker + sizes.kill_margin)
        # And three heartbeats may fail all the same, by clocks that part
        assert sizes.granted_to_worker >= 3 * sizes.heartbeat + sizes.round_trip * (1 + sizes.rho)


def test_nothing_held_is_nothing_granted() -> None:
    for held in (-5.0, 0.0):
        assert grant_to_scheduler(SIZES, held) == 0.0
        assert grant_to_worker(SIZES, held) == 0.0
    assert grant_to_worker(SIZES, SIZES.kill_margin) == 0.0  # no time left to kill in


def test_nothing_starts_with_a_lease_that_no_renewal_can_reach() -> None:
    assert is_enough_to_start(SIZES, SIZES.scheduler - 2 * (SIZES.heartbeat + SIZES.round_trip))
    assert not is_enough_to_start(SIZES, SIZES.kill_margin + SIZES.heartbeat)
    assert is_enough_to_start(SIZES, SIZES.kill_margin + SIZES.heartbeat + 0.1 * SIZES.heartbeat)


@given(rates, rates, delays, delays)
def test_a_worker_is_dead_before_the_schedulers_wait_is_over(
    worker: float, scheduler: float, there: float, held: float
) -> None:
    # Given a request sent at 0, answered at `there`; the worker counts from when it sent, and dies K later at most
    granted = grant_to_worker(SIZES, held + SIZES.worker)
    dead = true(granted, worker) + SIZES.kill_margin
    # When the scheduler waits from its grant on, then that is later
    over = there + true(wait_for_worker(SIZES, granted), scheduler)
    assert dead <= over + TINY


@given(rates, rates, delays, st.floats(0, 60))
def test_a_worker_is_dead_before_what_the_scheduler_itself_holds_ends(
    worker: float, scheduler: float, there: float, held: float
) -> None:
    # Given a scheduler that holds its session for `held` more seconds when it grants, at `there`
    granted = grant_to_worker(SIZES, held)
    if granted:
        dead = true(granted, worker) + SIZES.kill_margin
        assert dead <= there + true(held, scheduler) + TINY


@given(rates, rates, delays, st.floats(0, 60))
def test_a_scheduler_ends_before_what_the_tailer_holds_and_before_its_wait(
    scheduler: float, tailer: float, there: float, held: float
) -> None:
    granted = grant_to_scheduler(SIZES, held)
    ended = true(granted, scheduler)
    assert ended <= there + true(held, tailer) + TINY
    assert ended <= there + true(wait_for_scheduler(SIZES, granted), tailer) + TINY


@given(st.tuples(rates, rates, rates), st.tuples(delays, delays), st.floats(0, 36))
def test_down_the_whole_chain_the_worker_is_dead_before_the_source_is_free(
    clocks: tuple[float, float, float], ages: tuple[float, float], used: float
) -> None:
    tailer, scheduler, worker = clocks
    # Given a tailer that renewed its source at true time 0 and grants `used` seconds later by its clock
    at = true(used, tailer)
    to_scheduler = grant_to_scheduler(SIZES, SIZES.source - used)
    # And a scheduler that had sent its request `ages[0]` before that, and grants to a worker `ages[1]` after it sent
    sent = max(0.0, at - ages[0])
    to_worker = grant_to_worker(SIZES, to_scheduler - ages[1])
    granted_at = sent + true(ages[1], scheduler)
    if to_worker and granted_at >= at:
        # When the worker counts from its request, sent at the latest when it was answered
        dead = granted_at + true(to_worker, worker) + SIZES.kill_margin
        # Then it is dead before the tailer's lease is over, and long before whoever takes over stops waiting
        assert dead <= true(SIZES.source, tailer) + TINY
        for taker in (1 - RHO, 1 + RHO):
            assert dead <= true(wait_for_source(SIZES), taker) + TINY


SLOW, FAST = 1 - RHO, 1 + RHO


@given(rate=st.floats(1 - SIZES.rho, 1 + SIZES.rho), store=st.floats(1 - SIZES.rho, 1 + SIZES.rho))
def test_a_claim_ends_at_its_tailer_before_its_store_gives_it_to_another(rate: float, store: float) -> None:
    # Given the lease that a tailer asks its store for, when both count from the same moment, each by its own clock
    granted = wait_for_source(SIZES)
    ends, free = counts_of_claim(SIZES, granted) / rate, granted / store
    # Then it is over at the tailer first, and long enough to grant all of a scheduler's lease
    assert ends <= free + 1e-9
    assert grant_to_scheduler(SIZES, counts_of_claim(SIZES, granted)) == SIZES.scheduler


def test_leaving_out_the_drift_makes_an_overlap() -> None:
    granted, there = 18.0, 0.0
    dead = true(granted, SLOW) + SIZES.kill_margin
    without_drift = granted + SIZES.kill_margin * (1 + RHO)
    assert dead > there + true(without_drift, FAST)
    assert dead <= there + true(wait_for_worker(SIZES, granted), FAST) + TINY


def test_leaving_out_the_kill_margin_makes_an_overlap() -> None:
    granted = 18.0
    dead = true(granted, SLOW) + SIZES.kill_margin
    without_margin = SIZES.drift * granted
    assert dead > true(without_margin, FAST) + 1.9
    assert dead <= true(wait_for_worker(SIZES, granted), FAST) + TINY


def test_granting_all_that_is_held_makes_an_overlap() -> None:
    held = 10.0
    for granted, overlaps in ((held, True), (held / SIZES.drift, True), (grant_to_worker(SIZES, held), False)):
        dead = true(granted, SLOW) + SIZES.kill_margin
        assert (dead > true(held, FAST) + TINY) is overlaps


def test_counting_from_receipt_makes_an_overlap() -> None:
    # A grant that is 3 s under way: counted from when it came, the worker outlives the wait
    granted, under_way = 18.0, 3.0
    dead = under_way + granted + SIZES.kill_margin
    assert dead > wait_for_worker(SIZES, granted)
