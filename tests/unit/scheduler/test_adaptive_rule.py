"""The adaptive limit of a downstream alone (docs/flow-control.md, FL12 and FL14), and the budget of retries (FL15)."""

from __future__ import annotations

import math
from collections import deque

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tailrace.model.adaptive import Adaptive
from tailrace.scheduler.rules.adaptive import DEEPEST, LONGEST_CLOSED, AdaptiveLimit, DownstreamState
from tailrace.scheduler.rules.retry_budget import LEAST, WINDOW, RetryBudget

STEP = 0.01


class Called:
    """A downstream that takes `capacity` a second of calls that take `takes`, by whom it is called whenever there is
    room, up to `offered` a second."""

    def __init__(self, capacity: float, takes: float, numbers: Adaptive, offered: float = math.inf) -> None:
        self.now = 100.0
        self.limit = AdaptiveLimit("d", "", numbers, self.now)
        self.limit.told("429", None, self.now, self.now)
        self.capacity, self.takes, self.offered = capacity, takes, offered
        self.tokens = self.owed = 0.0
        self.out: deque[float] = deque()
        self.taken: list[tuple[float, bool]] = []

    def run(self, seconds: float) -> None:
        for _ in range(round(seconds / STEP)):
            self.now += STEP
            self.tokens = min(max(1.0, self.capacity / 10), self.tokens + self.capacity * STEP)
            passed, last = 0, 0.0
            while self.out and self.out[0] + self.takes <= self.now:
                started = self.out.popleft()
                taken = self.tokens >= 1
                self.tokens -= taken
                self.taken.append((self.now, taken))
                if taken:
                    passed, last = passed + 1, started
                else:
                    self.limit.told("429", None, started, self.now)
                self.limit.running -= 1
                self.limit.ended += 1
            if passed:
                self.limit.passed(passed, last, self.now)
            self.limit.look(self.now)
            self.owed = min(self.offered, self.owed + self.offered * STEP)
            count = max(0, min(self.limit.room(self.now), int(self.owed) if self.owed < math.inf else 10_000))
            count = min(count, 10_000 - len(self.out))
            self.owed -= count if self.owed < math.inf else 0
            self.limit.start(count)
            self.out.extend([self.now] * count)

    def seen(self, seconds: float) -> tuple[float, float]:
        """Calls, and those that were taken, a second of the last so many seconds."""
        here = [taken for at, taken in self.taken if at >= self.now - seconds]
        return len(here) / seconds, sum(here) / seconds


@pytest.mark.parametrize("capacity", [20.0, 500.0, 3000.0])
@pytest.mark.parametrize("takes", [0.01, 0.1, 0.5])
def test_whatever_it_takes_and_however_long_a_call_is_it_is_held_and_used(capacity: float, takes: float) -> None:
    world = Called(capacity, takes, Adaptive())
    world.run(60)
    calls, taken = world.seen(30)
    assert calls <= 1.05 * capacity
    assert taken >= 0.88 * capacity


def test_what_is_not_used_does_not_grow() -> None:
    world = Called(500.0, 0.01, Adaptive(), offered=200.0)
    world.limit.look(world.now)
    world.run(5)
    before = world.limit.allowed
    world.run(60)
    assert world.limit.allowed <= max(before, 200.0 / 0.8 * 1.1)


def test_one_that_takes_twice_as_much_is_found_out_within_ten_seconds() -> None:
    world = Called(250.0, 0.02, Adaptive())
    world.run(40)
    world.capacity = 500.0
    world.run(10)
    assert world.seen(1)[1] >= 450


steps = st.lists(
    st.one_of(
        st.tuples(st.just("told"), st.sampled_from([None, 0.0, 1.0, 40.0, 1e6, math.nan]), st.floats(0, 3)),
        st.tuples(st.just("passed"), st.integers(1, 50), st.floats(0, 3)),
        st.tuples(st.just("unknown"), st.none(), st.floats(0, 3)),
        st.tuples(st.just("start"), st.integers(1, 50), st.none()),
        st.tuples(st.just("pass"), st.sampled_from([0.01, 0.1, 0.5, 5.0, 40.0, 400.0]), st.none()),
    ),
    max_size=80,
)


#: Strategies for the events that it is told, and for its numbers.
SAID = (steps, st.sampled_from([Adaptive(), Adaptive(floor=2.0, ceiling=30.0, slow_start=0.0), Adaptive(decrease=0.5)]))


@settings(max_examples=300, deadline=None)
@given(*SAID)
def test_whatever_is_said_it_stays_within_its_bounds_and_shrinks_once_an_epoch(
    said: list[tuple[str, float | None, float | None]], numbers: Adaptive
) -> None:
    now = 100.0
    limit = AdaptiveLimit("d", "", numbers, now)
    for what, value, ago in said:
        allowed, epoch, state, since = limit.allowed, limit.epoch, limit.state, limit.epoch_at
        at = now - (ago or 0.0)
        if what == "told":
            limit.told("429", value, at, now)
            # What started before it last shrank or opened moves nothing
            if at < since and state is DownstreamState.OPEN:
                assert (limit.state, limit.allowed, limit.epoch) == (state, allowed, epoch)
        elif what == "passed":
            limit.passed(int(value or 1), at, now)
        elif what == "unknown":
            limit.unknown(at, now)
        elif what == "start":
            count = max(0, min(int(value or 1), limit.room(now)))
            limit.start(count)
            if state is DownstreamState.PROBING:
                assert count <= 1
            assert state is not DownstreamState.CLOSED or not count
            limit.running -= count // 2
            limit.ended += count // 2
        else:
            now += value or 0.0
            limit.look(now)
            limit.look(now)
        if limit.allowed < math.inf:
            assert limit.allowed >= numbers.floor
            assert not numbers.ceiling or limit.allowed <= numbers.ceiling
            if allowed < math.inf and limit.allowed < allowed:
                assert limit.epoch == epoch + 1 and limit.allowed >= allowed * DEEPEST * numbers.decrease - 1e-9
        assert limit.epoch - epoch <= 1
        assert limit.until <= now + LONGEST_CLOSED
        assert (limit.room(now) <= 0) or limit.state is not DownstreamState.CLOSED
    # Whatever was said, time alone leads to a probe
    if limit.state is DownstreamState.CLOSED:
        limit.look(now + LONGEST_CLOSED)
        assert limit.state is DownstreamState.PROBING and limit.room(now + LONGEST_CLOSED) == 1


@given(
    st.floats(0.0, 1.0),
    st.lists(st.tuples(st.integers(0, 200), st.integers(0, 200), st.floats(0.01, 2.0)), max_size=60),
)
def test_retries_are_never_more_than_their_part_of_first_attempts_and_one_a_second(
    part: float, said: list[tuple[int, int, float]]
) -> None:
    now = 100.0
    budget = RetryBudget("f", part, now)
    firsts: list[tuple[float, int]] = []
    retries: list[tuple[float, int]] = []
    for first, wanted, pause in said:
        now += pause
        budget.look(now)
        budget.firsts.running += first
        firsts.append((now, first))
        count = max(0, min(wanted, budget.room(now)))
        budget.start(count)
        retries.append((now, count))
        here = sum([count for at, count in retries if at >= now - WINDOW])
        before = sum([count for at, count in firsts if at >= now - 2 * WINDOW - 2.5])
        assert here <= LEAST * (WINDOW + 2) + part * before * 1.2 + 1
