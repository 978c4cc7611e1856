"""Steps of an item that leaves a stream tailer: each way ends, in any state of its row and of its store."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.ledger import NOT_YET, LedgerEntry, LedgerPlace
from tailrace.tailers.rules.departure_steps import DepartureEvent, Leg, Step, Way, begin, follow, resume
from tailrace.tailers.rules.ledger import SOON

NOW = 1000.0
LATER = NOW + 2 * SOON
ENDS = (Step.DONE, Step.OVERTAKEN, Step.REFUSED)


def row(place: LedgerPlace, n: int = 1, due: float = LATER) -> LedgerEntry:
    return LedgerEntry(7, place, n, due)


PARKING, PARKED = row(LedgerPlace.PARKING), row(LedgerPlace.PARKED)


def steps(leg: Leg, *events: tuple[DepartureEvent, LedgerEntry | None]) -> list[Step]:
    passed = [leg.step]
    for event, found in events:
        leg = follow(leg, event, NOW, found)
        passed.append(leg.step)
    return passed


def test_what_is_parked_has_its_row_before_its_copy_and_the_row_says_when_it_is_there() -> None:
    told = (DepartureEvent.WRITTEN, PARKING), (DepartureEvent.APPENDED, None), (DepartureEvent.MARKED, None)
    assert steps(begin(Way.PARK, None, PARKING), *told) == [Step.ROW, Step.APPEND, Step.MARK, Step.DONE]
    appended = follow(resume(Way.PARK, PARKING), DepartureEvent.APPENDED, NOW)
    assert (appended.before, appended.row) == (PARKING, PARKED)


def test_a_row_that_is_due_soon_stays_parking() -> None:
    soon = row(LedgerPlace.PARKING, due=NOW + SOON)
    appended = follow(resume(Way.PARK, soon), DepartureEvent.APPENDED, NOW)
    assert (appended.step, appended.row) == (Step.DONE, soon), "and its copy may start from it unread"


def test_what_has_no_row_is_appended_and_gone() -> None:
    assert steps(begin(Way.PARK), (DepartureEvent.APPENDED, None)) == [Step.APPEND, Step.DONE]


def test_a_park_that_finds_a_mark_is_written_over_it_and_one_that_is_further_is_over() -> None:
    # Given a park whose row was marked meanwhile, with an n of its own
    marked = row(LedgerPlace.SUSPECT, n=4)
    again = follow(begin(Way.PARK, None, PARKING), DepartureEvent.WRITTEN, NOW, marked)
    # Then it is compared with the mark, and its n is above
    assert again == Leg(Way.PARK, Step.ROW, marked, PARKING._replace(n=5))
    for found in (None, PARKED, row(LedgerPlace.RUNNING), row(LedgerPlace.DONE)):
        assert follow(begin(Way.PARK, None, PARKING), DepartureEvent.WRITTEN, NOW, found).step is Step.DONE


def test_a_later_parking_is_appended_as_it_stands() -> None:
    later = row(LedgerPlace.PARKING, n=3)
    assert follow(begin(Way.PARK, None, PARKING), DepartureEvent.WRITTEN, NOW, later) == Leg(
        Way.PARK, Step.APPEND, later, later
    )


def test_a_refused_park_is_a_dead_letter_and_its_row_says_so() -> None:
    buried = follow(resume(Way.PARK, PARKING), DepartureEvent.REFUSED, NOW)
    assert buried == Leg(Way.BURY, Step.APPEND, PARKING, row(LedgerPlace.DEAD))
    assert steps(buried, (DepartureEvent.APPENDED, None), (DepartureEvent.MARKED, None)) == [
        Step.APPEND,
        Step.MARK,
        Step.DONE,
    ]
    assert follow(begin(Way.PARK), DepartureEvent.REFUSED, NOW) == Leg(Way.BURY, Step.APPEND)


def test_a_detached_item_is_passed_only_with_its_row_and_its_guard() -> None:
    out = row(LedgerPlace.PARKING, due=NOT_YET)
    detached = begin(Way.DETACH, None, out)
    assert steps(detached, (DepartureEvent.WRITTEN, out), (DepartureEvent.APPENDED, None)) == [
        Step.ROW,
        Step.APPEND,
        Step.DONE,
    ]
    assert follow(detached, DepartureEvent.WRITTEN, NOW, PARKED).step is Step.OVERTAKEN
    assert follow(resume(Way.DETACH, out), DepartureEvent.REFUSED, NOW).step is Step.REFUSED


def test_a_guard_is_refused_once_a_letter_for_want_of_room_and_nothing_else_ever_is() -> None:
    assert follow(begin(Way.GUARD), DepartureEvent.REFUSED, NOW) == Leg(Way.GUARD_SOONER, Step.APPEND)
    assert follow(begin(Way.BURY), DepartureEvent.REFUSED, NOW) == Leg(Way.BURY, Step.NO_ROOM)
    for way in (Way.GUARD_SOONER, Way.STORE, Way.DROP):
        with pytest.raises(ValueError, match="cannot be refused"):
            follow(begin(way), DepartureEvent.REFUSED, NOW)


@pytest.mark.parametrize("way", [Way.BURY, Way.STORE, Way.DROP])
def test_the_row_of_what_ended_is_marked_only_when_its_end_is_durable(way: Way) -> None:
    over = row(LedgerPlace.DONE)
    told = (DepartureEvent.APPENDED, None), (DepartureEvent.MARKED, None)
    assert steps(begin(way, PARKED, over), *told) == [Step.APPEND, Step.MARK, Step.DONE]
    assert steps(begin(way, PARKED, None), told[0]) == [Step.APPEND, Step.DONE]


@pytest.mark.parametrize("way", [Way.END, Way.COUNT, Way.RELEASE, Way.FREE])
def test_some_ways_are_their_rows_alone(way: Way) -> None:
    assert steps(begin(way, PARKED, PARKING), (DepartureEvent.MARKED, None)) == [Step.MARK, Step.DONE]
    assert begin(way, PARKED, None).step is Step.DONE


rows = st.none() | st.builds(
    row, st.sampled_from(LedgerPlace), st.integers(0, 3), st.sampled_from([NOW, LATER, NOT_YET])
)


@given(st.sampled_from(Way), rows, rows, st.lists(st.tuples(st.booleans(), rows), min_size=8, max_size=8))
def test_every_way_ends_and_no_step_comes_twice_but_a_row_that_was_marked(
    way: Way, before: LedgerEntry | None, wanted: LedgerEntry | None, answers: list[tuple[bool, LedgerEntry | None]]
) -> None:
    # Given a departure of any way and any answers, of which the fourth write of a row finds no mark any more
    leg = begin(way, before, wanted)
    for number, (refused, found) in enumerate(answers):
        if leg.step in ENDS:
            break
        marked = found is not None and found.place is LedgerPlace.SUSPECT
        if leg.step is Step.ROW:
            event, found = DepartureEvent.WRITTEN, None if number > 3 and marked else found
        elif leg.step is Step.MARK:
            event = DepartureEvent.MARKED
        else:
            may_be_refused = leg.way in (Way.PARK, Way.GUARD, Way.DETACH)
            event = DepartureEvent.REFUSED if refused and may_be_refused else DepartureEvent.APPENDED
        after = follow(leg, event, NOW, found)
        # Then it goes on, and back only to a row that was marked meanwhile or by another way
        order = [Step.ROW, Step.APPEND, Step.MARK, *ENDS]
        forward = order.index(after.step) > order.index(leg.step)
        assert forward or after.way is not leg.way or (leg.step is Step.ROW and marked)
        leg = after
    # And it ends
    assert leg.step in ENDS
