"""What is broken around a topic, and what the group's offsets prove: each thing planted is found."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tailrace.bench.faults import kafka_plan
from tailrace.bench.faults.journal import Line
from tailrace.bench.faults.kafka_commits import Committed, passed
from tailrace.bench.faults.plan import WAYS
from tailrace.bench.faults.verdict import STREAM, Expected, Fault, judge


@given(st.integers(0, 1000), st.integers(0, 200), st.sampled_from([1, 3]))
def test_the_same_seed_gives_the_same_plan(seed: int, count: int, brokers: int) -> None:
    assert kafka_plan.items(count, seed) == kafka_plan.items(count, seed)
    steps = kafka_plan.faults(count, seed, brokers)
    assert steps == kafka_plan.faults(count, seed, brokers) and len(steps) == count


def test_a_whole_run_does_what_was_asked() -> None:
    for seed in range(10):
        actions = [action for step in kafka_plan.faults(kafka_plan.WHOLE, seed) for action in step.actions]
        kinds = Counter(action.kind for action in actions)
        assert (kinds["roll tailers"], kinds["kill tailers"], kinds["kill kafka"]) == (20, 20, 10)
        assert kinds["kill scheduler"] == 2 and kinds["outage"] == 1
        assert {f"{way} tailers:kafka" for way in WAYS} <= set(kinds)
        (outage,) = [action for action in actions if action.what == "outage"]
        assert outage.length == 60


def test_three_brokers_are_killed_in_turn() -> None:
    actions = [action for step in kafka_plan.faults(30, 1, brokers=3) for action in step.actions]
    killed = {action.target for action in actions if action.kind == "kill kafka"}
    assert killed == {"kafka-1", "kafka-2", "kafka-3"}


def test_one_item_in_two_hundred_is_poison() -> None:
    items = kafka_plan.items(20_000, 1)
    assert 60 < sum(item.dies for item in items) < 140
    calm = kafka_plan.calm(1000, 1, poison=True)
    assert sum(item.dies for item in calm) == 5 and not any(
        item.dies for item in kafka_plan.calm(1000, 1, poison=False)
    )


# The offsets.


def line(word: str, position: int, at: float, partition: int = 0) -> Line:
    return Line(word, f"faults/t-{partition}/{position}", 1, 1, at, 7, 1)


DONE = [line("start", 0, 1.0), line("success", 0, 1.2), line("start", 1, 1.1), line("success", 1, 3.0)]


def test_offsets_behind_what_is_done_prove_nothing() -> None:
    seen = [Committed(1.3, 0, 1), Committed(3.1, 0, 2), Committed(1.0, 1, 0)]
    assert passed(DONE, seen, "t", "faults") == []


def test_an_offset_past_an_unfinished_item_is_found_once() -> None:
    seen = [Committed(1.3, 0, 2), Committed(1.4, 0, 2)]
    (finding,) = passed(DONE, seen, "t", "faults")
    assert (finding.law, finding.id) == ("passed", "faults/t-0/1")
    (never,) = passed(DONE, [Committed(9.0, 0, 3)], "t", "faults")
    assert never.id == "faults/t-0/2", "nobody ever ran it"


def test_an_item_that_failed_waits_elsewhere_and_a_throttled_one_does_not() -> None:
    seen = [Committed(2.0, 0, 1)]
    assert passed([line("retry", 0, 1.0)], seen, "t", "faults") == []
    assert passed([line("fatal", 0, 1.0)], seen, "t", "faults") == []
    for word in ("throttled", "crash", "tick"):
        assert [finding.law for finding in passed([line(word, 0, 1.0)], seen, "t", "faults")] == ["passed"]


def test_an_offset_that_goes_back_is_found() -> None:
    seen = [Committed(3.1, 0, 2), Committed(3.2, 0, 1), Committed(3.3, 0, 2)]
    assert [finding.law for finding in passed(DONE, seen, "t", "faults")] == ["backwards"]


def test_more_duplicates_than_were_in_flight_are_found() -> None:
    lines = []
    for number in range(3):
        for fence, at in ((1, 1.0), (2, 4.0)):
            lines += [
                Line("start", f"i{number}", fence, 1, at, 7, 1),
                Line("success", f"i{number}", fence, 1, at + 1, 7, 1),
            ]
    expected = {f"i{number}": Expected(STREAM) for number in range(3)}
    faults = [Fault("earlier", 0.5, 0.6), Fault("kill tailers", 2.5, 3.0)]
    verdict = judge(lines, expected, faults, in_flight=3)
    assert verdict.clean and verdict.repeated == [0, 3]
    assert [finding.law for finding in judge(lines, expected, faults, in_flight=2).findings] == ["excess"]
