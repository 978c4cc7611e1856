"""The laws that every store of drops obeys."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from ...model.drop import Cause, Drop, DropRow
from ...stores.drops.drops import MOST, Drops
from .bench import MODEL, StoreBench, StoreLaws


def gate(first: int, last: int, version: int = 1, at: float = 1.0) -> Drop:
    return Drop(first, last, last - first + 1, Cause.GATE, version, "ann", f"why {version}", at)


async def rows_of(store: StoreBench[Drops], source: str = "t") -> list[Drop]:
    return [row.drop for row in await store.engine.list(source, 10_000)]


ranges = st.builds(
    lambda first, size, version: gate(first, first + size, version),
    st.integers(0, 40),
    st.integers(0, 5),
    st.integers(1, 2),
)
steps = st.lists(st.one_of(st.lists(ranges, max_size=4), st.none()), max_size=12)


class DropLaws(StoreLaws[Drops]):
    """Laws of drops: every position is counted once, however often it is repeated; drops far behind may be joined,
    never forgotten."""

    async def test_a_range_comes_back_whole(self, store: StoreBench[Drops]) -> None:
        full = Drop(1 << 40, (1 << 40) + 9, 10, Cause.RETENTION, 0, "allow_loss", "retention: è", 1_700_000_000.125)
        await store.engine.add("t", "p/é", [full], 0)
        for _ in range(2):
            assert await store.engine.list("", 10) == [DropRow("t", "p/é", full)]
            await store.reopen()

    async def test_nothing_is_a_harmless_addition(self, store: StoreBench[Drops]) -> None:
        await store.engine.add("t", "0", [], 0)
        assert await store.engine.list("", 10) == []

    async def test_ranges_that_touch_are_one(self, store: StoreBench[Drops]) -> None:
        await store.engine.add("t", "0", [gate(5, 9), gate(20, 20)], 0)
        await store.engine.add("t", "0", [gate(10, 11, at=7.0), gate(3, 4)], 0)
        assert await rows_of(store) == [gate(3, 11, at=7.0), gate(20, 20)]
        await store.engine.add("t", "0", [gate(12, 19)], 0)
        assert await rows_of(store) == [gate(3, 20, at=7.0)]

    async def test_repeating_changes_nothing(self, store: StoreBench[Drops]) -> None:
        for _ in range(2):
            await store.engine.add("t", "0", [gate(5, 9), gate(5, 9), gate(7, 12)], 0)
            assert await rows_of(store) == [gate(5, 12)]

    async def test_causes_gates_partitions_and_sources_are_apart(self, store: StoreBench[Drops]) -> None:
        absent = Drop(6, 6, 1, Cause.ABSENT)
        await store.engine.add("t", "0", [gate(5, 5), gate(6, 6, version=2), absent], 0)
        await store.engine.add("t", "1", [gate(6, 6)], 0)
        await store.engine.add("u", "0", [gate(6, 6)], 0)
        assert await rows_of(store) == [gate(5, 5), gate(6, 6, version=2), absent, gate(6, 6)]
        assert [(row.source, row.partition) for row in await store.engine.list("", 10, 2)] == [
            ("t", "0"), ("t", "1"), ("u", "0"),
        ]  # fmt: skip
        assert len(await store.engine.list("t", 2)) == 2

    async def test_within_finds_what_reaches_into_a_range(self, store: StoreBench[Drops]) -> None:
        await store.engine.add("t", "0", [gate(5, 9), gate(20, 29), gate(40, 40)], 0)
        assert await store.engine.within("t", "0", 9, 20) == [gate(5, 9), gate(20, 29)]
        assert await store.engine.within("t", "0", 10, 19) == []
        assert await store.engine.within("t", "1", 0, 100) == []

    async def test_what_is_far_behind_is_joined_across_its_smallest_gaps(self, store: StoreBench[Drops]) -> None:
        # Given twice as many ranges as are kept, every second gap small
        firsts = [place * 10 + (place % 2) * 7 for place in range(2 * MOST + 1)]
        below = firsts[-100]
        await store.engine.add("t", "0", [gate(first, first) for first in firsts], below)
        found = await rows_of(store)
        # Then what lies behind is few ranges, and every position is still counted
        assert len(found) <= MOST + 100
        assert sum(drop.items for drop in found) == len(firsts)
        assert [drop.first for drop in found[-100:]] == firsts[-100:], "what may still grow is exact"
        # And the small gaps went first
        assert all(drop.last - drop.first <= 3 for drop in found[:-100] if drop.items == 2)

    @MODEL
    @given(steps=steps)
    def test_any_story_is_the_story_of_sets(self, steps: list[list[Drop] | None]) -> None:
        async def story(store: StoreBench[Drops]) -> None:
            known: dict[int, set[int]] = {1: set(), 2: set()}
            for step in steps:
                if step is None:
                    await store.reopen()
                    continue
                await store.engine.add("t", "0", step, 0)
                for drop in step:
                    known[drop.version].update(range(drop.first, drop.last + 1))
                found = await rows_of(store)
                for version, positions in known.items():
                    mine = [drop for drop in found if drop.version == version]
                    assert {p for drop in mine for p in range(drop.first, drop.last + 1)} == positions
                    assert sum(drop.items for drop in mine) == len(positions)
                    for former, later in pairwise(mine):
                        assert former.last + 1 < later.first, "they would be one"

        self.with_store(story)
