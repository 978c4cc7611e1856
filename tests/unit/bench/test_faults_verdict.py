"""The checker of journals is itself checked: clean journals pass, and each thing planted in one is found."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tailrace.bench.faults.journal import FaultJournal, Follower, Line, parse, read, read_texts
from tailrace.bench.faults.path import QUEUE, STREAM, DoneFault, Hit, Owners, Reach, Tenure, reach_of
from tailrace.bench.faults.starved import ProcessorWaits
from tailrace.bench.faults.verdict import Expected, FaultVerdict, judge

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


def fault(reach: Reach, begin: float, end: float, *pids: int, lasting: bool = False) -> DoneFault:
    return DoneFault("some", begin, end, (Hit(reach, begin, end, frozenset(pids)),), end if lasting else 0.0)


@given(worlds(), st.data())
def test_a_second_completion_is_found_unless_a_fault_on_its_path_explains_it(world: World, data: st.DataObject) -> None:
    end = data.draw(st.sampled_from(ends_of(world)))
    assume(all(line.word != "crash" or line.pid != end.pid for line in world.lines))
    again = end._replace(at=end.at + 10, fence=end.fence + 1, pid=98)
    world.lines += [again._replace(word="start", at=end.at + 9), again]
    start = next(line for line in world.lines if (line.word, line.id, line.fence) == ("start", end.id, end.fence))

    def judged(*faults: DoneFault) -> FaultVerdict:
        return judge(world.lines, world.expected, faults, lease=3.0, settled=2.0)

    # Then it is found where nothing explains it
    assert (judged().count("unexplained"), judged().duplicates) == (1, 1)
    # And a fault of what held it explains it: of the whole path, of its own process or that one's parent
    span = end.at + 1.9, end.at + 2.5
    assert judged(fault(Reach.EVERY, *span)).clean
    for pid in (end.pid, end.parent):
        assert judged(fault(Reach.RAN, *span, pid)).clean
    assert judged(fault(Reach.EVERY, start.at - 9, start.at - 2.9)).clean
    # But not one of another process, of another source, of what had not taken it, too late or too early
    queued = world.expected[end.id].source == QUEUE
    for other in (
        fault(Reach.RAN, *span, 98),
        fault(Reach.STREAMED if queued else Reach.QUEUED, *span),
        fault(Reach.NOBODY, *span),
        fault(Reach.EVERY, end.at + 2.1, end.at + 2.5),
        fault(Reach.EVERY, start.at - 9, start.at - 3.1),
        DoneFault("outage", start.at - 9, end.at + 9),
    ):
        assert judged(other).count("unexplained") == 1
        # However many there are
        assert judged(*[other] * 5).count("unexplained") == 1


def twice(id: str, fence: int = 1) -> list[Line]:
    return [
        Line("start", id, fence, 1, 10.0, 20, 5),
        Line("success", id, fence, 1, 10.2, 20, 5),
        Line("start", id, fence + 1, 1, 15.0, 21, 6),
        Line("success", id, fence + 1, 1, 15.2, 21, 6),
    ]


def found_of(lines: list[Line], *faults: DoneFault, wall: float = 0.0, owners: Owners | None = None) -> int:
    """Number of duplicates that nothing explains."""
    expected = {line.id: Expected(STREAM if "/" in line.id else QUEUE) for line in lines}
    return judge(lines, expected, faults, owners=owners or Owners(), lease=3.6, settled=1.0, wall=wall).count(
        "unexplained"
    )


@pytest.mark.parametrize(
    "target", ["gateway", "client:gateway", "gateway:store", "delay", "tailers:delay", "delay:store"]
)
@pytest.mark.parametrize("id", ["a", "faults/0/3"])
def test_what_never_held_an_item_explains_nothing(target: str, id: str) -> None:
    # Given an item that never failed, and a fault of the front door or of the delay service just as it ended
    assert found_of(twice(id), fault(reach_of(target), 10.1, 10.3)) == 1


def test_the_delay_service_held_what_came_back_from_it() -> None:
    failed = [Line("start", "s/0/3", 1, 1, 5.0, 20, 5), Line("retry", "s/0/3", 1, 1, 5.1, 20, 5, 6.0)]
    lines = failed + [line._replace(fence=line.fence + 1, attempt=2) for line in twice("s/0/3")]
    assert found_of(lines, fault(Reach.FAILED, 10.1, 10.3)) == 0
    of_the_queue = [line._replace(id="a") for line in lines]
    assert found_of(of_the_queue, fault(Reach.FAILED, 10.1, 10.3)) == 1


def test_a_fault_that_was_over_before_the_item_was_claimed_explains_nothing() -> None:
    # Given an item that was claimed at 9.9 by the journal's clock, which a queue's fence says, and a store that was
    # killed and back before that
    claimed = 1_700_000_000.0
    lines = twice("a", int(1e6 * claimed))
    wall = claimed - 9.9
    assert found_of(lines, fault(Reach.EVERY, 7.0, 8.8), wall=wall) == 1
    # Then only what was broken from the claim on explains it, or so shortly before that it was still finding out
    assert found_of(lines, fault(Reach.EVERY, 7.0, 9.95), wall=wall) == 0
    assert found_of(lines, fault(Reach.EVERY, 7.0, 9.0), wall=wall) == 0
    # And of an item that had waited long in its scheduler, what broke meanwhile
    assert found_of(lines, fault(Reach.EVERY, 8.0, 8.5), wall=wall + 3) == 0


def test_only_the_tailer_that_owned_the_stream_explains_it() -> None:
    # Given three tailers, of which 31 owned the stream under epoch 7, and 32 another one
    owners = Owners([Tenure(1.0, "s/0", 7, 31), Tenure(1.0, "s/1", 7, 32), Tenure(9.0, "whole/", 8, 31)])
    lines = twice("s/0/3", 7 << 32)
    for pids, unexplained in (((31,), 0), ((32,), 1), ((33,), 1), ((), 0), ((31, 32), 0)):
        assert found_of(lines, fault(Reach.TAILED, 10.1, 10.3, *pids), owners=owners) == unexplained
    whole = twice("whole/5/3", 8 << 32)
    assert found_of(whole, fault(Reach.TAILED, 10.1, 10.3, 31), owners=owners) == 0
    assert found_of(whole, fault(Reach.TAILED, 10.1, 10.3, 32), owners=owners) == 1
    # When it changed hands just then, whoever caused that explains it; and when nobody saw who had it
    moved = Owners([Tenure(1.0, "s/0", 7, 31), Tenure(10.9, "s/0", 8, 32)])
    assert found_of(lines, fault(Reach.TAILED, 10.1, 10.3, 33), owners=moved) == 0
    assert found_of(twice("s/0/3", 6 << 32), fault(Reach.TAILED, 10.1, 10.3, 33), owners=owners) == 0
    # But not when that was long after
    later = Owners([Tenure(1.0, "s/0", 7, 31), Tenure(14.0, "s/0", 8, 32)])
    assert found_of(lines, fault(Reach.TAILED, 10.1, 10.3, 33), owners=later) == 1


def test_each_of_several_things_that_a_fault_hit_counts_for_itself() -> None:
    # Given tailers that were restarted one after the other, and an item that the second had
    owners = Owners([Tenure(1.0, "s/0", 7, 32)])
    hits = (Hit(Reach.TAILED, 4.0, 6.0, frozenset({31})), Hit(Reach.TAILED, 11.3, 13.0, frozenset({32})))
    rolled = DoneFault("roll tailers", 4.0, 13.0, hits)
    assert found_of(twice("s/0/3", 7 << 32), rolled, owners=owners) == 1
    assert (
        found_of(twice("s/0/3", 7 << 32), rolled._replace(hits=(hits[0], hits[1]._replace(begin=11.1))), owners=owners)
        == 0
    )


def test_the_verdict_says_how_much_its_faults_could_explain() -> None:
    # Given an item that ended in a fault and one that did not
    lines = [*twice("a")[:2], *(line._replace(id="b", at=line.at + 50) for line in twice("b")[:2])]
    expected = {"a": Expected(QUEUE), "b": Expected(QUEUE)}
    assert judge(lines, expected, [fault(Reach.EVERY, 10.0, 11.0)]).explicable == 1
    assert judge(lines, expected, [fault(Reach.EVERY, 0.0, 70.0)]).explicable == 2
    assert judge(lines, expected).explicable == 0


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
    kill = fault(Reach.RAN, 2.0, 3.0, 10)
    freeze = fault(Reach.QUEUED, 4.0, 5.5, lasting=True)
    assert judge(lines, expected, [kill]).recoveries == [[4.0]]
    assert judge(lines, expected, [freeze, kill]).recoveries == [[0.5], []]
    assert judge(lines, expected, [fault(Reach.EVERY, 2.0, 3.0)]).recoveries == [[4.0, 7.0]]
    assert judge(lines, expected, [kill]).recovery(0.99) == 4.0


def test_a_part_without_a_processor_explains_only_items_that_it_held_and_is_counted_apart() -> None:
    lines = [
        Line("start", "a", 1, 1, 1.0, 10, 5),
        Line("success", "a", 1, 1, 2.0, 10, 5),
        Line("start", "a", 2, 1, 6.0, 11, 5),
        Line("success", "a", 2, 1, 7.0, 11, 5),
    ]
    for cause, starved in ((fault(Reach.EVERY, 2.5, 5.0), 1), (fault(Reach.RAN, 2.5, 5.0, 99), 0)):
        verdict = judge(lines, {"a": Expected(STREAM)}, starved=[cause])
        assert (verdict.starved, verdict.count("unexplained")) == (starved, 1 - starved)
    # What a fault explains is the fault's
    both = judge(lines, {"a": Expected(STREAM)}, [fault(Reach.EVERY, 2.5, 5.0)], starved=[fault(Reach.EVERY, 2.5, 5.0)])
    assert (both.starved, both.repeated) == (0, [1])


def test_a_process_is_starved_when_it_waited_for_half_of_a_heartbeat() -> None:
    waits = ProcessorWaits(1.0)
    # Ready at once, then kept waiting for 0.3 s of each second, then for all of the time
    assert [waits.seen(at, 0.0) for at in (0.0, 0.25, 0.5)] == [None] * 3
    assert [waits.seen(1.0 + n, 0.3 * n) for n in range(3)] == [None] * 3
    assert waits.seen(3.25, 0.75) is None
    assert waits.seen(3.5, 1.1) == (2.0, 3.5)


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
    journal, follower = FaultJournal(tmp_path), Follower(tmp_path)
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
