"""Faults around a topic, and how much of it a fault may repeat."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tailrace.bench.faults import streams_plan
from tailrace.bench.faults.journal import Line
from tailrace.bench.faults.kafka_plan import MIX, brokers_of
from tailrace.bench.faults.path import STREAM, DoneFault, Hit, Reach
from tailrace.bench.faults.plan import WAYS
from tailrace.bench.faults.verdict import Expected, judge


@given(st.integers(0, 1000), st.integers(0, 200), st.sampled_from([1, 3]))
def test_the_same_seed_gives_the_same_plan(seed: int, count: int, brokers: int) -> None:
    assert streams_plan.items(count, seed, MIX) == streams_plan.items(count, seed, MIX)
    steps = streams_plan.faults(count, seed, MIX, brokers_of(brokers))
    assert steps == streams_plan.faults(count, seed, MIX, brokers_of(brokers)) and len(steps) == count


def test_a_whole_run_does_what_was_asked() -> None:
    for seed in range(10):
        actions = [
            action for step in streams_plan.faults(MIX.whole, seed, MIX, brokers_of(1)) for action in step.actions
        ]
        kinds = Counter(action.kind for action in actions)
        assert (kinds["roll tailers"], kinds["kill tailers"], kinds["kill kafka"]) == (20, 20, 10)
        assert kinds["kill scheduler"] == 2 and kinds["outage"] == 1
        assert {f"{way} tailers:kafka" for way in WAYS} <= set(kinds)
        (outage,) = [action for action in actions if action.what == "outage"]
        assert outage.length == 60


def test_three_brokers_are_killed_in_turn() -> None:
    actions = [action for step in streams_plan.faults(30, 1, MIX, brokers_of(3)) for action in step.actions]
    killed = {action.target for action in actions if action.kind == "kill kafka"}
    assert killed == {"kafka-1", "kafka-2", "kafka-3"}


def test_one_item_in_two_hundred_is_poison() -> None:
    items = streams_plan.items(20_000, 1, MIX)
    assert 60 < sum(item.dies for item in items) < 140
    calm = streams_plan.calm(1000, 1, MIX, poison=True)
    assert sum(item.dies for item in calm) == 5 and not any(
        item.dies for item in streams_plan.calm(1000, 1, MIX, poison=False)
    )


def test_more_duplicates_than_were_in_flight_are_found() -> None:
    lines = []
    for number in range(3):
        for fence, at in ((1, 1.0), (2, 4.0)):
            lines += [
                Line("start", f"i{number}", fence, 1, at, 7, 1),
                Line("success", f"i{number}", fence, 1, at + 1, 7, 1),
            ]
    expected = {f"i{number}": Expected(STREAM) for number in range(3)}
    hits = [Hit(Reach.TAILED, begin, end) for begin, end in ((0.5, 0.6), (2.5, 3.0))]
    faults = [
        DoneFault(kind, hit.begin, hit.end, (hit,)) for kind, hit in zip(("earlier", "kill tailers"), hits, strict=True)
    ]
    verdict = judge(lines, expected, faults, in_flight=3)
    assert verdict.clean and verdict.repeated == [0, 3]
    assert [finding.law for finding in judge(lines, expected, faults, in_flight=2).findings] == ["excess"]
