"""Accounts of a downstream, each throttled alone, and names that nobody declared (docs/flow-control.md, FL12, FL13)."""

from __future__ import annotations

from typing import Any

import pytest
from unit.scheduler.test_protection import FREE, A, C, World, throttled

from tailrace.model.limits import Quota
from tailrace.model.outcome import Outcome
from tailrace.model.workload import Kind
from tailrace.scheduler.view import inspect


def test_an_account_of_a_tenant_is_throttled_alone() -> None:
    world = World()
    bad, good = Kind("a", tenant="bad"), Kind("b", tenant="good")
    world.wanted = {bad: 50, good: 50}
    world.verdict = lambda kind, attempt: throttled(after=30.0, scope="tenant") if kind.tenant == "bad" else None
    world.run(1)
    first = world.now
    world.run(5)
    assert world.limit(tenant="bad").state == "closed"
    assert ("d", "") not in world.core.protection.adaptive
    assert world.starts(first, world.now)["a"] == 0
    assert world.starts(first, world.now)["b"] > 1000
    [state] = [each for each in inspect(world.core, "s", world.now).downstreams if each.tenant]
    assert (state.downstream, state.tenant, state.state) == ("d", "bad", "closed")


def test_accounts_that_are_counted_apart_are_bounded_and_the_rest_share_one() -> None:
    quota = Quota(downstream="d", per="tenant", weight=0.0, rate=1e6, max_values=3)
    world = World(quotas=(quota,))
    world.verdict = lambda kind, attempt: throttled(scope="tenant")
    for number in range(20):
        world.push(Kind("a", tenant=f"t{number}"), Kind("a"))
        world.run(0.3)
    tenants = {tenant for _, tenant in world.core.protection.adaptive}
    assert len(tenants) == 4 and "*" in tenants


@pytest.mark.parametrize("named", ["", "nothing", "e", "x" * 300])
def test_a_name_that_is_not_declared_is_counted_and_costs_nothing(named: str) -> None:
    # Given a function that declares d alone, or nothing, and names what it does not
    world = World()
    world.verdict = lambda kind, attempt: throttled(named)
    world.push(FREE, C if not named else A)
    world.run(0.5)
    # Then it is a throttle like any other, of no downstream
    assert [end.outcome for end in world.ended] == [Outcome.THROTTLED] * 2
    assert all(not end.downstream for end in world.ended)
    assert not world.core.protection.adaptive
    assert sum(world.core.protection.unknown.values()) == (1 if not named else 2)


def test_the_only_downstream_is_meant_where_none_is_named() -> None:
    world = World()
    world.verdict = lambda kind, attempt: throttled("")
    world.push(A)
    world.run(0.5)
    assert world.ended[0].downstream == "d"
    assert world.core.protection.throttled == {"d": 1}


def test_ever_new_tenants_are_taken_in_together() -> None:
    # Given a function that says of ever new tenants that their account is throttled
    world = World(slots=2000)
    world.verdict = lambda kind, attempt: throttled(scope="tenant")
    made = 0
    anew = world.core.limits.adapt

    def counted(*arguments: Any) -> None:
        nonlocal made
        made += 1
        anew(*arguments)

    world.core.limits.adapt = counted  # type: ignore[method-assign]
    for second in range(5):
        for number in range(10):
            world.push(*[Kind("a", tenant=f"t{second}-{number}-{each}") for each in range(100)])
            world.run(0.1)
    # Then they have limits up to the bound, and what is out was counted anew a few times alone
    assert made < 12
    assert len(world.core.protection.adaptive) == 1001
    assert inspect(world.core, "s", world.now).downstreams
