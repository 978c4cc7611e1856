"""Known mistakes are hunted in random worlds, in turns; results are kept, and no world is told again."""

import asyncio
from pathlib import Path

from tailrace.testing.simulation.hunt import NONE, HuntLine, HuntOptions, Prey, hunt, kind_of, report, tree_of

EASY = "frontier is off by one"


def test_a_mistake_is_hunted_until_it_was_found_so_often_and_a_second_run_goes_on_from_there(tmp_path: Path) -> None:
    # Given a mistake that every world shows
    results = tmp_path / "found.jsonl"
    worlds: list[int] = []
    # When it is to be found twice
    prey = asyncio.run(
        hunt(HuntOptions([EASY], seeds=3, finds=2, results=results), lambda done, total, told: worlds.append(told))
    )
    # Then two worlds were enough, and nothing was wrong in those without a mistake
    assert {each.bug: (each.seeds, each.found) for each in prey} == {NONE: (3, []), EASY: (2, [0, 1])}
    assert worlds[-1] == 5
    # And when it is asked once more of the same source, then nothing is told again
    worlds.clear()
    again = asyncio.run(
        hunt(HuntOptions([EASY], seeds=3, finds=2, results=results), lambda done, total, told: worlds.append(told))
    )
    assert worlds == []
    assert [each.found for each in again] == [each.found for each in prey]


def test_the_report_has_what_is_found_soonest_first_and_what_is_never_found_last() -> None:
    # Given three mistakes; seed 12 is wrong without any
    prey = [Prey(NONE, 10), Prey("seldom", 10), Prey("often", 10), Prey("never", 10)]
    for each, found in zip(prey, ([12], [12, 40], [11, 13], [12]), strict=True):
        each.add(HuntLine("tree", each.bug, 10, 40, found, ["two at once"] * len(found), 1.0))
    # When it is reported
    rows = [(row["mistake"], row["first_after"], row["found"]) for row in report(prey, 10)]
    # Then what is wrong anyway is nobody's find
    assert rows == [("often", 2, 2), ("(none)", 3, 1), ("seldom", 31, 1), ("never", "never", 0)]


def test_sources_that_differ_have_different_names(tmp_path: Path) -> None:
    (tmp_path / "sdk").mkdir()
    names = set()
    for text in ("one", "two", "one"):
        (tmp_path / "sdk" / "a.py").write_text(text)
        names.add(tree_of(tmp_path))
    assert len(names) == 2


def test_a_violation_is_counted_by_its_first_words() -> None:
    assert kind_of("12.345 two at once: orders/0/1 starts in worker1/1") == "two at once"
    assert kind_of("1.0 the checkpoint passed orders/0/1, which is not done") == "the checkpoint passed"
