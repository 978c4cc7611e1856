"""The control thread's look: runs that are overdue, and runs that are excused since their process stood still."""

from tailrace.runtime.rules.overdue import LEAST, Overdue

PATIENCE, GRACE = 1.0, 5.0


def test_a_run_is_overdue_when_its_grace_is_over_and_is_looked_at_then() -> None:
    # Given a run that must end at 107
    vigil, hard = Overdue(PATIENCE, GRACE, 100.0), {7: (107.0, 2.0)}
    # Then there is a look each second, and one at that time
    assert vigil.pause({}, 100.0) == PATIENCE
    assert vigil.pause(hard, 100.0) == PATIENCE
    assert vigil.pause(hard, 106.5) == 0.5
    assert vigil.pause(hard, 107.0) == LEAST
    # And it is overdue after it
    assert vigil.overdue(hard, 107.0) is None
    assert vigil.overdue(hard, 107.01) == (7, 2.0)


def test_a_process_that_stood_still_gets_a_whole_grace_before_it_ends_for_one_that_could_not_hear() -> None:
    # Given a process that stood still for 20 s, in which two runs were over; one has a time-out of long after
    vigil = Overdue(PATIENCE, GRACE, 100.0)
    hard = {7: (107.0, 2.0), 8: (119.0, 2.0), 9: (300.0, 195.0)}
    # When the thread looks again
    assert not vigil.looks(hard, 120.0)
    # Then nobody is overdue until the grace is over
    assert vigil.pause(hard, 120.0) == PATIENCE
    assert vigil.overdue(hard, 125.0) is None
    assert vigil.looks({7: (107.0, 2.0), 9: (300.0, 195.0)}, 121.0)
    assert vigil.overdue({7: (107.0, 2.0), 9: (300.0, 195.0)}, 125.1) == (7, 2.0)
    assert vigil.overdue({9: (300.0, 195.0)}, 300.1) == (9, 195.0)


def test_a_run_is_excused_once() -> None:
    # Given a function that keeps everything else in its process from running, again and again
    vigil, hard = Overdue(PATIENCE, GRACE, 100.0), {7: (107.0, 2.0)}
    for now in (110.0, 114.0):
        assert not vigil.looks(hard, now)
    # Then its process ends all the same
    assert vigil.overdue(hard, 115.1) == (7, 2.0)
