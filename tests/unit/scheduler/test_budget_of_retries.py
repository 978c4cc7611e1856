"""The budget of retries of a function that calls a downstream, in the whole core (docs/flow-control.md, FL15)."""

from __future__ import annotations

from collections import Counter
from itertools import cycle

import pytest
from unit.scheduler.test_protection import A, World

from tailrace.model.adaptive import Adaptive
from tailrace.model.limits import Quota
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Ended, Kind
from tailrace.scheduler.view import inspect


def test_retries_are_a_part_of_first_attempts_and_wait_beyond_it() -> None:
    # Given a function that calls a downstream, of which half the first attempts fail: retries would be as many
    world = World(takes=0.01)
    failing = Counter[int]()

    def verdict(kind: Kind, attempt: int) -> Ended | None:
        failing[attempt] += 1
        return Ended(Outcome.RETRY, "no") if attempt == 1 and failing[1] % 2 else None

    world.verdict = verdict
    quota = Quota("a", rate=100.0)
    world.core.apply([], [quota], [], 2, world.now)
    world.wanted = {A: 30}
    world.run(3)
    first = world.now
    for _ in range(60):
        world.push(*[A] * 30, attempt=2)
        world.run(0.5)
    retries = world.starts(first + 10, world.now, attempt=2)["a"]
    firsts = world.starts(first, world.now, attempt=1)["a"]
    # Then they are a fifth of them, about, and what is beyond waits or rests in its source, at no charge
    assert retries <= 0.2 * firsts + 20
    assert retries >= 0.1 * firsts * 2 / 3
    back = [end for end in world.ended if end.outcome == Outcome.HELD]
    assert back and all(end.after for end in back if end.reason == "retry_budget")
    assert {state.function for state in inspect(world.core, "s", world.now).retries} == {"a"}


def test_the_budget_of_retries_follows_its_quota_also_while_there_is_one() -> None:
    # Given a function of which retries have a budget, since first attempts fail
    world, fails = World(takes=0.1), cycle([True, False])
    world.verdict = lambda kind, attempt: Ended(Outcome.RETRY, "no") if attempt == 1 and next(fails) else None
    world.wanted = {A: 10}
    world.run(1, 0.05)
    [budget] = world.core.protection.budgets.values()
    assert budget.part == pytest.approx(0.2)
    # When the quota of what it calls says another part, Then that is in force
    world.core.apply([], [Quota(downstream="d", adaptive=Adaptive(retries=0.8))], [], 2, world.now)
    assert world.core.protection.budgets == {"a": budget} and budget.part == pytest.approx(0.8)
    # And when it says that there is none, retries are held up by none any more
    world.push(*[A] * 100, attempt=2)
    world.core.apply([], [Quota(downstream="d", adaptive=Adaptive(retries=1.0))], [], 3, world.now)
    assert not world.core.protection.budgets
    first = world.now
    world.run(1, 0.05)
    assert world.starts(first, world.now, attempt=2)["a"] == 100


def test_a_lone_retry_starts_within_a_second() -> None:
    world = World()
    world.verdict = lambda kind, attempt: Ended(Outcome.RETRY, "no")
    world.push(A)
    world.run(0.5)
    world.verdict = lambda kind, attempt: None
    first = world.now
    world.push(A, attempt=2)
    world.run(1.2)
    assert world.starts(first, world.now) == {"a": 1}
