"""The laws that every store of dead letters obeys."""

from __future__ import annotations

import dataclasses

from hypothesis import given
from hypothesis import strategies as st

from ...sdk.model.dead_letter import DeadLetter
from ...sdk.model.workload import Kind
from ...stores.dead_letters.dead_letters import DeadLetters
from .bench import MODEL, StoreBench, StoreLaws


def letter(id: str, function: str = "f", **changes: object) -> DeadLetter:
    plain = DeadLetter(id, "t", Kind(function), b"payload of " + id.encode(), "fatal", "boom", 3, 1, 1.5, 2.5)
    return dataclasses.replace(plain, **changes)  # type: ignore[arg-type]


async def ids_of(store: StoreBench[DeadLetters], function: str = "") -> list[str]:
    return [each.id for each in await store.engine.list(function, 1000)]


ids = st.sampled_from(["a", "b", "c", "d/é"])
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.lists(st.tuples(ids, st.sampled_from("fg")), max_size=3)),
        st.tuples(st.just("remove"), st.lists(ids, max_size=3)),
        st.tuples(st.just("reopen"), st.none()),
    ),
    max_size=15,
)


class DeadLetterLaws(StoreLaws[DeadLetters]):
    """A letter stays whole until it is removed; lists go from the oldest on, page by page."""

    async def test_a_letter_comes_back_whole(self, store: StoreBench[DeadLetters]) -> None:
        full = DeadLetter(
            id="t/0/1",
            tailer="t",
            kind=Kind("f", 0, "c/é", "tenant"),
            payload=b"\x00\xff" * 1000,
            outcome="fatal",
            reason="line one\nline two: è",
            attempts=20,
            crashes=2,
            first_seen=1_700_000_000.125,
            died_at=1_700_000_001.25,
            key="k",
            headers=(("a", "1"), ("a", "2"), ("", "\x00")),
            progress="half",
        )
        await store.engine.add([full, letter("plain")])
        for _ in range(2):
            assert await store.engine.get("t/0/1") == full
            assert await store.engine.get("plain") == letter("plain")
            await store.reopen()

    async def test_an_unknown_id_is_none(self, store: StoreBench[DeadLetters]) -> None:
        assert await store.engine.get("unknown") is None
        assert await store.engine.remove(["unknown"]) == 0
        assert await store.engine.remove([]) == 0
        assert await store.engine.count() == 0

    async def test_adding_nothing_is_harmless(self, store: StoreBench[DeadLetters]) -> None:
        await store.engine.add([])
        assert await store.engine.count() == 0

    async def test_a_known_id_is_replaced_and_counted_once(self, store: StoreBench[DeadLetters]) -> None:
        await store.engine.add([letter("a"), letter("b")])
        await store.engine.add([letter("a", "g", reason="again", attempts=9)])
        assert await store.engine.count() == 2
        assert await store.engine.get("a") == letter("a", "g", reason="again", attempts=9)
        assert await ids_of(store, "f") == ["b"]

    async def test_a_list_is_oldest_first_and_without_payloads(self, store: StoreBench[DeadLetters]) -> None:
        await store.engine.add([letter("z"), letter("a")])
        await store.engine.add([letter("m")])
        found = await store.engine.list("", 10)
        assert [each.id for each in found] == ["z", "a", "m"]
        assert found[0] == letter("z", payload=b"")

    async def test_a_list_is_of_one_function_or_of_all(self, store: StoreBench[DeadLetters]) -> None:
        await store.engine.add([letter("1", "f"), letter("2", "g"), letter("3", "f")])
        assert await ids_of(store, "f") == ["1", "3"]
        assert await ids_of(store, "g") == ["2"]
        assert await ids_of(store, "h") == []
        assert await ids_of(store) == ["1", "2", "3"]

    async def test_pages_follow_each_other_without_gap_or_repeat(self, store: StoreBench[DeadLetters]) -> None:
        await store.engine.add([letter(f"{number:02}", "fg"[number % 2]) for number in range(20)])
        for function, expected in (("", range(20)), ("g", range(1, 20, 2))):
            seen: list[str] = []
            while page := await store.engine.list(function, 3, seen[-1] if seen else ""):
                assert len(page) <= 3
                seen.extend(each.id for each in page)
            assert seen == [f"{number:02}" for number in expected]

    async def test_removed_letters_are_gone_and_the_others_stay(self, store: StoreBench[DeadLetters]) -> None:
        await store.engine.add([letter("a"), letter("b"), letter("c")])
        assert await store.engine.remove(["a", "c", "unknown", "a"]) == 2
        for _ in range(2):
            assert await ids_of(store) == ["b"]
            assert await store.engine.count() == 1
            await store.reopen()

    async def test_many_letters_at_once_are_kept(self, store: StoreBench[DeadLetters]) -> None:
        await store.engine.add([letter(str(number)) for number in range(3000)])
        assert await store.engine.count() == 3000
        assert await store.engine.remove([str(number) for number in range(2999)]) == 2999

    @MODEL
    @given(steps=steps)
    def test_any_story_is_the_story_of_a_dictionary(self, steps: list[tuple[str, object]]) -> None:
        async def story(store: StoreBench[DeadLetters]) -> None:
            known: dict[str, str] = {}
            for what, value in steps:
                if what == "add":
                    assert isinstance(value, list)
                    await store.engine.add([letter(id, function) for id, function in value])
                    known |= dict(value)
                elif what == "remove":
                    assert isinstance(value, list)
                    gone = set(value) & set(known)
                    assert await store.engine.remove(value) == len(gone)
                    for id in gone:
                        del known[id]
                else:
                    await store.reopen()
                assert await store.engine.count() == len(known)
                for function in "fg":
                    assert set(await ids_of(store, function)) == {id for id, own in known.items() if own == function}

        self.with_store(story)
