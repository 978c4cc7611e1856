"""Limits as the journal shows them, without a word of the scheduler."""

from tailrace.bench.faults.journal import Line
from tailrace.bench.faults.limits_kept import LimitSeen, seen_of_limits
from tailrace.bench.faults.path import QUEUE
from tailrace.bench.faults.verdict import Expected
from tailrace.model.limits import Quota


def ran(id: str, first: float, last: float, word: str = "success") -> list[Line]:
    return [Line("start", id, 1, 1, first, 1, 0), Line(word, id, 1, 1, last, 1, 0)]


def of(*tenants: str) -> dict[str, Expected]:
    return {str(number): Expected(QUEUE, function="f", tenant=name) for number, name in enumerate(tenants)}


def test_what_ran_beside_more_than_a_limit_lets_is_found() -> None:
    lines = [*ran("0", 1.0, 2.0), *ran("1", 1.5, 3.0), *ran("2", 2.0, 2.5, "tick")]
    quotas = [Quota("f", concurrency=2), Quota(tenant="a", concurrency=1), Quota("g", concurrency=1)]
    seen, found = seen_of_limits(lines, of("a", "b", "a"), quotas)
    assert seen == [LimitSeen("f", 2, 0.0), LimitSeen("a", 1, 0.0), LimitSeen("g", 0, 0.0)]
    assert found == []
    _, found = seen_of_limits(lines, of("a", "a", "a"), quotas)
    assert [each.detail for each in found] == ["a: 2 at once, of 1"]


def test_a_downstream_is_paid_by_the_functions_that_call_it() -> None:
    quotas = [Quota("f", downstreams=("shop",)), Quota(downstream="shop", concurrency=1)]
    lines = [*ran("0", 1.0, 2.0), *ran("1", 1.5, 3.0)]
    assert [each.detail for each in seen_of_limits(lines, of("a", "b"), quotas)[1]] == ["shop: 2 at once, of 1"]


def test_starts_of_any_time_are_held_to_rate_and_burst_and_a_new_scheduler_has_a_burst_of_its_own() -> None:
    lines = [line for number in range(6) for line in ran(str(number), 1.0 + number / 10, 1.05 + number / 10)]
    quotas = [Quota("f", rate=5.0, burst=3.0)]  # six starts in half a second, of 2.5 and the burst
    seen, found = seen_of_limits(lines, of(*"aaaaaa"), quotas)
    assert seen == [LimitSeen("f", 1, 3.5)]
    assert [each.detail for each in found] == ["f: 3.50 starts beyond 5/s"]
    assert seen_of_limits(lines, of(*"aaaaaa"), quotas, [1.35])[1] == []
    # And what was on its way to a worker that stood still begins late
    assert seen_of_limits(lines, of(*"aaaaaa"), [Quota("f", rate=5.0, burst=3.0, concurrency=1)])[1] == []
