"""Turns (deficit round robin) of functions and tenants, by weight and cost."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.workload import Kind
from tailrace.scheduler.rules.flow import Flow
from tailrace.scheduler.rules.turns import Turns, clamp_weight


class Owner:
    """A function, as turns see it."""

    def __init__(self, weight: float = 1.0) -> None:
        self.weight = weight
        self.levels = 4


def flow_of(owner: Owner, tenant: str = "", rank: int = 0, weight: float = 1.0) -> Flow:
    flow = Flow(owner, Kind("f", rank, "", tenant))
    flow.weight = weight
    return flow


def served(turns: Turns, rounds: int, cost: dict[Flow, float] | None = None) -> Counter[Flow]:
    """Number of items that each flow got, when all of them always have more."""
    counts = Counter[Flow]()
    for _ in range(rounds):
        node, flow, bound = turns.next()
        assert bound >= 0
        turns.took(node, flow, 1, (cost or {}).get(flow, 0.01), 0.0)
        counts[flow] += 1
        turns.add(flow, 0.0)
    return counts


@given(st.lists(st.sampled_from([0.5, 1.0, 2.0, 4.0]), min_size=2, max_size=8))
def test_functions_share_by_weight(weights: list[float]) -> None:
    turns = Turns(0.05)
    flows = [flow_of(Owner(weight)) for weight in weights]
    for flow in flows:
        turns.add(flow, 0.0)
    counts = served(turns, 2000)
    shares = [counts[flow] / weight for flow, weight in zip(flows, weights, strict=True)]
    assert max(shares) - min(shares) <= 2 / min(weights)


def test_tenants_share_by_weight_and_cost_within_a_function() -> None:
    turns, owner = Turns(0.05), Owner()
    light, heavy, slow = flow_of(owner, "a"), flow_of(owner, "b", weight=3.0), flow_of(owner, "c")
    for flow in (light, heavy, slow):
        turns.add(flow, 0.0)
    counts = served(turns, 2000, {slow: 0.04})
    assert abs(counts[heavy] / counts[light] - 3) < 0.1 and abs(counts[light] / counts[slow] - 4) < 0.2


def test_a_tenant_with_ten_collections_has_one_tenants_turns() -> None:
    turns, owner = Turns(0.05), Owner()
    many = [Flow(owner, Kind("f", 0, f"c{number}", "many")) for number in range(10)]
    one = flow_of(owner, "one")
    for flow in (*many, one):
        turns.add(flow, 0.0)
    counts = served(turns, 2000)
    assert abs(sum(counts[flow] for flow in many) - counts[one]) <= 12


def test_who_pauses_saves_nothing_up_and_stays_in_debt_for_a_while() -> None:
    turns = Turns(0.05)
    idle, busy = flow_of(Owner()), flow_of(Owner())
    turns.add(busy, 0.0)
    served(turns, 500)
    turns.add(idle, 0.0)
    counts = served(turns, 100)
    assert abs(counts[idle] - counts[busy]) <= 2


def test_a_dropped_function_leaves_nothing() -> None:
    turns, owner = Turns(0.05), Owner()
    gone, stays = flow_of(owner, "a"), flow_of(Owner(), "a")
    turns.add(gone, 0.0)
    turns.add(stays, 0.0)
    turns.drop(owner)
    assert turns.size == 1 and turns.next()[1] is stays


def test_weights_are_bounded_and_zero_means_one() -> None:
    assert [clamp_weight(weight) for weight in (0, 1e-9, 1e9, 2)] == [1.0, 0.01, 100.0, 2]
