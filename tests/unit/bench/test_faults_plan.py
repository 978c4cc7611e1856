"""The plan of items and faults: the same for the same seed, everything in turn, and as it was asked."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tailrace.bench.faults import kafka_plan, plan, redis_stream_plan, streams_plan
from tailrace.bench.faults.path import QUEUE, STREAM, Reach, reach_of


@given(st.integers(0, 10_000), st.integers(0, 300))
def test_the_same_seed_gives_the_same_plan(seed: int, count: int) -> None:
    assert plan.items(count, seed) == plan.items(count, seed)
    assert plan.faults(count % 50, seed) == plan.faults(count % 50, seed)
    assert len(plan.items(count, seed)) == count
    assert len(plan.faults(count % 50, seed)) == count % 50


def test_a_long_plan_does_everything_that_can_be_done() -> None:
    steps = plan.faults(800, seed=5)
    done = {action for step in steps for action in step.actions}
    families = plan.families()
    server = set(families.pop(plan.SERVER))
    assert done == {action for actions in families.values() for action in actions}
    assert any(step.kind == plan.TWO for step in steps)
    assert not done & server


def test_eight_faults_meet_each_family() -> None:
    for seed in range(20):
        steps = plan.faults(8, seed)
        words = {action.what for step in steps for action in step.actions}
        assert {"kill", "stop", "term", plan.STRANGER} <= words and words & {"disk", "gone"}
        assert words & {"exit", "lock", "memory"} and words & set(plan.WAYS)


def test_where_the_queue_rests_on_a_server_every_third_fault_is_its_death() -> None:
    steps = plan.faults(21, seed=5, server=True)
    assert [number for number, step in enumerate(steps) if step.kind == "kill server"] == [2, 5, 8, 11, 14, 17, 20]
    # And the others are those of any run.
    others = [step.actions for step in steps if step.kind != "kill server"]
    assert len({action.what for actions in others for action in actions}) > 4


def test_what_cannot_be_done_here_is_left_out() -> None:
    steps = plan.faults(100, 1, without=("disk", "memory"))
    assert not {"disk", "memory"} & {action.what for step in steps for action in step.actions}


def test_half_of_the_items_are_for_each_source_and_few_die() -> None:
    items = plan.items(6000, seed=1)
    assert Counter(item.source for item in items) == {QUEUE: 3000, STREAM: 3000}
    assert 100 < sum(item.dies for item in items) < 300
    killers = [item for item in items if item.function == "killer" and item.dies]
    assert Counter(item.source for item in killers) == {QUEUE: 2, STREAM: 2}
    # Nor a function that always ends its process: its items would be held, not buried
    assert sum(item.function == "killer" for item in items) >= 5 * len(killers)
    # No function may fail so often that it is taken for an outage
    assert sum(bool(item.arguments.get("fails")) or item.dies for item in items) < len(items) / 4
    assert all(item.source == QUEUE for item in items if item.delay)


def test_restarts_are_rolling() -> None:
    steps = plan.restarts(14, seed=1)
    assert all(action.what == "term" for step in steps for action in step.actions)
    assert Counter(step.actions[0].target for step in steps) == dict.fromkeys(
        ("worker-1", "worker-2", "scheduler", "tailers", "delay", "gateway", "store"), 2
    )


def test_it_is_known_of_everything_that_can_be_broken_whose_hands_it_is() -> None:
    mixes = ((kafka_plan.MIX, kafka_plan.brokers_of(3)), (redis_stream_plan.MIX, (redis_stream_plan.SERVER,)))
    actions = {action for family in plan.families().values() for action in family}
    for mix, servers in mixes:
        for seed in range(5):
            steps = streams_plan.faults(mix.whole, seed, mix, servers)
            actions |= {action for step in steps for action in step.actions}
    assert all(reach_of(action.target) in Reach for action in actions if action.target)
