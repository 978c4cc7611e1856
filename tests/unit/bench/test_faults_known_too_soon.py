"""Progress that is known, against the journal: each thing planted is found."""

from __future__ import annotations

from tailrace.bench.faults.journal import Line
from tailrace.bench.faults.known_too_soon import JournaledProgress, KnownProgress, known_too_soon

PLACE = "faults/t-0"
IDS = [f"{PLACE}/{position}" for position in range(3)]


def line(word: str, position: int, at: float) -> Line:
    return Line(word, f"{PLACE}/{position}", 1, 1, at, 7, 1)


def told(at: float, position: int, *ahead: int, place: str = PLACE) -> KnownProgress:
    return KnownProgress(at, place, JournaledProgress(position, frozenset(ahead)))


DONE = [line("start", 0, 1.0), line("success", 0, 1.2), line("start", 1, 1.1), line("success", 1, 3.0)]


def test_what_is_known_behind_what_is_done_proves_nothing() -> None:
    assert known_too_soon(IDS, DONE, [told(1.3, 1), told(3.1, 2), told(1.0, 0, place="faults/t-1")]) == []


def test_a_position_past_an_unfinished_item_is_found_once() -> None:
    (finding,) = known_too_soon(IDS, DONE, [told(1.3, 2), told(1.4, 2)])
    assert (finding.law, finding.id) == ("passed", f"{PLACE}/1")
    (never,) = known_too_soon(IDS, DONE, [told(9.0, 3)])
    assert never.id == f"{PLACE}/2", "nobody ever ran it"


def test_what_is_known_as_done_above_the_position_is_held_to_it_too() -> None:
    (finding,) = known_too_soon(IDS, DONE, [told(1.3, 0, 0, 1), told(1.4, 2)])
    assert (finding.law, finding.id) == ("passed", f"{PLACE}/1")
    assert known_too_soon(IDS, DONE, [told(1.3, 0, 0), told(3.1, 0, 0, 1)]) == []


def test_positions_may_be_far_apart() -> None:
    far = [f"p/s/{number << 40}" for number in range(3)]
    lines = [Line("success", far[0], 1, 1, 1.0, 7, 1), Line("success", far[2], 1, 1, 1.0, 7, 1)]
    (finding,) = known_too_soon(far, lines, [told(2.0, (2 << 40) + 1, place="p/s")])
    assert finding.id == far[1]


def test_an_item_that_failed_waits_elsewhere_and_a_throttled_one_does_not() -> None:
    for word in ("success", "retry", "fatal", "crash"):
        assert known_too_soon(IDS, [line(word, 0, 1.0)], [told(2.0, 1)]) == []
    for word in ("throttled", "tick"):
        assert [each.law for each in known_too_soon(IDS, [line(word, 0, 1.0)], [told(2.0, 1)])] == ["passed"]


def test_what_goes_back_is_found() -> None:
    found = known_too_soon(IDS, DONE, [told(3.1, 2), told(3.2, 1), told(3.3, 2)])
    assert [each.law for each in found] == ["backwards"]
