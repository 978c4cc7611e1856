"""Placement on pools, within their limits; and a sentence for each reason why an item does not start."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tailrace.scheduler.rules.explain import SENTENCES, Reason
from tailrace.scheduler.rules.placement import PoolLimits, WorkerPool, place, room_of


def pool_of(name: str, limit: int) -> WorkerPool:
    pool = WorkerPool(None, name)
    pool.announced(PoolLimits(name, (), limit, limit))
    return pool


@given(st.lists(st.tuples(st.integers(1, 50), st.integers(0, 60), st.booleans()), min_size=1, max_size=6), st.data())
def test_placement_keeps_limits_and_places_everything(states: list[tuple[int, int, bool]], data: Any) -> None:
    pools = []
    for limit, assigned, shut in states:
        pool = pool_of("p", limit)
        pool.assigned, pool.shut = assigned, shut
        pools.append(pool)
    count = data.draw(st.integers(0, room_of(pools)))
    placed = place(pools, count) if count else []
    assert sum(number for _, number in placed) == count
    for pool, number in placed:
        assert 0 < number <= pool.room


def test_the_least_loaded_gets_more() -> None:
    busy, idle = pool_of("busy", 10), pool_of("idle", 10)
    busy.assigned = 6
    placed = {pool.name: number for pool, number in place([busy, idle], 6)}
    assert placed["idle"] > placed.get("busy", 0)


def test_every_reason_has_one_sentence() -> None:
    assert set(SENTENCES) == set(Reason)
    assert max(Counter(SENTENCES.values()).values()) == 1
