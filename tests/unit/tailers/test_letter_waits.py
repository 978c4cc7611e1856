"""Items whose letters find no room: each is in one place, the first go first, and a room takes few turns."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.tailers.rules import letter_waits
from tailrace.tailers.rules.letter_waits import AT_ONCE, LEAST, LONGEST, PACE, LetterWaits, uncharged

A, B = ("f", ""), ("f", "acme")


def test_pauses_leave_a_room_one_run_in_its_pace_however_many_wait() -> None:
    waits: LetterWaits[int] = LetterWaits()
    pauses = [waits.came(number, A, 0.0) for number in range(3000)]
    assert pauses[0] == LEAST and pauses[-1] == LONGEST and pauses == sorted(pauses)
    assert all(pause >= min(LONGEST, number * PACE) for number, pause in enumerate(pauses, 1))
    # And another room pays nothing for that
    assert waits.came(-1, B, 0.0) == LEAST
    # And one that comes again counts once
    assert waits.came(-1, B, 100.0) == LEAST and len(waits) == 3001


def test_the_first_go_first_and_never_more_than_there_is_room_for() -> None:
    waits: LetterWaits[int] = LetterWaits()
    for number in range(AT_ONCE + 5):
        waits.came(number, A, 0.0)
    waits.came(-1, B, 0.0)
    waits.over([1])
    assert waits.free(A, 3) == [0, 2, 3]
    assert waits.free(B, 0) == waits.free(B, -4) == waits.free(("g", ""), 4) == []
    assert len(waits.free(A, 1 << 40)) == AT_ONCE
    assert waits.asked() == [A, B]
    assert waits.free(A, 9) == [AT_ONCE + 4] and waits.free(B, 9) == [-1]
    assert not waits and waits.asked() == []


def test_rooms_are_looked_at_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letter_waits, "ROOMS", 2)
    waits: LetterWaits[int] = LetterWaits()
    for number in range(5):
        waits.came(number, ("f", str(number)), 0.0)
    seen = [tenant for _ in range(5) for _, tenant in waits.asked()]
    assert {*map(seen.count, "01234")} == {2}


@given(st.lists(st.tuples(st.sampled_from(["came", "over", "free"]), st.integers(0, 9), st.sampled_from([A, B]))))
def test_an_item_is_in_one_room_and_no_room_is_empty(steps: list[tuple[str, int, tuple[str, str]]]) -> None:
    waits: LetterWaits[int] = LetterWaits()
    model: dict[int, tuple[str, str]] = {}
    for step, item, room in steps:
        if step == "came":
            waits.came(item, room, 0.0)
            model.pop(item, None)
            model[item] = room
        elif step == "over":
            waits.over([item])
            model.pop(item, None)
        else:
            expected = [each for each, own in model.items() if own == room][:item]
            assert waits.free(room, item) == expected
            for each in expected:
                del model[each]
        assert {item: own for item, (own, _) in waits.items()} == model and waits.waiting(0.0) == len(model)
        assert {*waits.asked()} == {*model.values()}


def test_of_too_many_the_first_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(letter_waits, "REMEMBERED", 3)
    waits: LetterWaits[int] = LetterWaits()
    for number in range(5):
        waits.came(number, A, 0.0)
    assert waits.free(A, 9) == [2, 3, 4]


def test_nothing_is_charged_and_what_ended_its_process_runs_alone() -> None:
    assert uncharged("retry", 20, 1) == (19, 1)
    assert uncharged("fatal", 1, 0) == (0, 0)
    assert uncharged("lost", 4, 3) == (4, 2)
    assert uncharged("lost", 0, 1) == (0, 1)
