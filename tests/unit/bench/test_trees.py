"""The scenarios `trees` and `beside_tree`: their reports of claims and of waits."""

from tailrace.bench import beside_tree, trees
from tailrace.bench.backlog import Costs
from tailrace.bench.trees import TreeCosts


def test_claims_and_settlements_are_compared_by_their_medians_and_cpu_by_its_sums() -> None:
    # Given claims that take half as long again in the large tree, and settlements that take twice the CPU beside others
    small = TreeCosts(Costs([0.010, 0.010, 0.5], [0.004] * 3), Costs([0.002] * 3, [0.001] * 3))
    large = TreeCosts(Costs([0.015] * 3, [0.005] * 3), Costs([0.002] * 3, [0.001] * 3))
    beside = TreeCosts(Costs([0.010] * 3, [0.004] * 3), Costs([0.003] * 3, [0.002] * 3))

    # When they are compared
    found = trees.compared({"few": small, "many": large, "one": small, "open": beside})

    # Then each pair has its own ratios, which an outlier does not move
    assert (found["few_claim_us"], found["many_claim_us"], found["open_settle_us"]) == (10_000.0, 15_000.0, 3_000.0)
    assert (found["items_ratio"], found["items_cpu_ratio"]) == (1.5, 1.25)
    assert (found["items_settle_ratio"], found["items_settle_cpu_ratio"]) == (1.0, 1.0)
    assert (found["open_ratio"], found["open_cpu_ratio"]) == (1.0, 1.0)
    assert (found["open_settle_ratio"], found["open_settle_cpu_ratio"]) == (1.5, 2.0)


def test_waits_beside_a_tree_are_compared_with_those_alone() -> None:
    # Given waits of which one in fifty is slow beside a tree that runs
    waits = {"alone": [0.002] * 100, "waiting": [0.003] * 100, "beside": [0.004] * 98 + [0.010] * 2}

    # When they are compared, then by their 99th percentile
    found = beside_tree.compared(waits)
    assert (found["alone_p99_ms"], found["waiting_p99_ms"], found["beside_p99_ms"]) == (2.0, 3.0, 10.0)
    assert (found["beside_p50_ms"], found["ratio"], found["waiting_ratio"]) == (4.0, 5.0, 1.5)
