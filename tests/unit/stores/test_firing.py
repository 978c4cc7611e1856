"""The rule of schedules: never early, each instant once, and after an absence as its catch-up says."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice, pairwise, takewhile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.model.errors import InvalidRequest
from tailrace.model.schedule import CatchUp, Overlap, Schedule, check_schedule
from tailrace.stores.schedules.firing import (
    begun,
    due_at,
    firing,
    next_at,
    paused,
    replaced,
    resumed,
    set_back,
    upcoming,
)
from tailrace.stores.schedules.timetable import check_cron, instants_after

NOW = 1_700_000_000.0
EVERY = Schedule("s", "f", every=10.0, created_at=NOW)


def fired(row, now):
    """Fires a schedule at `now`. Returns its row after that, and the instants."""
    step = firing(row, now)
    row = row._replace(
        decided=step.decided,
        runs=row.runs + len(step.instants),
        passed_over=row.passed_over + step.passed_over,
        next_at=step.next_at,
    )
    return row, list(step.instants)


def cron(text, zone="UTC"):
    return Schedule("s", "f", cron=text, timezone=zone)


def local(schedule, begin, count):
    """The next instants after a UTC time, as UTC texts."""
    after = datetime.fromisoformat(begin).replace(tzinfo=UTC).timestamp()
    found = islice(instants_after(schedule, after), count)
    return [datetime.fromtimestamp(each, UTC).strftime("%m-%d %H:%M:%S") for each in found]


# When.


@pytest.mark.parametrize(
    ("zone", "begin", "expected"),
    [
        # 02:00 becomes 03:00: what was to be at 02:30 is right after it, both times of that hour once.
        ("Europe/Berlin", "2026-03-28T12:00", ["03-29 01:00:00", "03-30 00:00:00", "03-30 00:30:00"]),
        ("America/New_York", "2026-03-07T12:00", ["03-08 07:00:00", "03-09 06:00:00", "03-09 06:30:00"]),
        # 03:00 becomes 02:00: what is at 02:30 runs in the first of the two hours only.
        ("Europe/Berlin", "2026-10-24T12:00", ["10-25 00:00:00", "10-25 00:30:00", "10-26 01:00:00"]),
        ("Australia/Sydney", "2026-04-04T10:00", ["04-04 15:00:00", "04-04 15:30:00", "04-05 16:00:00"]),
    ],
)
def test_times_of_a_day_run_once_where_daylight_saving_begins_and_ends(zone, begin, expected):
    assert local(cron("0,30 2 * * *", zone), begin, 3) == expected


def test_what_runs_every_so_often_keeps_its_pace_through_daylight_saving():
    for begin in ("2026-03-29T00:15", "2026-10-25T00:15"):
        found = list(
            islice(
                instants_after(cron("*/30 * * * *", "Europe/Berlin"), datetime.fromisoformat(begin + "Z").timestamp()),
                6,
            )
        )
        assert [later - earlier for earlier, later in pairwise(found)] == [1800.0] * 5


def test_seconds_are_optional_and_nicknames_known():
    assert local(cron("*/20 0 12 * * *"), "2026-01-01T12:00:00", 3)[:2] == ["01-01 12:00:20", "01-01 12:00:40"]
    assert local(cron("@daily"), "2026-01-01T12:00", 1) == ["01-02 00:00:00"]


def test_an_interval_counts_from_its_start_and_a_moment_comes_once():
    assert list(islice(instants_after(EVERY, NOW), 2)) == [NOW + 10, NOW + 20]
    assert list(islice(instants_after(replace(EVERY, starts=NOW + 3), NOW), 2)) == [NOW + 3, NOW + 13]
    assert list(instants_after(replace(EVERY, until=NOW + 20), NOW)) == [NOW + 10, NOW + 20]
    once = Schedule("s", "f", at=NOW + 5)
    assert list(instants_after(once, NOW)) == [NOW + 5] and list(instants_after(once, NOW + 5)) == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("61 * * * *", 'column 1: bad minute "61":'),
        ("0 3 1,2,32 * *", 'column 9: bad day-of-month "32":'),
        ("0  3 * FOO *", 'column 8: bad month "FOO":'),
        ("*/0 * * * * *", 'column 1: bad second "*/0":'),
        ("0 3 * *", "has 4 fields"),
        ("0 0 31 2 *", 'column 5: bad day-of-month "31":'),
        ("0 0 29 2 MON#6", 'column 10: bad day-of-week "MON#6":'),
        ("@often", "expected @annually"),
        ("", "has 0 fields"),
        ("x" * 300, "at most 200"),
    ],
)
def test_a_bad_expression_is_refused_with_the_field_and_the_column(text, said):
    with pytest.raises(InvalidRequest) as refused:
        check_cron(text)
    assert said in str(refused.value)


def test_an_expression_of_no_day_is_refused():
    with pytest.raises(InvalidRequest, match="no day in the next fifty years"):
        check_cron("0 0 */31 2 MON#2")


@pytest.mark.parametrize(("zone", "near"), [("Europe/Berln", "Europe/Berlin"), ("berlin", "Europe/Berlin")])
def test_a_zone_that_is_not_known_is_answered_with_the_nearest(zone, near):
    with pytest.raises(InvalidRequest, match=f"did you mean {near!r}"):
        next(instants_after(cron("0 3 * * *", zone), NOW))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": "a b"}, "not a schedule's name"),
        ({"every": 0.0}, "none of them"),
        ({"at": NOW}, "every and at"),
        ({"every": 0.5}, "every is 0.5 s: expected 1s to 366d"),
        ({"grace": 0.0}, "grace"),
        ({"jitter": -1.0}, "jitter"),
        ({"catch_up_max": 0}, "catch_up_max"),
        ({"max_runs": -1}, "max_runs"),
        ({"starts": NOW, "until": NOW - 1}, "never run"),
        ({"priority": "urgent"}, "priority"),
        ({"tenant": "a b"}, "tenant"),
        ({"catch_up": CatchUp.ALL}, "overlap skip"),
    ],
)
def test_what_means_nothing_is_refused(changes, said):
    check_schedule(EVERY)
    with pytest.raises(InvalidRequest, match=said):
        check_schedule(replace(EVERY, **changes))


# Which.

SOME = st.one_of(
    st.builds(
        lambda every, starts: replace(EVERY, every=every, starts=starts),
        st.sampled_from([1.0, 7.0, 60.0, 3600.5]),
        st.sampled_from([0.0, NOW + 100.25]),
    ),
    st.builds(
        cron,
        st.sampled_from(["* * * * *", "*/7 1-3 * * *", "30 2 * * *", "*/10 * * * * *", "0,15 1,2 * * SUN"]),
        st.sampled_from(["UTC", "Europe/Berlin", "America/New_York"]),
    ),
)
#: The night in which daylight saving ends in Berlin, and the one in which it begins.
BEGIN = st.sampled_from([NOW, 1_792_880_000.0, 1_774_738_000.0])


@settings(max_examples=60, deadline=None)
@given(
    schedule=SOME,
    begin=BEGIN,
    jitter=st.sampled_from([0.0, 30.0, 500.0]),
    steps=st.lists(st.floats(0.1, 4000.0), min_size=1, max_size=12),
    catch_up=st.sampled_from(CatchUp),
    max_runs=st.sampled_from([0, 3]),
    until=st.sampled_from([0.0, 2500.0]),
)
def test_never_early_each_instant_once_and_every_one_of_them_counted(
    schedule, begin, jitter, steps, catch_up, max_runs, until
):
    schedule = replace(
        schedule,
        jitter=jitter,
        catch_up=catch_up,
        overlap=Overlap.QUEUE,
        max_runs=max_runs,
        until=begin + until if until else 0.0,
        created_at=begin,
    )
    row, now, seen = begun(schedule, begin), begin, []
    for step in steps:
        now += step
        for _ in range(100):
            row, instants = fired(row, now)
            assert all(due_at(schedule, instant) <= now for instant in instants), "never early"
            seen += instants
            if not row.next_at or row.next_at > now:
                break
        else:
            raise AssertionError("a look must come to its end")
        assert row.next_at == 0 or row.next_at > now
    assert seen == sorted(set(seen))
    assert row.runs == len(seen) and (not max_runs or len(seen) <= max_runs)
    assert not until or all(instant <= schedule.until for instant in seen)
    every = list(takewhile(lambda instant: instant <= row.decided, instants_after(schedule, begin)))
    assert set(seen) <= set(every)
    if not max_runs or len(seen) < max_runs:
        assert row.runs + row.passed_over == len(every)
        following = next(instants_after(schedule, row.decided), None)
        assert row.next_at == (due_at(schedule, following) if following is not None else 0.0)


def test_what_is_on_time_all_runs():
    row, instants = fired(begun(EVERY, NOW), NOW + 35)
    assert instants == [NOW + 10, NOW + 20, NOW + 30] and row.next_at == NOW + 40 and row.passed_over == 0


@pytest.mark.parametrize(
    ("catch_up", "expected"),
    [
        (CatchUp.SKIP, [NOW + 10 * n for n in range(94, 101)]),  # those of the last minute are within the grace
        (CatchUp.LATEST, [NOW + 1000]),
        (CatchUp.ALL, [NOW + 10 * n for n in range(98, 101)]),
    ],
)
def test_what_was_missed_is_run_as_the_catch_up_says_and_the_rest_is_counted(catch_up, expected):
    schedule = replace(EVERY, catch_up=catch_up, catch_up_max=3, overlap=Overlap.QUEUE)
    row, instants = fired(begun(schedule, NOW), NOW + 1000)
    assert instants == expected
    assert row.passed_over == 100 - len(expected) and row.decided == NOW + 1000


def test_a_long_absence_is_caught_up_with_in_steps_none_of_them_long():
    schedule = replace(EVERY, every=1.0, catch_up=CatchUp.ALL, catch_up_max=5, overlap=Overlap.QUEUE)
    row, now = begun(schedule, NOW), NOW + 30_000
    steps, instants = 0, []
    while not instants:
        steps += 1
        row, instants = fired(row, now)
    assert instants == [now - 4, now - 3, now - 2, now - 1, now]
    assert row.runs + row.passed_over == 30_000 and 1 < steps < 10


def test_max_runs_ends_it_and_says_so():
    row, instants = fired(begun(replace(EVERY, max_runs=2), NOW), NOW + 45)
    assert instants == [NOW + 10, NOW + 20]
    assert row.over and upcoming(row, NOW) == [] and fired(row, NOW + 100)[1] == []


def test_a_pause_passes_over_what_falls_into_it():
    row = paused(begun(EVERY, NOW))
    assert fired(row, NOW + 50)[1] == [] and not row.over and upcoming(row, NOW) == []
    row = resumed(row, NOW + 55)
    assert (row.passed_over, row.next_at) == (5, NOW + 60)
    assert fired(row, NOW + 65)[1] == [NOW + 60]


def test_another_definition_misses_nothing_from_before_it():
    row = replaced(begun(EVERY, NOW), replace(EVERY, every=3.0), NOW + 100)
    assert firing(row, NOW + 101).instants == () and row.next_at == NOW + 102
    assert replaced(paused(row), EVERY, NOW + 200).next_at == 0


def test_jitter_is_the_same_for_all_who_ask_and_within_its_bound():
    schedule = replace(EVERY, jitter=5.0)
    late = [due_at(schedule, NOW + 10 * n) - (NOW + 10 * n) for n in range(200)]
    assert late == [due_at(schedule, NOW + 10 * n) - (NOW + 10 * n) for n in range(200)]
    assert 0 <= min(late) < 0.5 and 4.5 < max(late) < 5
    row = begun(schedule, NOW)
    assert upcoming(row, NOW, 2) == [due_at(schedule, NOW + 10), due_at(schedule, NOW + 20)]
    assert next_at(row, NOW) == row.next_at == due_at(schedule, NOW + 10)


def test_one_that_a_clock_decided_which_was_ahead_goes_on_from_now() -> None:
    # Given a schedule whose runs of a month were passed over by a clock that was ahead
    month = 30 * 86_400.0
    row, _ = fired(begun(EVERY, NOW), NOW + month)
    assert firing(row, NOW + 25).instants == ()
    # When the clock is right again, then it goes on with what is to come
    again = set_back(row, NOW + 25)
    assert again is not None and again.next_at == NOW + 30
    assert fired(again, NOW + 45)[1] == [NOW + 30, NOW + 40]
    # And so does one that is resumed, or has another definition now
    assert resumed(paused(row), NOW + 25).next_at == NOW + 30
    assert replaced(row, replace(EVERY, every=20.0), NOW + 25).next_at == NOW + 40
    # And none is set back that is paused, or was decided by a clock that is ahead a little
    assert set_back(paused(row), NOW + 25) is None
    assert set_back(begun(EVERY, NOW + 50), NOW) is None
