"""The time by which old things are deleted: never ahead of the real time, whatever the wall clock says."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tailrace.stores.trusted_time import AGREED, TrustedTime, TrustedTimes, begun, looked
from tailrace.testing.clock import ManualClock

HOUR, DAY = 3600.0, 86_400.0
STARTED = ManualClock().wall()


def times(
    folder: Path, clock: ManualClock, boot: str = "one", *, fresh: bool = False
) -> tuple[TrustedTime, TrustedTimes]:
    """A start in this folder, in this boot of the machine."""
    trusted = TrustedTime(clock, boot=lambda: boot)
    noted = TrustedTimes(folder, {"this host": trusted}, clock)
    noted.begin(fresh=fresh)
    return trusted, noted


def test_a_clock_that_is_set_forward_is_followed_after_six_hours_and_not_before(tmp_path: Path) -> None:
    clock = ManualClock()
    trusted, noted = times(tmp_path, clock, fresh=True)
    # Given a clock that is set forward
    clock.advance(60)
    clock.jump(8 * DAY)
    assert trusted.seconds() == STARTED + 60
    # Then the trusted time goes on as before, and operators are told by how much
    clock.advance(6 * HOUR - 1)
    assert trusted.seconds() == STARTED + 6 * HOUR + 59
    (trouble,) = noted.troubles()
    assert "deletions by age wait: the clock of this host is not believed yet, since it is 8d ahead" in trouble.what
    # When it has kept step for six hours, then it is believed
    clock.advance(62)
    assert trusted.seconds() == clock.wall()
    assert noted.troubles() == []


def test_a_clock_that_is_set_back_is_followed_at_once(tmp_path: Path) -> None:
    clock = ManualClock()
    trusted, _ = times(tmp_path, clock, fresh=True)
    clock.jump(-3 * DAY)
    assert trusted.seconds() == STARTED - 3 * DAY


def test_a_glitch_of_fifteen_seconds_changes_nothing(tmp_path: Path) -> None:
    clock = ManualClock()
    trusted, noted = times(tmp_path, clock, fresh=True)
    for step in (8 * DAY, -8 * DAY):
        clock.jump(step)
        clock.advance(15)
        assert trusted.seconds() <= STARTED + 30
    assert trusted.seconds() == clock.wall()
    assert noted.troubles() == []


def test_what_was_there_before_anything_was_noted_is_not_old_before_six_hours(tmp_path: Path) -> None:
    clock = ManualClock()
    trusted, noted = times(tmp_path, clock)
    clock.advance(5 * HOUR)
    assert trusted.seconds() == 5 * HOUR
    (trouble,) = noted.troubles()
    assert "no run before has noted that it was right" in trouble.what
    clock.advance(HOUR)
    assert trusted.seconds() == clock.wall()


def test_a_process_that_starts_every_hour_deletes_all_the_same(tmp_path: Path) -> None:
    # Given a machine that is booted every hour, and is down for a minute each time
    clock = ManualClock()
    for boot in range(48):
        trusted, noted = times(tmp_path, clock, str(boot), fresh=boot == 0)
        clock.advance(HOUR)
        assert trusted.seconds() == STARTED + (boot + 1) * HOUR
        noted.note(now=True)
        clock.advance(60)
    # Then its deletions are late by the time that it was down, no more


def test_starts_in_one_boot_of_the_machine_count_together(tmp_path: Path) -> None:
    clock = ManualClock()
    _, noted = times(tmp_path, clock)
    for _ in range(5):
        noted.note(now=True)
        clock.advance(HOUR)
        _, noted = times(tmp_path, clock)
    noted.note(now=True)
    clock.advance(HOUR)
    trusted, _ = times(tmp_path, clock)
    assert trusted.seconds() == clock.wall()


def test_a_start_with_a_wrong_clock_goes_on_from_the_note(tmp_path: Path) -> None:
    for again in ("one", "two"):  # the same boot of the machine, another one
        clock = ManualClock()
        _, noted = times(tmp_path, clock, fresh=True)
        noted.note(now=True)
        clock.jump(8 * DAY)
        trusted, noted = times(tmp_path, clock, again)
        assert trusted.seconds() == STARTED
        (trouble,) = noted.troubles()
        assert trouble.since == clock.wall()
        (tmp_path / "trusted_time.json").unlink()


def test_a_note_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    for text in (
        "",
        "{",
        "[]",
        '{"this host": 3}',
        '{"this host": ["one", [1]]}',
        '{"this host": ["b", [1, 2, 3, "x", 5]]}',
    ):
        (tmp_path / "trusted_time.json").write_text(text)
        trusted, _ = times(tmp_path, ManualClock())
        assert trusted.seconds() == 0.0


@given(
    st.lists(
        st.tuples(
            st.integers(1, AGREED // 2), st.one_of(st.integers(-(10**13), -(10**10)), st.integers(10**10, 10**13))
        ),
        max_size=20,
    )
)
def test_time_is_never_ahead_while_the_clock_is_set_sooner_than_it_is_believed(steps: list[tuple[int, int]]) -> None:
    # Given a clock that was right at first, and is set again and again, each time before it was believed
    real = wall = 10**15
    trusted = begun(real, real, 0)
    monotonic = 0
    for passed, by in steps:
        wall += by
        trusted = looked(trusted, wall, monotonic)
        assert trusted.time <= real
        real, wall, monotonic = real + passed, wall + passed, monotonic + passed
        trusted = looked(trusted, wall, monotonic)
        # Then the trusted time is at most the real one
        assert trusted.time <= min(real, wall)


def test_a_clock_that_is_new_to_an_empty_folder_worries_nobody(tmp_path: Path) -> None:
    clock = ManualClock()
    trusted = TrustedTime(clock, boot=lambda: "one")
    noted = TrustedTimes(tmp_path, {"this host": trusted}, clock)
    # Given stores that rest on servers, and a folder without any
    noted.begin(fresh=False, here=False)
    assert trusted.seconds() == 0.0
    assert noted.troubles() == []
    # When the clock was believed once, then operators are told when it is set
    clock.advance(6 * HOUR)
    assert trusted.seconds() == clock.wall()
    clock.jump(8 * DAY)
    trusted.seconds()
    assert len(noted.troubles()) == 1
