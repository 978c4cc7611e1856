"""The judge of the demo's journal, itself judged: with journals in which something was planted."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tailrace.demo.journal import DemoFollower, DemoJournal, Judge, check, parse

FILES = ["/lib/a.py", "/lib/b c.py"]


def start(id: str, at: float, subject: str, fence: int = 1, pid: int = 10, attempt: int = 1) -> str:
    return f"start index {id} {fence} {attempt} {at} {pid} {subject}"


def end(word: str, id: str, at: float, subject: str, fence: int = 1, pid: int = 10, attempt: int = 1) -> str:
    return f"{word} index {id} {fence} {attempt} {at} {pid} {subject}"


def good() -> list[str]:
    """A journal of one file that succeeds at once with its follow-up, and one that is retried, throttled and then
    succeeds."""
    return [
        start("1", 1.0, FILES[0]),
        "submitted summarise s1 0 0 1.5 10 /lib/a.py",
        end("success", "1", 2.0, FILES[0]),
        start("2", 1.1, FILES[1], pid=11),
        end("retry", "2", 1.9, FILES[1], pid=11),
        start("2", 3.0, FILES[1], fence=2, attempt=2),
        end("throttled", "2", 3.1, FILES[1], fence=2, attempt=2),
        start("2", 4.0, FILES[1], fence=3, attempt=2),
        end("success", "2", 4.1, FILES[1], fence=3, attempt=2),
        "start summarise s1 7 1 5.0 12 /lib/a.py",
        "success summarise s1 7 1 5.1 12 /lib/a.py",
    ]


def test_a_good_journal_is_clean() -> None:
    verdict = check(good(), FILES)
    assert verdict.clean and not verdict.fences
    assert (verdict.listed, verdict.indexed, verdict.summarised, verdict.submitted) == (2, 2, 1, 1)
    assert (verdict.retried, verdict.throttled, verdict.dead_lettered, verdict.repeated) == (1, 1, 0, 0)


def test_a_dead_letter_is_an_end() -> None:
    verdict = check([start("1", 1.0, FILES[0]), end("fatal", "1", 2.0, FILES[0])], FILES[:1])
    assert (verdict.clean, verdict.dead_lettered, verdict.indexed) == (True, 1, 0)


def test_a_file_that_never_ended_is_lost() -> None:
    assert check(good()[:5], FILES).lost == [FILES[1], "follow-up of /lib/a.py"]
    assert check([], FILES).lost == FILES


def test_a_follow_up_that_never_ran_is_lost() -> None:
    assert check(good()[:-2], FILES).lost == ["follow-up of /lib/a.py"]


def test_two_executions_at_once_overlap() -> None:
    lines = [*good(), start("1", 1.5, FILES[0], fence=2, pid=99), end("success", "1", 1.7, FILES[0], fence=2, pid=99)]
    verdict = check(lines, FILES)
    assert len(verdict.overlaps) == 1 and "pid 99" in verdict.overlaps[0]
    assert verdict.repeated == 1


def test_one_that_did_not_end_overlaps_with_its_successor() -> None:
    lines = [
        start("1", 1.0, FILES[0]),
        start("1", 9.0, FILES[0], fence=2, pid=11),
        end("success", "1", 9.5, FILES[0], 2, 11),
    ]
    assert len(check(lines, FILES[:1]).overlaps) == 1


def test_one_whose_process_was_killed_does_not() -> None:
    lines = [
        start("1", 1.0, FILES[0]),
        "killed - executor 0 0 3.0 10 -",
        "killed - worker 0 0 3.0 9 -",
        start("1", 9.0, FILES[0], fence=2, pid=11),
        end("success", "1", 9.5, FILES[0], 2, 11),
    ]
    verdict = check(lines, FILES[:1])
    assert verdict.clean and verdict.killed_workers == 1
    # But a successor that began before the kill does overlap.
    lines[3] = start("1", 2.9, FILES[0], fence=2, pid=11)
    assert len(check(lines, FILES[:1]).overlaps) == 1


def test_a_fence_that_does_not_rise_is_a_finding() -> None:
    lines = [
        text.replace("start index 2 3", "start index 2 2").replace("success index 2 3", "success index 2 2")
        for text in good()
    ]
    assert len(check(lines, FILES).fences) == 1


def test_an_end_without_a_start_is_a_damaged_journal() -> None:
    verdict = check([end("success", "1", 2.0, FILES[0])], FILES[:1])
    assert verdict.strange and not verdict.clean
    assert verdict.lost == FILES[:1]


@pytest.mark.parametrize("text", ["", "start index 1 2", "begin index 1 1 1 1.0 1 x", "start index 1 x 1 1.0 1 x"])
def test_what_is_not_a_line_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="not a line of a journal"):
        parse(text)


@given(st.integers(0, len(good()) - 1))
def test_any_line_that_goes_missing_is_noticed(gone: int) -> None:
    lines = good()
    word = lines.pop(gone).split()[0]
    verdict = check(lines, FILES)
    # An end that is missing looks like a run that never ended, a start like an end out of nowhere.
    assert not verdict.clean or word == "submitted"


def test_what_is_written_is_read_back_and_a_half_line_waits(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    follower, journal = DemoFollower(path), DemoJournal(path)
    assert follower.more() == []
    journal.write("start", "index", "stdlib/0/1", 5, 1, "/lib/with space\nand more.py")
    journal.write("success", "index", "stdlib/0/1", 5, 1, "/lib/x.py", pid=77)
    with path.open("ab") as file:
        file.write(b"start index 9 ")
    first, second = follower.more()
    assert (first.word, first.fence, first.subject) == ("start", 5, "/lib/with space and more.py")
    assert (second.pid, second.monotonic >= first.monotonic) == (77, True)
    assert follower.more() == []
    with path.open("ab") as file:
        file.write(b"1 1 1.0 3 /lib/y.py\n")
    assert [line.subject for line in follower.more()] == ["/lib/y.py"]


def test_a_judge_that_is_fed_bit_by_bit_says_the_same() -> None:
    judge = Judge(FILES)
    assert judge.missing() == 2
    for text in good():
        judge.take([parse(text)])
        judge.verdict()
    assert judge.missing() == 0
    assert judge.verdict() == check(good(), FILES)
