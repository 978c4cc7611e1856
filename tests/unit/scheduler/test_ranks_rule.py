"""Ranks of priorities: the more urgent first, and a part for those below."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from tailrace.scheduler.rules.ranks import MOST_OWED, Ranks, parts


@given(st.lists(st.integers(0, 3), min_size=1, max_size=4, unique=True), st.integers(1, 16), st.floats(0, 0.5))
def test_what_lower_ranks_are_owed_stays_in_bounds(ranks: list[int], count: int, share: float) -> None:
    waiting, owed = sorted(ranks), Ranks(4)
    for _ in range(200):
        rank, bound = owed.next(waiting)
        assert rank in waiting and (bound == 0) == (rank == waiting[0])
        owed.started(rank, min(count, bound or count), waiting, share)
        assert all(0 <= each <= MOST_OWED for each in owed.owed)


@given(st.integers(1, 16))
def test_all_lower_ranks_together_get_their_part_and_each_of_them_something(chunk: int) -> None:
    owed, started = Ranks(4), Counter[int]()
    while sum(started.values()) < 20_000:
        rank, bound = owed.next([0, 1, 2, 3])
        count = min(chunk, bound or chunk)
        owed.started(rank, count, [0, 1, 2, 3], 0.05)
        started[rank] += count
    whole = sum(started.values())
    assert abs((whole - started[0]) / whole - 0.05) < 0.01
    assert started[1] > started[2] > 0 and started[3] > 0


def test_priority_is_strict_otherwise() -> None:
    owed = Ranks(4)
    for _ in range(50):
        assert owed.next([1, 3]) == (1, 0)
        owed.started(1, 10, [1, 3], 0.0)
    assert parts(0) == [] and parts(1) == [1.0] and all(abs(sum(parts(lower)) - 1) < 1e-9 for lower in (1, 2, 3, 9))
