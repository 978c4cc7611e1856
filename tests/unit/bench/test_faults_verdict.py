"""The checker of journals is itself checked: clean journals pass, and each thing planted in one is found."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tailrace.bench.faults.journal import Follower, Journal, Line, parse, read, read_texts
from tailrace.bench.faults.verdict import QUEUE, STREAM, Expected, Fault, Verdict, judge

DELAY = 5.0


def text(line: Line) -> str:
    word, id, fence, attempt, at, pid, parent, until = line
    return f"{word} {id} {fence} {attempt} {at:.6f} {pid} {parent} {until:.6f}\n"


class World:
    """A clean run, written as a platform without faults would have it."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.expected: dict[str, Expected] = {}
        self.dead: set[str] = set()


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Items with failures, crashes, throttles and ticks, each run a little after the one before."""
    world = World()
    for number in range(draw(st.integers(1, 6))):
        id = f"i{number}"
        due = draw(st.sampled_from([0.0, 100.0]))
        world.expected[id] = Expected(draw(st.sampled_from([QUEUE, STREAM])), draw(st.booleans()), due)
        at, attempt = due + draw(st.floats(0, 50)), 1
        turns = draw(st.lists(st.sampled_from(["retry", "throttled", "crash", "tick"]), max_size=4))
        for fence, turn in enumerate([*turns, "end"], 1):
            pid = draw(st.integers(10, 15))
            world.lines.append(Line("start", id, fence, attempt, at, pid, 5))
            if turn == "tick":
                world.lines.append(Line("tick", id, fence, attempt, at + 0.5, pid, 5))
            elif turn == "end":
                word = "fatal" if world.expected[id].dies else "success"
                world.lines.append(Line(word, id, fence, attempt, at + 1.0, pid, 5))
            else:
                until = at + 1.0 + DELAY if turn in ("retry", "throttled") else 0.0
                world.lines.append(Line(turn, id, fence, attempt, at + 1.0, pid, 5, until))
                attempt += turn == "retry"
                at += DELAY
            at += 1.5
    return world


def ends_of(world: World) -> list[Line]:
    return [line for line in world.lines if line.word in ("success", "fatal")]


@given(worlds(), st.randoms(use_true_random=False))
def test_a_clean_journal_passes_in_any_order(world: World, random: object) -> None:
    random.shuffle(world.lines)  # type: ignore[attr-defined]  # processes have files of their own
    verdict = judge(world.lines, world.expected)
    assert verdict.findings == []
    assert verdict.completed + verdict.dead == len(world.expected)
    assert (verdict.duplicates, verdict.charged) == (0, 0)


@given(worlds(), st.data())
def test_a_lost_line_is_found(world: World, data: st.DataObject) -> None:
    gone = data.draw(st.sampled_from([line for line in world.lines if line.word in ("start", "success", "fatal")]))
    verdict = judge([line for line in world.lines if line is not gone], world.expected)
    assert verdict.count("strange" if gone.word == "start" else "lost") >= 1


@given(worlds(), st.data())
def test_an_item_that_vanished_is_lost(world: World, data: st.DataObject) -> None:
    gone = data.draw(st.sampled_from(sorted(world.expected)))
    verdict = judge([line for line in world.lines if line.id != gone], world.expected)
    assert [(finding.law, finding.id) for finding in verdict.findings] == [("lost", gone)]


@given(worlds(), st.data(), st.sampled_from(["tick", "success"]))
def test_an_overlap_is_found(world: World, data: st.DataObject, word: str) -> None:
    # Given an execution that goes on after a newer one of its item started
    start = data.draw(st.sampled_from([line for line in world.lines if line.word == "start"]))
    world.lines.append(start._replace(at=start.at - 0.2, fence=start.fence - 1, pid=99))
    world.lines.append(start._replace(at=start.at + 0.1, fence=start.fence - 1, pid=99, word=word))
    # Then it is found, whether or not it ended
    assert judge(world.lines, world.expected).count("overlaps") >= 1


@given(worlds(), st.data())
def test_two_copies_under_one_fence_in_one_process_overlap(world: World, data: st.DataObject) -> None:
    end = data.draw(st.sampled_from(ends_of(world)))
    start = next(line for line in world.lines if (line.word, line.id, line.fence) == ("start", end.id, end.fence))
    world.lines += [start._replace(at=start.at + 0.01), end._replace(at=end.at + 0.01)]
    assert judge(world.lines, world.expected).count("overlaps") == 1


@given(worlds(), st.data())
def test_an_early_start_is_found(world: World, data: st.DataObject) -> None:
    fails = [line for line in world.lines if line.word == "retry"]
    if not fails:
        return
    failed = data.draw(st.sampled_from(fails))
    lines = [
        line._replace(at=failed.until - 0.01)
        if line.word == "start" and (line.id, line.fence) == (failed.id, failed.fence + 1)
        else line
        for line in world.lines
    ]
    assert judge(lines, world.expected).count("early") >= 1


@given(worlds(), st.data())
def test_a_start_before_its_time_of_submission_is_found(world: World, data: st.DataObject) -> None:
    id = data.draw(st.sampled_from(sorted(world.expected)))
    first = min(line.at for line in world.lines if line.id == id)
    world.expected[id] = world.expected[id]._replace(due=first + 0.01)
    assert judge(world.lines, world.expected).count("early") == 1


@given(worlds(), st.data())
def test_a_fence_that_does_not_rise_is_found(world: World, data: st.DataObject) -> None:
    end = data.draw(st.sampled_from(ends_of(world)))
    world.lines += [end._replace(word="start", at=end.at + 9, pid=98), end._replace(at=end.at + 10, pid=98)]
    assert judge(world.lines, world.expected).count("fences") == 1


@given(worlds(), st.data())
def test_a_second_completion_is_found_unless_a_fault_on_its_path_explains_it(world: World, data: st.DataObject) -> None:
    end = data.draw(st.sampled_from(ends_of(world)))
    assume(all(line.word != "crash" or line.pid != end.pid for line in world.lines))
    again = end._replace(at=end.at + 10, fence=end.fence + 1, pid=98)
    world.lines += [again._replace(word="start", at=end.at + 9), again]

    def judged(*faults: Fault) -> Verdict:
        return judge(world.lines, world.expected, faults, before=2.0, after=3.0)

    # Then it is found where nothing explains it
    assert (judged().count("unexplained"), judged().duplicates) == (1, 1)
    # And a fault near its first end explains it, on the whole path or on its own process and that one's parent
    near = Fault("kill", end.at + 1.9, end.at + 2.5)
    for pids in ({end.pid}, {end.parent}, set()):
        assert judged(near._replace(pids=frozenset(pids))).clean
    # But not one of another process, of another source, too late or too early
    source = world.expected[end.id].source
    for other in (
        near._replace(pids=frozenset({98})),
        near._replace(sources=frozenset({QUEUE, STREAM} - {source})),
        near._replace(begin=end.at + 2.1),
        near._replace(begin=end.at - 9, end=end.at - 3.1),
    ):
        assert judged(other).count("unexplained") == 1


def test_a_crash_of_the_same_process_explains_its_neighbours() -> None:
    lines = [
        Line("start", "a", 1, 1, 1.0, 10, 5),
        Line("start", "killer", 1, 1, 1.0, 10, 5),
        Line("success", "a", 1, 1, 2.0, 10, 5),
        Line("crash", "killer", 1, 1, 2.1, 10, 5),
        Line("start", "a", 2, 1, 3.0, 11, 5),
        Line("success", "a", 2, 1, 4.0, 11, 5),
    ]
    expected = {"a": Expected(QUEUE), "killer": Expected(QUEUE, dies=True)}
    verdict = judge(lines, expected, dead_letters=["killer"])
    assert verdict.clean and (verdict.duplicates, verdict.dead, verdict.completed) == (1, 1, 1)
    elsewhere = [line._replace(pid=77) if line.id == "killer" else line for line in lines]
    assert judge(elsewhere, expected, dead_letters=["killer"]).count("unexplained") == 1


def test_who_must_die_and_does_not_is_lost_and_who_must_not_and_does_is_found() -> None:
    lines = [Line("start", "a", 1, 1, 1.0, 10, 5), Line("success", "a", 1, 1, 2.0, 10, 5)]
    assert judge(lines, {"a": Expected(QUEUE, dies=True)}).count("lost") == 1
    assert judge(lines, {"a": Expected(QUEUE)}, dead_letters=["a"]).count("dead") == 1
    assert judge(lines, {}).count("strange") == 1


def test_attempts_that_the_function_did_not_fail_are_charged() -> None:
    lines = [
        Line("start", "a", 1, 1, 1.0, 10, 5),
        Line("retry", "a", 1, 1, 2.0, 10, 5, 3.0),
        Line("start", "a", 2, 3, 9.0, 10, 5),
        Line("success", "a", 2, 3, 10.0, 10, 5),
    ]
    assert judge(lines, {"a": Expected(QUEUE)}).charged == 1
    assert judge([line._replace(attempt=min(2, line.attempt)) for line in lines], {"a": Expected(QUEUE)}).charged == 0


def test_a_failure_that_nobody_heard_of_delays_nothing() -> None:
    lines = [
        Line("start", "a", 1, 1, 1.0, 10, 5),
        Line("retry", "a", 1, 1, 2.0, 10, 5, 60.0),  # the process is killed here
        Line("start", "a", 2, 1, 4.0, 11, 5),
        Line("success", "a", 2, 1, 5.0, 11, 5),
    ]
    assert judge(lines, {"a": Expected(QUEUE)}).clean


def test_recovery_counts_from_the_last_fault_before_the_item_ran_on() -> None:
    lines = [
        Line("start", "a", 1, 1, 1.0, 10, 5),  # killed at 2, started again at 6
        Line("start", "a", 2, 1, 6.0, 11, 5),
        Line("success", "a", 2, 1, 7.0, 11, 5),
        Line("start", "b", 1, 1, 1.0, 12, 5),  # another process
        Line("success", "b", 1, 1, 9.0, 12, 5),
    ]
    expected = {"a": Expected(QUEUE), "b": Expected(STREAM)}
    kill = Fault("kill", 2.0, 3.0, frozenset({10}))
    freeze = Fault("freeze", 4.0, 5.5, sources=frozenset({QUEUE}), lasting=True)
    assert judge(lines, expected, [kill]).recoveries == [[4.0]]
    assert judge(lines, expected, [freeze, kill]).recoveries == [[0.5], []]
    assert judge(lines, expected, [kill._replace(pids=frozenset())]).recoveries == [[4.0, 7.0]]
    assert judge(lines, expected, [kill]).recovery(0.99) == 4.0


@given(worlds(), st.data())
def test_a_torn_last_line_is_found(world: World, data: st.DataObject) -> None:
    whole = "".join(text(line) for line in world.lines)
    last = len(text(world.lines[-1]))
    cut = data.draw(st.integers(1, last))
    reading = read_texts([whole[:-cut]])
    torn = [] if cut == last else [whole[-last:-cut]]
    assert reading.damaged == torn
    verdict = judge(reading.lines, world.expected, damaged=reading.damaged)
    assert verdict.count("damaged") == len(torn) and not verdict.clean


@pytest.mark.parametrize("bad", ["", "start a 1 1 1.0 10", "begin a 1 1 1.0 10 5 0.000000", "start a x 1 1.0 1 1 0.0"])
def test_what_is_no_line_is_damage(bad: str) -> None:
    assert parse(bad) is None
    assert read_texts([f"{bad}\nstart a 1 1 1.0 10 5 0.000000\n"]).damaged == [bad]


def test_what_is_written_is_read_back_and_followed(tmp_path: Path) -> None:
    journal, follower = Journal(tmp_path), Follower(tmp_path)
    assert follower.more() == []
    journal.write("start", "a", 1, 2)
    journal.write("retry", "a", 1, 2, 77.5)
    lines = read(tmp_path).lines
    assert [(line.word, line.id, line.fence, line.attempt, line.until) for line in lines] == [
        ("start", "a", 1, 2, 0.0),
        ("retry", "a", 1, 2, 77.5),
    ]
    assert follower.more() == lines and follower.more() == []
    with next(tmp_path.iterdir()).open("a") as file:
        file.write("success a 1 ")
    assert follower.more() == [] and read(tmp_path).damaged == ["success a 1 "]
