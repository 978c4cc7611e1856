"""Taking a stream over: the wait always ends after the owner's lease, and starts anew whenever the row changes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.lease import LeaseSizes
from tailrace.tailers.rules.takeover import ASKED, SeenRow, adopted_by_all, free_at, lapsed, observe

SIZES = LeaseSizes()
LEASE = SIZES.source


def test_nobody_and_a_released_row_are_free_at_once():
    assert free_at(observe(None, 0, "", 0.0, 7.0), SIZES.drift) == 7.0
    assert free_at(observe(None, 3, "", LEASE, 7.0), SIZES.drift) == 7.0


def test_adoption_by_every_scheduler_frees_the_row_at_once():
    assert free_at(observe(None, 3, "other", LEASE, 7.0), SIZES.drift, adopted=True) == 7.0


def test_an_owner_that_is_silent_is_waited_for_from_the_first_read():
    seen = observe(None, 3, "other", LEASE, 10.0)
    for now in (12.0, 20.0, 45.0):
        seen = observe(seen, 3, "other", LEASE, now)
    assert free_at(seen, SIZES.drift) == pytest.approx(10.0 + SIZES.drift * LEASE)


def test_a_renewal_starts_the_wait_anew():
    seen = observe(observe(None, 3, "other", LEASE, 10.0), 4, "other", LEASE, 45.0)
    assert free_at(seen, SIZES.drift) == pytest.approx(45.0 + SIZES.drift * LEASE)


@given(
    sent=st.floats(0, 1e6),
    write=st.floats(0, 100),
    read=st.floats(0, 100),
    reply=st.floats(0, 100),
    owner=st.floats(-SIZES.rho, SIZES.rho),
    taker=st.floats(-SIZES.rho, SIZES.rho),
)
def test_the_wait_ends_after_the_lease_whatever_the_clocks_and_the_network_do(sent, write, read, reply, owner, taker):
    """Real time: the owner's request, its write, a taker's read after it, and the answer. Clocks run at 1 ± rho."""
    lease_over = sent + LEASE / (1 + owner)
    answered = sent + write + read + reply
    local = answered * (1 + taker)
    takes = free_at(SeenRow(3, "other", LEASE, local), SIZES.drift) / (1 + taker)
    assert takes >= lease_over - 1e-6


def test_a_wait_without_the_drift_would_be_too_short():
    slow, fast = 1 - SIZES.rho, 1 + SIZES.rho
    assert LEASE / fast < LEASE / slow <= SIZES.drift * LEASE / fast + 1e-9


@given(st.floats(0, 1e6), st.floats(0.001, 100))
def test_an_epoch_is_resumed_only_by_a_renewal_sent_within_its_lease(until, late):
    assert not lapsed(until, until)
    assert lapsed(until, until + late)


@given(st.lists(st.text(min_size=1), min_size=1, max_size=ASKED, unique=True), st.data())
def test_a_row_is_adopted_when_every_scheduler_that_it_lists_confirmed(listed, data):
    confirmed = data.draw(st.sets(st.sampled_from(listed)))
    assert adopted_by_all(listed, confirmed) == (len(confirmed) == len(listed))


def test_a_row_that_lists_nobody_or_too_many_is_waited_out():
    many = [str(number) for number in range(ASKED + 1)]
    assert not adopted_by_all([], [])
    assert not adopted_by_all(many, many)
