"""The laws that every store of segments obeys."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ...model.segment import Segment
from ...stores.segments.segments import Segments
from .bench import MODEL, StoreBench, StoreLaws

counts = st.lists(st.integers(1, 5), min_size=1, max_size=4)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("append"), counts, st.sampled_from([0, 0, 0, 1, -1])),
        st.tuples(st.just("trim"), st.just([]), st.integers(0, 30)),
        st.tuples(st.just("reopen"), st.just([]), st.just(0)),
    ),
    max_size=12,
)


def run(first: int, *sizes: int) -> list[Segment]:
    """Segments of these sizes, one after the other."""
    found: list[Segment] = []
    for size in sizes:
        found.append(Segment(first, size, ordinal=first, version="v é", offset=7 * first, length=9))
        first += size
    return found


class SegmentLaws(StoreLaws[Segments]):
    """Every position in one segment, from 0 on, without a gap, and never another one."""

    async def test_a_segment_comes_back_whole(self, store: StoreBench[Segments]) -> None:
        full = Segment(0, 1, 3, 'e:"é"', 1 << 40, 1 << 33, "why: è", True, True)
        assert await store.engine.append("s", [full, Segment(1, 4, 3)])
        for _ in range(2):
            assert await store.engine.read("s", 0, 10) == [full, Segment(1, 4, 3)]
            assert await store.engine.last("s") == Segment(1, 4, 3)
            await store.reopen()

    async def test_a_source_without_any(self, store: StoreBench[Segments]) -> None:
        assert await store.engine.last("s") is None
        assert await store.engine.read("s", 0, 10) == []
        assert await store.engine.append("s", [])
        await store.engine.trim("s", 10)

    async def test_only_what_follows_is_taken(self, store: StoreBench[Segments]) -> None:
        assert not await store.engine.append("s", run(1, 2))
        assert await store.engine.append("s", run(0, 2, 3))
        for first in (0, 2, 4, 6):
            assert not await store.engine.append("s", run(first, 1, 1))
        assert await store.engine.read("s", 0, 10) == run(0, 2, 3)
        assert await store.engine.append("s", run(5, 1))

    async def test_a_read_begins_with_the_segment_that_holds_the_position(self, store: StoreBench[Segments]) -> None:
        await store.engine.append("s", run(0, 2, 3, 1))
        assert await store.engine.read("s", 4, 10) == run(2, 3, 1)
        assert await store.engine.read("s", 5, 10) == run(5, 1)
        assert await store.engine.read("s", 0, 2) == run(0, 2, 3)
        assert await store.engine.read("s", 6, 10) == []

    async def test_trimming_keeps_what_is_not_wholly_below_and_the_last(self, store: StoreBench[Segments]) -> None:
        await store.engine.append("s", run(0, 2, 3, 1))
        await store.engine.trim("s", 4)
        assert await store.engine.read("s", 0, 10) == run(2, 3, 1)
        await store.engine.trim("s", 100)
        assert await store.engine.read("s", 0, 10) == run(5, 1)
        assert await store.engine.append("s", run(6, 1))

    async def test_sources_are_apart(self, store: StoreBench[Segments]) -> None:
        await store.engine.append("s", run(0, 2))
        await store.engine.append("t", run(0, 1))
        await store.engine.trim("s", 100)
        assert await store.engine.read("t", 0, 10) == run(0, 1)
        assert await store.engine.last("s") == run(0, 2)[0]

    @MODEL
    @given(steps=steps)
    def test_any_story_is_the_story_of_a_list(self, steps: list[tuple[str, list[int], int]]) -> None:
        async def story(store: StoreBench[Segments]) -> None:
            known: list[Segment] = []
            for what, sizes, number in steps:
                end = known[-1].after if known else 0
                if what == "append":
                    fits = number == 0 and end + number >= 0
                    assert await store.engine.append("s", run(max(0, end + number), *sizes)) == (
                        fits or max(0, end + number) == end
                    )
                    if fits or max(0, end + number) == end:
                        known += run(end, *sizes)
                elif what == "trim":
                    await store.engine.trim("s", number)
                    known = [each for each in known[:-1] if each.after > number] + known[-1:]
                else:
                    await store.reopen()
                assert await store.engine.read("s", 0, 1000) == known
                for position in range(0, 40, 3):
                    wanted = [each for each in known if each.after > position][:2]
                    assert await store.engine.read("s", position, 2) == wanted
                assert await store.engine.last("s") == (known[-1] if known else None)

        self.with_store(story)
