"""The laws that every checkpoint store obeys."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ...sdk.model.errors import StaleFence
from ...stores.checkpoints.checkpoints import Checkpoints, Mark
from .bench import MODEL, StoreBench, StoreLaws

LEASE = 36.0

partitions = st.sampled_from(["0", "1", "ü"])
marks = st.builds(Mark, st.integers(0, 30), st.binary(max_size=8))
steps = st.lists(
    st.one_of(
        st.tuples(st.just("open"), st.none()),
        # How far behind the newest epoch a writer is, and what it writes.
        st.tuples(st.just("commit"), st.tuples(st.integers(0, 2), st.dictionaries(partitions, marks, max_size=3))),
        st.tuples(st.just("release"), st.integers(0, 2)),
        st.tuples(st.just("reopen"), st.none()),
    ),
    max_size=25,
)


class CheckpointLaws(StoreLaws[Checkpoints]):
    """Epochs only rise, marks never go back, and only the newest epoch writes."""

    async def test_a_new_source_starts_clean_and_without_marks(self, store: StoreBench[Checkpoints]) -> None:
        opened = await store.engine.open("s", LEASE)
        assert opened.clean
        assert opened.marks == {}
        assert opened.epoch >= 1

    async def test_every_opening_is_a_new_epoch_even_after_a_restart(self, store: StoreBench[Checkpoints]) -> None:
        epochs = []
        for _ in range(3):
            epochs.append((await store.engine.open("s", LEASE)).epoch)
            await store.reopen()
        assert epochs == sorted(set(epochs))

    async def test_an_owner_that_left_without_a_word_left_something_running(
        self, store: StoreBench[Checkpoints]
    ) -> None:
        # Given an owner that did not release
        await store.engine.open("s", 12.5)
        await store.reopen()
        # When another comes, then it learns for how long to wait
        opened = await store.engine.open("s", LEASE)
        assert not opened.clean
        assert opened.lease == 12.5

    async def test_a_released_source_is_clean_for_the_next_owner_only(self, store: StoreBench[Checkpoints]) -> None:
        first = await store.engine.open("s", LEASE)
        await store.engine.release("s", first.epoch)
        await store.reopen()
        assert (await store.engine.open("s", LEASE)).clean
        assert not (await store.engine.open("s", LEASE)).clean

    async def test_marks_survive_and_the_next_owner_finds_them(self, store: StoreBench[Checkpoints]) -> None:
        epoch = (await store.engine.open("s", LEASE)).epoch
        given_marks = {"0": Mark(5, b"\x00\xff"), "a/ü": Mark(0), "2": Mark(1 << 62, b"x" * 5000)}
        await store.engine.commit("s", epoch, given_marks)
        await store.reopen()
        assert await store.engine.load("s") == given_marks
        assert (await store.engine.open("s", LEASE)).marks == given_marks

    async def test_a_mark_never_goes_back(self, store: StoreBench[Checkpoints]) -> None:
        epoch = (await store.engine.open("s", LEASE)).epoch
        await store.engine.commit("s", epoch, {"0": Mark(5, b"five"), "1": Mark(5)})
        # When one write would move one mark back and another on
        await store.engine.commit("s", epoch, {"0": Mark(4, b"four"), "1": Mark(6)})
        # Then the one stays and the other moves
        assert await store.engine.load("s") == {"0": Mark(5, b"five"), "1": Mark(6)}

    async def test_what_is_settled_ahead_may_change_while_the_position_stays(
        self, store: StoreBench[Checkpoints]
    ) -> None:
        epoch = (await store.engine.open("s", LEASE)).epoch
        await store.engine.commit("s", epoch, {"0": Mark(5, b"a")})
        await store.engine.commit("s", epoch, {"0": Mark(5, b"ab")})
        assert await store.engine.load("s") == {"0": Mark(5, b"ab")}

    async def test_a_former_epoch_writes_nothing(self, store: StoreBench[Checkpoints]) -> None:
        old = await store.engine.open("s", LEASE)
        new = await store.engine.open("s", LEASE)
        with pytest.raises(StaleFence, match="'s'"):
            await store.engine.commit("s", old.epoch, {"0": Mark(9)})
        with pytest.raises(StaleFence):
            await store.engine.release("s", old.epoch)
        assert await store.engine.load("s") == {}
        await store.engine.commit("s", new.epoch, {"0": Mark(1)})
        assert not (await store.engine.open("s", LEASE)).clean

    async def test_a_source_never_opened_is_not_written(self, store: StoreBench[Checkpoints]) -> None:
        with pytest.raises(StaleFence):
            await store.engine.commit("unknown", 1, {"0": Mark(1)})
        assert await store.engine.load("unknown") == {}

    async def test_sources_do_not_mix(self, store: StoreBench[Checkpoints]) -> None:
        first = await store.engine.open("s", LEASE)
        second = await store.engine.open("t", LEASE)
        await store.engine.commit("s", first.epoch, {"0": Mark(5)})
        await store.engine.release("t", second.epoch)
        assert await store.engine.load("t") == {}
        assert not (await store.engine.open("s", LEASE)).clean

    @MODEL
    @given(steps=steps)
    def test_in_any_story_marks_only_rise_and_only_for_the_newest(self, steps: list[tuple[str, object]]) -> None:
        async def story(store: StoreBench[Checkpoints]) -> None:
            epoch = (await store.engine.open("s", LEASE)).epoch
            clean = False
            known: dict[str, Mark] = {}
            for what, value in steps:
                if what == "open":
                    opened = await store.engine.open("s", LEASE)
                    assert opened.epoch > epoch
                    assert (opened.clean, opened.marks) == (clean, known)
                    epoch, clean = opened.epoch, False
                elif what == "commit":
                    assert isinstance(value, tuple)
                    behind, written = value
                    if behind:
                        with pytest.raises(StaleFence):
                            await store.engine.commit("s", epoch - behind, written)
                    else:
                        await store.engine.commit("s", epoch, written)
                        known |= {p: m for p, m in written.items() if m.position >= known.get(p, Mark(0)).position}
                elif what == "release":
                    assert isinstance(value, int)
                    if value:
                        with pytest.raises(StaleFence):
                            await store.engine.release("s", epoch - value)
                    else:
                        await store.engine.release("s", epoch)
                        clean = True
                else:
                    await store.reopen()
                assert await store.engine.load("s") == known

        self.with_store(story)
