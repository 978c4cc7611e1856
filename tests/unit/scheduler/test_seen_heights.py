"""Heights of stores, as a scheduler remembers them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tailrace.model.height import KEPT, MOST
from tailrace.scheduler.rules.adoption import AHEAD
from tailrace.scheduler.rules.heights import NAME, SeenHeights

WALL = 1_800_000_000.0
TOLD = st.tuples(st.sampled_from("abc"), st.integers(0, 1 << 62), st.floats(0, KEPT))


@given(st.lists(TOLD, max_size=20))
def test_of_each_store_the_highest_is_remembered_that_a_store_can_have_given(
    told: list[tuple[str, int, float]],
) -> None:
    seen, most = SeenHeights(), int((WALL + AHEAD) * 1e6)
    for store, highest, now in sorted(told, key=lambda each: each[2]):
        seen.saw(store, highest, now, WALL)
    for store in "abc":
        believed = [highest for name, highest, _ in told if name == store and highest <= most]
        assert seen.highest(store) == max(believed, default=0)


def test_stores_of_which_nobody_told_for_long_are_forgotten_and_so_are_the_first_of_too_many() -> None:
    seen = SeenHeights()
    seen.saw("old", 1, 0.0, WALL)
    seen.saw("young", 1, KEPT, WALL)
    seen.saw("new", 1, KEPT + 1, WALL)
    assert [seen.highest(name) for name in ("old", "young", "new")] == [0, 1, 1]
    for number in range(MOST - 1):
        seen.saw(str(number), 1, KEPT + 2 + number, WALL)
    assert [seen.highest(name) for name in ("young", "new", "0")] == [0, 1, 1]
    seen.saw("x" * (NAME + 1), 1, KEPT, WALL)
    assert seen.highest("x" * (NAME + 1)) == 0
