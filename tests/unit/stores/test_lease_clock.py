"""The ends of leases and the times at which items are due, under any jumps of the wall clock."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tailrace.stores.ownership.epochs import EPOCHS_BY_CLOCK, next_epoch
from tailrace.stores.queue.ids import Ids, created_at, id_number, id_text
from tailrace.stores.queue.lease_clock import (
    DRIFT,
    LONGEST_DELAY,
    NEW_LONGEST,
    STEP,
    Noted,
    due_after,
    everything_waits,
    lease_end,
    set_back_by,
    was_set,
)

moments = st.integers(0, 1 << 60)
lengths = st.integers(0, 1 << 40)
boots = st.sampled_from(["", "one", "two"])


@given(moments, moments, lengths, boots, boots)
def test_no_lease_lasts_longer_than_the_longest_that_was_granted(
    until: int, monotonic: int, longest: int, before: str, now: str
) -> None:
    end = lease_end(until, Noted(before, 0, 0, longest, False), now, monotonic)
    assert end <= monotonic + longest
    # And none ends early: under the same boot where it says so, under another not before its longest
    assert end == (min(until, monotonic + longest) if before == now != "" else monotonic + longest)


@given(moments, moments, moments, moments)
def test_the_wall_clock_moves_the_end_of_no_lease(ahead: int, other: int, until: int, monotonic: int) -> None:
    one, two = (Noted("one", each, each, NEW_LONGEST, False) for each in (ahead, other))
    assert lease_end(until, one, "one", monotonic) == lease_end(until, two, "one", monotonic)


@given(boots, boots, st.booleans(), st.booleans())
def test_everything_waits_only_where_a_claim_may_be_missing(before: str, now: str, closed: bool, durable: bool) -> None:
    waits = everything_waits(Noted(before, 0, 0, 1, closed), now, durable=durable)
    assert waits == (not durable and not closed and (before != now or now == ""))


@given(moments, moments, st.integers(-(1 << 60), 1 << 60))
def test_within_a_boot_a_step_is_measured_against_the_monotonic_clock(wall: int, monotonic: int, step: int) -> None:
    noted = Noted("one", wall - monotonic, wall, 0, False)
    passed = 5 * STEP
    now = wall + passed + step
    back = set_back_by(noted, "one", now - (monotonic + passed), now)
    assert back == (-step if -step > STEP + passed // DRIFT else 0)


@given(st.lists(st.tuples(st.integers(0, 3600 * STEP), st.floats(-0.01, 0.01)), max_size=30))
def test_clocks_that_part_slowly_were_not_set_however_far_they_part(looks: list[tuple[int, float]]) -> None:
    before = 0
    for passed, drift in looks:
        ahead = before + int(passed * drift)
        assert was_set(before, ahead, passed) == 0
        before = ahead


@given(moments, st.integers(-(1 << 60), 1 << 60))
def test_under_another_boot_a_clock_before_the_last_noted_moment_was_set_back(wall: int, step: int) -> None:
    back = set_back_by(Noted("one", 0, wall, 0, False), "two", 77, wall + step)
    assert back == (-step if -step > STEP else 0)


@given(moments, moments, st.integers(STEP, 1 << 60))
def test_what_was_due_stays_due_and_nothing_else_of_a_plausible_delay_moves(due: int, now: int, back: int) -> None:
    after = due_after(due, now, back)
    assert after <= due
    if due <= now + back:
        assert after <= now
    elif back <= LONGEST_DELAY:
        assert after == due
    else:  # it still waits as long as it did by the clock that was wrong
        assert after - now == due - (now + back)


@given(st.lists(st.integers(-(1 << 50), 1 << 50), min_size=1, max_size=30))
def test_ids_rise_and_are_ids_however_wild_the_clock(clock: list[int]) -> None:
    ids = Ids(0)
    taken = [number for ms in clock for number in ids.take(3, ms)]
    assert taken == sorted(set(taken))
    assert all(0 < number < 1 << 63 and id_number(id_text(number)) == number for number in taken)


def test_after_a_moment_beyond_the_last_time_of_an_id_they_go_on() -> None:
    # Given a clock that was in the year 9999, and is right again
    ids = Ids(0)
    ids.take(1, 253_370_764_800_000)
    # When as many ids are taken as two years of full work have
    ids = Ids(ids.last + (1 << 57))
    # Then they are ids still, and tell the last time that there is
    (number,) = ids.take(1, 1_800_000_000_000)
    assert number < 1 << 63
    assert created_at(number) < 4_000_000_000


@given(st.lists(st.floats(-1e12, 1e12), min_size=1, max_size=30))
def test_epochs_rise_and_make_fences_however_wild_the_clock(clock: list[float]) -> None:
    epochs = [0]
    for wall in clock:
        epochs.append(next_epoch(epochs[-1], wall))
    assert epochs == sorted(set(epochs))
    assert epochs[-1] <= EPOCHS_BY_CLOCK + len(clock)
    assert (epochs[-1] + 1_000_000 << 32) + (1 << 32) - 1 < 1 << 63
