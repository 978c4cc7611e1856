"""Local order, placement over executors, buffer depth, restart pauses."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tailrace.runtime.rules.buffer import MOST_AHEAD, PrefetchDepth, limit
from tailrace.runtime.rules.dispatch import SlotQueue, shares


@given(st.lists(st.one_of(st.integers(0, 5), st.none(), st.just("even")), max_size=60))
def test_highest_priority_first_then_arrival(events: list[int | str | None]) -> None:
    """An integer pushes with that priority, None pops, "even" takes every second item out."""
    waiting: SlotQueue[tuple[int, int]] = SlotQueue()
    model: list[tuple[int, int]] = []
    for number, event in enumerate(events):
        if event is None:
            expected = min(model, default=None)
            assert waiting.pop() == expected
            if expected is not None:
                model.remove(expected)
        elif isinstance(event, str):
            taken = waiting.take(lambda item: item[1] % 2 == 0)
            assert taken == sorted(item for item in model if item[1] % 2 == 0)
            model = [item for item in model if item[1] % 2]
        else:
            item = (min(event, 3), number)
            waiting.push(event, item)
            model.append(item)
        assert len(waiting) == len(model)


@given(st.lists(st.integers(0, 2000), min_size=1, max_size=8), st.integers(0, 3000))
def test_shares_add_up_and_level_the_load(loads: list[int], count: int) -> None:
    given_ = shares(loads, count)
    assert sum(given_) == count
    assert min(given_) >= 0
    after = [load + share for load, share in zip(loads, given_, strict=True)]
    highest_filled = max((level for level, share in zip(after, given_, strict=True) if share), default=0)
    # Nobody who got an item ended up more than one above somebody else.
    assert highest_filled <= min(after) + 1


@given(st.integers(1, 500), st.floats(0, 1e6))
def test_the_limit_is_within_its_bounds(slots: int, rate: float) -> None:
    assert slots <= limit(slots, rate) <= slots + MOST_AHEAD


@given(st.integers(1, 500), st.lists(st.tuples(st.integers(0, 5000), st.floats(0, 1)), max_size=40))
def test_depth_follows_completions_within_its_bounds(slots: int, turns: list[tuple[int, float]]) -> None:
    depth = PrefetchDepth(slots)
    now = 0.0
    for count, pause in turns:
        now += pause
        before = depth.announced
        changed = depth.completed(count, now)
        assert changed == (depth.announced != before)
        assert slots <= depth.announced <= slots + MOST_AHEAD


def test_a_fast_pool_buffers_fifty_milliseconds_and_an_idle_one_its_slots() -> None:
    depth = PrefetchDepth(200)
    for turn in range(1, 9):
        depth.completed(2_500, turn * 0.25)
    assert depth.announced == 700
    for turn in range(9, 30):
        depth.completed(0, turn * 0.25)
    assert depth.announced < 240
