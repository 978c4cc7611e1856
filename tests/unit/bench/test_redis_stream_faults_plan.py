"""Faults around Redis Streams."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tailrace.bench.faults import streams_plan
from tailrace.bench.faults.plan import WAYS
from tailrace.bench.faults.redis_stream_plan import FILES, MIX, SERVER, STREAMS, file_of


@given(st.integers(0, 1000), st.integers(0, 200))
def test_the_same_seed_gives_the_same_plan(seed: int, count: int) -> None:
    assert streams_plan.items(count, seed, MIX) == streams_plan.items(count, seed, MIX)
    steps = streams_plan.faults(count, seed, MIX, (SERVER,))
    assert steps == streams_plan.faults(count, seed, MIX, (SERVER,)) and len(steps) == count


def test_a_whole_run_does_what_was_asked() -> None:
    for seed in range(10):
        steps = streams_plan.faults(MIX.whole, seed, MIX, (SERVER,))
        alone = Counter(step.kind for step in steps)
        assert (alone["roll tailers"], alone["kill tailers"], alone["kill redis"]) == (10, 10, 10)
        assert alone["two at once"] in (9, 10) and alone["outage"] == 1
        kinds = {action.kind for step in steps for action in step.actions}
        assert {f"{way} tailers:redis" for way in WAYS} <= kinds
        assert {f"kill {part}" for part in ("scheduler", "worker", "executor", "delay", "store")} <= kinds
        assert {"stop tailers", "stop scheduler", "stop redis"} <= kinds


def test_two_at_once_are_the_server_and_something_else() -> None:
    for seed in range(10):
        steps = streams_plan.faults(MIX.whole, seed, MIX, (SERVER,))
        for first, second in (step.actions for step in steps if len(step.actions) > 1):
            assert first.target == SERVER != second.target


def test_a_round_meets_each_family_once() -> None:
    steps = streams_plan.faults(len(MIX.round), 1, MIX, (SERVER,))
    assert {"kill tailers", "roll tailers", "kill redis", "two at once"} <= {step.kind for step in steps}


def test_poison_and_killers_are_among_the_items() -> None:
    items = streams_plan.items(20_000, 1, MIX)
    assert sum(item.function == "killer" for item in items) == 40
    assert 60 < sum(item.dies and item.function != "killer" for item in items) < 140


def test_each_tailer_has_as_many_streams() -> None:
    assert Counter(map(file_of, range(len(STREAMS)))) == dict.fromkeys(FILES, 4)
