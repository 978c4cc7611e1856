"""The laws that every checkpoint store obeys (L11, L13)."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ...model.errors import PositionsGone, StaleFence
from ...model.life import Life
from ...stores.checkpoints.checkpoints import MOST, Checkpoints, Ending, Mark
from ...stores.checkpoints.lives import Lives
from ...stores.log.readers import KnownTailer, LogReaders
from .bench import MODEL, StoreBench, StoreLaws

partitions = st.sampled_from(["0", "1", "ü"])
marks = st.builds(
    Mark, st.integers(0, 30), st.binary(max_size=8), st.integers(0, 30), st.binary(max_size=8), endings=st.just(())
)
steps = st.lists(
    st.one_of(
        # How far above the newest epoch one opens.
        st.tuples(st.just("open"), st.integers(-2, 2)),
        # How far behind the newest epoch a writer is, and what it writes.
        st.tuples(st.just("commit"), st.tuples(st.integers(0, 2), st.dictionaries(partitions, marks, max_size=3))),
        st.tuples(st.just("reopen"), st.none()),
    ),
    max_size=25,
)


def further(old: Mark, new: Mark) -> Mark:
    """The mark that a store has after a write of `new` over `old`."""
    kept = new if new.position >= old.position else old
    return kept._replace(handed_out=max(old.handed_out, new.handed_out))


class CheckpointLaws(StoreLaws[Checkpoints]):
    """Epochs only rise, marks never go back, and only the newest epoch writes."""

    async def test_a_new_source_has_no_marks(self, store: StoreBench[Checkpoints]) -> None:
        assert await store.engine.load("s") == {}
        assert await store.engine.open("s", 1) == {}

    async def test_tailers_of_the_log_are_known_until_they_are_forgotten(self, store: StoreBench[Checkpoints]) -> None:
        # Given two tailers of the log, one of which has a checkpoint
        readers = LogReaders(store.engine)
        for tailer, stream in (("one", "orders/é"), ("two", "a b\nc"), ("one", "orders/é")):
            await readers.note(tailer, stream)
        await store.engine.open("one", 4)
        await store.engine.commit("one", 4, {"0": Mark(9), "11": Mark(0)})
        # Then both are known, and how far they are, also after a reopening
        for _ in range(2):
            found = sorted(await readers.readers())
            assert found == [KnownTailer("one", "orders/é", {0: 9, 11: 0}), KnownTailer("two", "a b\nc", {})]
            await store.reopen()
            readers = LogReaders(store.engine)
        # When one reads another stream, and the other one is forgotten, then that is known
        await readers.note("two", "other")
        assert await readers.forget("one") == "orders/é" and await readers.forget("one") == ""
        assert await readers.known() == {"two": "other"}
        # And who comes back is known again
        await readers.note("one", "orders/é")
        await readers.note("two", "a b\nc")
        assert await readers.known() == {"one": "orders/é", "two": "a b\nc"}

    async def test_another_one_of_a_name_stops_its_reader_until_somebody_chooses(
        self, store: StoreBench[Checkpoints]
    ) -> None:
        # Given something that was met first before it was there, then with its sign
        lives = Lives(store.engine, "t")
        await lives.load()
        assert await lives.meet("orders", Life(), "the topic") == Life()
        first = await lives.meet("orders", Life("a", "here", "a"), "the topic")
        assert first == Life("a", "here")
        await store.reopen()
        # When it does not tell its sign, then it is the same; when that is another one, then its reader stops
        lives = Lives(store.engine, "t", "stop", ("from_start", "group"))
        await lives.load()
        assert await lives.meet("orders", Life(), "the topic") == first
        assert await lives.meet("orders", Life("a", "here", "a"), "the topic") == first
        how = (
            r"the topic is another one .* \(now b, before a\).*from_start\" reads it .*group\" goes on .*start it again"
        )
        with pytest.raises(PositionsGone, match=how):
            await lives.meet("orders", Life("b", "here", "b"), "the topic")
        # And once somebody chose it has another life, each with a name of its own, of which others hear
        chosen = Lives(store.engine, "t", "group")
        await chosen.load()
        assert await chosen.meet("orders", Life("b", "here", "b"), "the topic") == Life("b", "here", "b", "group")
        await lives.load()
        assert (lives.named("orders"), lives.named("other")) == ("orders@b", "other")
        # And a note that comes late changes nothing
        late = Lives(store.engine, "t", "from_start")
        await late.note("orders", Life("a"))
        await lives.load()
        assert lives.life("orders").id == "b"

    async def test_what_is_forgotten_is_gone_and_older_epochs_write_nothing_all_the_same(
        self, store: StoreBench[Checkpoints]
    ) -> None:
        for source in ("s", "t"):
            await store.engine.open(source, 4)
            await store.engine.commit(source, 4, {"0": Mark(9, b"", 9, b"b", (Ending(1, 2, {3: 2}),))})
        await store.engine.forget("s")
        for _ in range(2):
            assert await store.engine.load("s") == {} and await store.engine.endings("s", "0", 0, 9) == []
            with pytest.raises(StaleFence, match="'s'"):
                await store.engine.commit("s", 3, {"0": Mark(1)})
            assert (await store.engine.load("t"))["0"].position == 9
            await store.reopen()

    async def test_after_an_opening_the_former_owner_writes_nothing_even_after_a_restart(
        self, store: StoreBench[Checkpoints]
    ) -> None:
        # Given an owner, and its successor that opened but wrote nothing yet
        await store.engine.open("s", 4)
        await store.engine.commit("s", 4, {"0": Mark(1)})
        assert await store.engine.open("s", 7) == {"0": Mark(1)}
        await store.reopen()
        # When the former one's late writes arrive
        with pytest.raises(StaleFence, match="'s'"):
            await store.engine.commit("s", 4, {"0": Mark(9, b"", 9)})
        with pytest.raises(StaleFence, match="'s'"):
            await store.engine.open("s", 4)
        # Then nothing moved, and the successor writes
        assert await store.engine.load("s") == {"0": Mark(1)}
        await store.engine.commit("s", 7, {"0": Mark(2)})
        assert await store.engine.load("s") == {"0": Mark(2)}

    async def test_opening_twice_under_one_epoch_is_harmless(self, store: StoreBench[Checkpoints]) -> None:
        await store.engine.open("s", 3)
        await store.engine.commit("s", 3, {"0": Mark(1)})
        assert await store.engine.open("s", 3) == {"0": Mark(1)}
        await store.engine.commit("s", 3, {"0": Mark(2)})

    async def test_marks_survive_and_the_next_owner_finds_them(self, store: StoreBench[Checkpoints]) -> None:
        await store.engine.open("s", 1)
        given_marks = {
            "0": Mark(5, b"\x00\xff", 9),
            "a/ü": Mark(0, book=b"\x00book"),
            "2": Mark(1 << 62, b"x" * 5000, 1 << 62),
        }
        await store.engine.commit("s", 1, given_marks)
        await store.reopen()
        assert await store.engine.load("s") == given_marks
        assert await store.engine.open("s", 2) == given_marks

    async def test_a_mark_never_goes_back(self, store: StoreBench[Checkpoints]) -> None:
        await store.engine.open("s", 1)
        await store.engine.commit("s", 1, {"0": Mark(5, b"five", 7), "1": Mark(5)})
        # When one write would move one mark back and another on
        await store.engine.commit("s", 1, {"0": Mark(4, b"four", 6), "1": Mark(6)})
        # Then the one stays and the other moves
        assert await store.engine.load("s") == {"0": Mark(5, b"five", 7), "1": Mark(6)}

    async def test_what_was_handed_out_never_shrinks_and_grows_by_itself(self, store: StoreBench[Checkpoints]) -> None:
        await store.engine.open("s", 1)
        await store.engine.commit("s", 1, {"0": Mark(5, b"", 50)})
        # A write that came late still says what was handed out; a later one that says less forgets nothing.
        await store.engine.commit("s", 1, {"0": Mark(4, b"late", 60)})
        await store.engine.commit("s", 1, {"0": Mark(6, b"", 10)})
        await store.engine.commit("s", 1, {"0": Mark(7)})
        assert await store.engine.load("s") == {"0": Mark(7, b"", 60)}

    async def test_what_is_settled_ahead_may_change_while_the_position_stays(
        self, store: StoreBench[Checkpoints]
    ) -> None:
        await store.engine.open("s", 1)
        await store.engine.commit("s", 1, {"0": Mark(5, b"a")})
        await store.engine.commit("s", 1, {"0": Mark(5, b"ab")})
        assert await store.engine.load("s") == {"0": Mark(5, b"ab")}

    async def test_a_source_never_opened_is_not_written(self, store: StoreBench[Checkpoints]) -> None:
        with pytest.raises(StaleFence):
            await store.engine.commit("unknown", 1, {"0": Mark(1)})
        await store.engine.open("s", 1)
        with pytest.raises(StaleFence):
            await store.engine.commit("s", 2, {"0": Mark(1)})
        assert await store.engine.load("unknown") == await store.engine.load("s") == {}

    async def test_sources_do_not_mix(self, store: StoreBench[Checkpoints]) -> None:
        await store.engine.open("s", 1)
        await store.engine.open("t", 9)
        await store.engine.commit("s", 1, {"0": Mark(5, b"", 8)})
        assert await store.engine.load("t") == {}

    async def test_endings_are_kept_with_their_mark_and_those_that_touch_are_one(
        self, store: StoreBench[Checkpoints]
    ) -> None:
        await store.engine.open("s", 1)
        died = Ending(3, 5, {3: 3})
        await store.engine.commit(
            "s", 1, {"0": Mark(6, endings=(died,)), "1": Mark(9, endings=(Ending(0, 8, {9: 9}),))}
        )
        # When a write that may have got through is made again, with more
        more = (Ending(3, 7, {3: 5}), Ending(8, 8, {2: 1}), Ending(10, 11, {2: 2}))
        for _ in range(2):
            await store.engine.commit("s", 1, {"0": Mark(12, endings=more)})
        # And the next stretch goes on in the same way
        await store.engine.commit("s", 1, {"0": Mark(14, endings=(Ending(12, 12, {2: 1}),))})
        await store.reopen()
        kept = [Ending(3, 7, {3: 5}), Ending(8, 8, {2: 1}), Ending(10, 12, {2: 3})]
        assert await store.engine.endings("s", "0", 0, 100) == kept
        # Then those are told that have positions in the range, whole
        assert await store.engine.endings("s", "0", 7, 9) == kept[:2]
        assert await store.engine.endings("s", "0", 9, 10) == []
        assert await store.engine.endings("s", "1", 8, 9) == [Ending(0, 8, {9: 9})]
        # And marks are told without
        assert (await store.engine.load("s"))["0"] == Mark(14)

    async def test_endings_are_few_and_their_counts_stay_exact(self, store: StoreBench[Checkpoints]) -> None:
        await store.engine.open("s", 1)
        count = 3 * MOST
        for part in range(3):
            places = range(part * MOST, (part + 1) * MOST)
            endings = tuple(Ending(3 * place, 3 * place, {2 + place % 2: 1}) for place in places)
            await store.engine.commit("s", 1, {"0": Mark(3 * places[-1] + 1, endings=endings)})
        kept = await store.engine.endings("s", "0", 0, 3 * count)
        assert len(kept) <= 2 * MOST
        assert sum(ending.counts.get(2, 0) for ending in kept) == sum(e.counts.get(3, 0) for e in kept) == count // 2
        assert all(former.last < later.first for former, later in pairwise(kept))
        assert all(ending.length == 1 for ending in kept[-MOST // 2 :])

    @MODEL
    @given(steps=steps)
    def test_in_any_story_marks_only_rise_and_only_for_the_newest(self, steps: list[tuple[str, object]]) -> None:
        async def story(store: StoreBench[Checkpoints]) -> None:
            epoch = 10
            await store.engine.open("s", epoch)
            known: dict[str, Mark] = {}
            for what, value in steps:
                if what == "open":
                    assert isinstance(value, int)
                    if value < 0:
                        with pytest.raises(StaleFence):
                            await store.engine.open("s", epoch + value)
                    else:
                        epoch += value
                        assert await store.engine.open("s", epoch) == known
                elif what == "commit":
                    assert isinstance(value, tuple)
                    behind, written = value
                    if behind:
                        with pytest.raises(StaleFence):
                            await store.engine.commit("s", epoch - behind, written)
                    else:
                        await store.engine.commit("s", epoch, written)
                        known |= {name: further(known.get(name, Mark(0)), mark) for name, mark in written.items()}
                else:
                    await store.reopen()
                assert await store.engine.load("s") == known

        self.with_store(story)
